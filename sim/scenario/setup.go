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
	CPU      int64 `drain:"cpu"`
	MemoryMB int64 `drain:"memory"`
	DiskMB   int64 `drain:"disk"`
	GPUMilli int64 `drain:"gpu"`
	// MaxAllocs is the most allocations on it. Zero is no limit.
	MaxAllocs int `drain:"max-allocs"`
	// Devices are the kinds of devices that it has. Then it has no thousandths of a GPU.
	Devices []Devices `drain:"devices"`
	// Ports is the range of its dynamic ports. Zero is a node without ports.
	Ports cluster.PortRange `drain:"ports"`
	// Cores is the number of cores that tasks can have for themselves.
	Cores int    `drain:"cores,0..1000"`
	Class string `drain:"class"`
	// Status is the status at the beginning. Empty is ready.
	Status     cluster.NodeStatus `drain:"status,=ready|initializing|down|disconnected"`
	Ineligible bool               `drain:"ineligible"`
	// Unregistered is printed as "absent": the servers have no such node. Allocations may be on
	// it. It can register later.
	Unregistered bool `drain:"absent"`
	// Containers: its driver keeps each task in a container, and answers WaitTask as soon as StopTask
	// has begun. It needs real clients.
	Containers bool `drain:"containers"`
}

// HasContainers reports whether a node has [Node].Containers.
func (s *Scenario) HasContainers(id cluster.NodeID) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Containers && slices.Contains(n.IDs, id) })
}

// Job is a job in the form of its registration.
type Job struct {
	Key      cluster.JobKey
	Type     cluster.JobType `drain:"type,=service|batch|system|sysbatch"` // empty is service
	Priority int             `drain:"priority,1..100"`                     // zero is the default
	Stop     bool            `drain:"stopped"`
	// Unregistered is printed as "absent": the job is not registered, as after a purge.
	// Allocations of it may exist. It can register later.
	Unregistered bool    `drain:"absent"`
	Groups       []Group // never empty
}

// Group is one task group. A zero value is the default of the product.
type Group struct {
	Name  string
	Count int `drain:"count,0..1000000,always"`
	// MaxParallel is the limit of the migrate block, or nil for the default.
	MaxParallel *int `drain:"max-parallel"`
	// MaxSurge is how many of its allocations may have a replacement beside them before they move.
	MaxSurge int `drain:"max-surge"`
	// Update is how many allocations a new version of the job replaces at a time, or nil for the default.
	Update *int `drain:"update"`
	// Distinct allows no two allocations of the group on one node.
	Distinct bool `drain:"distinct"`
	// Reschedule is how allocations that ended by themselves are replaced, or nil for at once, a number of times.
	Reschedule      *cluster.ReschedulePolicy `drain:"reschedule"`
	MinHealthy      time.Duration             `drain:"min-healthy"`
	HealthyDeadline time.Duration             `drain:"healthy-deadline"`
	Kill            time.Duration             `drain:"kill,long"`      // the kill timeout
	Shutdown        time.Duration             `drain:"shutdown,long"`  // the shutdown delay of the task
	GroupShutdown   time.Duration             `drain:"group-shutdown"` // the shutdown delay of the group, before that of the task
	CPU             int64                     `drain:"cpu"`
	MemoryMB        int64                     `drain:"memory"`
	GPUMilli        int64                     `drain:"gpu"`
	// Devices are the requests of the main task. Then it requests no thousandths of a GPU.
	Devices []DeviceRequest `drain:"devices"`
	// Ports are the ports of the node that each allocation gets.
	Ports []Port `drain:"ports"`
	// Cores is the number of cores that the main task has for itself.
	Cores int `drain:"cores,0..1000"`
	// Plugin makes it a storage plugin, which serves the volumes of Serves.
	Plugin  bool `drain:"plugin"`
	Serves  Service
	Volumes []VolumeUse `drain:"volumes"`
	// Sticky and Migrate are properties of its disk. DiskMB is its size. WritesMB is how much the tasks of each
	// allocation write to it; zero is one.
	Sticky   bool  `drain:"sticky"`
	Migrate  bool  `drain:"migrate"`
	DiskMB   int64 `drain:"disk"`
	WritesMB int64 `drain:"writes"`
	// Each of these adds a task with that lifecycle to the group. Its kill timeout is that of the
	// group.
	Prestart  bool          `drain:"prestart"`
	Poststart bool          `drain:"poststart"`
	Sidecar   bool          `drain:"sidecar"`
	Poststop  bool          `drain:"poststop"`
	LostAfter time.Duration `drain:"lost-after"`
	// NoReplace and KeepReplacement are those of [cluster.DisconnectStrategy].
	NoReplace       bool          `drain:"no-replace"`
	KeepReplacement bool          `drain:"keep-replacement"`
	StopAway        time.Duration `drain:"stop-away"` // after which a client that reaches no server stops it
	MaxRun          time.Duration `drain:"max-run"`   // after which a client stops it
	Restart         time.Duration `drain:"restart"`   // after which a task that has ended starts again, without a limit
	Classes         []string      `drain:"classes"`   // the node classes on which it may run; nil is any
	// Service: each allocation is an instance of a service with the name of the group. Check is the check of the service, or
	// nil.
	Service bool   `drain:"service"`
	Check   *Check `drain:"check"`
}

