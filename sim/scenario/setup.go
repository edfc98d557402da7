package scenario

import (
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Node is one node, or several equal nodes.
type Node struct {
	// IDs is never empty.
	IDs []cluster.NodeID
	// The resources of the node. Zero is plenty, but no GPU.
	CPU, MemoryMB, DiskMB, GPUMilli int64
	// MaxAllocs is the most allocations on it. Zero is no limit.
	MaxAllocs int
	Class     string
	// Devices are the kinds of devices that it has. Then it has no thousandths of a GPU.
	Devices []Devices
	// Status is the status at the beginning. Empty is ready.
	Status     cluster.NodeStatus
	Ineligible bool
	// Unregistered is printed as "absent": the servers have no such node. Allocations may be on
	// it. It can register later.
	Unregistered bool
	// Containers: its driver keeps each task in a container, and answers WaitTask as soon as StopTask
	// has begun. It needs real clients.
	Containers bool
}

// HasContainers reports whether a node has [Node].Containers.
func (s *Scenario) HasContainers(id cluster.NodeID) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Containers && slices.Contains(n.IDs, id) })
}

// Job is a job in the form of its registration.
type Job struct {
	Key      cluster.JobKey
	Type     cluster.JobType // empty is service
	Priority int             // zero is the default
	Stop     bool
	// Unregistered is printed as "absent": the job is not registered, as after a purge.
	// Allocations of it may exist. It can register later.
	Unregistered bool
	Groups       []Group // never empty
}

// Group is one task group. A zero value is the default of the product.
type Group struct {
	Name  string
	Count int
	// MaxParallel is the limit of the migrate block, or nil for the default.
	MaxParallel     *int
	MinHealthy      time.Duration
	HealthyDeadline time.Duration
	Kill, Shutdown  time.Duration // kill timeout and shutdown delay
	GroupShutdown   time.Duration // the shutdown delay of the group, before that of the task
	CPU, MemoryMB   int64
	GPUMilli        int64
	// Devices are the requests of the main task. Then it asks for no thousandths of a GPU.
	Devices []DeviceRequest
	// Plugin makes it a storage plugin, and Serves says of which volumes. Sticky and Migrate are properties of its disk.
	Plugin, Sticky, Migrate bool
	Serves                  Service
	Volumes                 []VolumeUse
	// Each of these adds a task with that lifecycle to the group. Its kill timeout is that of the
	// group.
	Prestart, Poststart, Sidecar, Poststop bool
	LostAfter                              time.Duration
	StopAway                               time.Duration // after which a client that reaches no server stops it
	Classes                                []string      // the node classes on which it may run; nil is any
}

// Indexes are Count indexes of allocations in a group, from First on. Zero names none.
type Indexes struct{ First, Count int }

// Alloc declares allocations of one group that exist at the beginning. They take the nodes in turn.
type Alloc struct {
	Group cluster.GroupKey
	// Indexes of the allocations. Zero is one for each entry of On, from 0 on.
	Indexes Indexes
	On      []cluster.NodeID
	// Health is the verdict: "good", "bad" or "none". Empty is good for service and system jobs,
	// and none for batch and sysbatch jobs, which never have a verdict.
	Health string
	Canary bool
	// Age is the time since the placement. Zero is an hour.
	Age time.Duration
	// Client and Desired are the client status and the desired status. Empty is running and run.
	Client  cluster.ClientStatus
	Desired cluster.DesiredStatus
	// Marked is true if an operator, not a drain, has marked them.
	Marked bool
	// Replaces is the index of the allocation which they have replaced, or nil.
	Replaces *int
}

// Client sets the behaviour of the allocations that it matches. If several match, the last one in
// the file that has a field decides this field. Nil decides nothing.
type Client struct {
	Match     Selector
	Start     *Range
	Copy      *Range
	Verdict   *Range
	Run       *Range
	Stop      *Range
	Unhealthy *float64 // probability that the verdict is bad
	// Worsen is the time from a good verdict to a bad one, Recover the time back.
	Worsen  *Range
	Recover *Range
}

// Selector matches allocations. The zero value matches all.
type Selector struct {
	Job   cluster.JobKey
	Group string
	// Indexes in the group. Zero is any index.
	Indexes Indexes
	Node    cluster.NodeID
	// Replacement restricts the match to allocations that have replaced another.
	Replacement bool
}

// AllocName names the allocation of a group and an index that has not ended.
type AllocName struct {
	Group cluster.GroupKey
	Index int
	Node  cluster.NodeID // empty is any node
}

// EachGroup yields the groups of all jobs, each with its job.
func (s *Scenario) EachGroup() iter.Seq2[*Job, *Group] {
	return func(yield func(*Job, *Group) bool) {
		for i := range s.Jobs {
			for k := range s.Jobs[i].Groups {
				if !yield(&s.Jobs[i], &s.Jobs[i].Groups[k]) {
					return
				}
			}
		}
	}
}