// Indexes are Count indexes of allocations in a group, from First on. Zero names none.
type Indexes struct{ First, Count int }

// Alloc declares allocations of one group that exist at the beginning. They take the nodes in turn.
type Alloc struct {
	Group cluster.GroupKey
	// Indexes of the allocations. Zero is one for each entry of On, from 0 on.
	Indexes Indexes
	On      []cluster.NodeID `drain:"on,required"`
	// Health is the verdict: "good", "bad" or "none". Empty is good for service and system jobs,
	// and none for batch and sysbatch jobs, which never have a verdict.
	Health string `drain:"health,=good|bad|none"`
	Canary bool   `drain:"canary"`
	// Age is the time since the placement. Zero is an hour.
	Age time.Duration `drain:"age"`
	// Client and Desired are the client status and the desired status. Empty is running and run.
	Client  cluster.ClientStatus  `drain:"client,=running|pending|complete|failed|lost|unknown"`
	Desired cluster.DesiredStatus `drain:"desired,=run|stop|evict"`
	// Marked is true if an operator, not a drain, has marked them.
	Marked bool `drain:"marked"`
	// Failures is how many allocations failed one after the other before this one, which has replaced the
	// last of them.
	Failures int `drain:"failures,1..10"`
	// Replaces is the index of the allocation which they have replaced, or nil.
	Replaces *int `drain:"replaces"`
}

// Client sets the behaviour of the allocations that it matches. If several match, the last one in
// the file that has a field decides this field. Nil decides nothing.
type Client struct {
	Match     Selector
	Start     *Range   `drain:"start"`
	Copy      *Range   `drain:"copy"`
	Verdict   *Range   `drain:"verdict"`
	Run       *Range   `drain:"run"`
	Stop      *Range   `drain:"stop"`
	Unhealthy *float64 `drain:"unhealthy"` // probability that the verdict is bad
	// Worsen is the time from a good verdict to a bad one, Recover the time back.
	Worsen  *Range `drain:"worsen"`
	Recover *Range `drain:"recover"`
	// Crash is how long the main task of a service runs until it exits with 1, again and again.
	Crash *Range `drain:"crash"`
}

// Selector matches allocations. The zero value matches all.
type Selector struct {
	Job   cluster.JobKey
	Group string
	// Indexes in the group. Zero is any index.
	Indexes Indexes
	Node    cluster.NodeID
	// Replacement restricts the match to allocations that have replaced another.
	Replacement bool `drain:"replacements"`
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
