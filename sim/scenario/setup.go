package scenario

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Node is one node, or several alike.
type Node struct {
	// IDs are never empty; written as "n1" or "n1..n6".
	IDs []cluster.NodeID
	// What it has. Zero is plenty.
	CPU, MemoryMB, DiskMB, GPUMilli int64
	// MaxAllocs bounds the allocations on it. Zero is no bound.
	MaxAllocs int
	Class     string
	// Status is what it begins with; empty is ready.
	Status     cluster.NodeStatus
	Ineligible bool
	// Unregistered is written "absent": the servers do not know the node, though
	// allocations may be on it. It can register later.
	Unregistered bool
}

// Job is a job as it is registered.
type Job struct {
	Key      cluster.JobKey
	Type     cluster.JobType // empty is service
	Priority int             // zero is the default
	Stop     bool
	// Unregistered is written "absent": allocations of the job may exist, and the
	// job itself does not, as after a purge. It can be registered later.
	Unregistered bool
	Groups       []Group // never empty
}

// Group is one task group. Zero values are the product's own defaults.
type Group struct {
	Name  string
	Count int
	// MaxParallel is the limit of the migrate block, or nil for the default.
	MaxParallel     *int
	MinHealthy      time.Duration
	HealthyDeadline time.Duration
	Kill, Shutdown  time.Duration // kill timeout and shutdown delay
	CPU, MemoryMB   int64
	GPUMilli        int64
	// Plugin makes it a storage plugin. Sticky and Migrate are of its disk.
	Plugin, Sticky, Migrate bool
	LostAfter               time.Duration
	Classes                 []string // node classes it may run on; nil is any
}

// Indexes are places in a group: Count of them from First on. The zero value names
// none.
type Indexes struct{ First, Count int }

// Alloc is allocations that a world begins with, of one group, one after the
// other on the nodes named, again from the first when there are more.
type Alloc struct {
	Group cluster.GroupKey
	// Indexes are which; the zero value is from 0 on, as many as the nodes named.
	Indexes Indexes
	On      []cluster.NodeID
	// Health is "good", "bad" or "none"; empty is good for service and system, and
	// none for the others, which are never judged.
	Health string
	Canary bool
	// Age is how long ago it was placed. Zero is an hour.
	Age time.Duration
	// Client and Desired are its statuses; empty is running and run.
	Client  cluster.ClientStatus
	Desired cluster.DesiredStatus
	// Marked says that it has a mark that no drain made.
	Marked bool
	// Replaces is the index of the allocation of the group that it has replaced, or
	// nil.
	Replaces *int
}

// Client is how allocations fare on their nodes. All that match apply, in the
// order of the file; what a later one names goes before. Nil is not named.
type Client struct {
	Match     Selector
	Start     *Range
	Copy      *Range
	Verdict   *Range
	Run       *Range
	Stop      *Range
	Unhealthy *float64 // probability that the verdict is bad
}

// Selector matches allocations. The zero value matches all.
type Selector struct {
	Job   cluster.JobKey
	Group string
	// Indexes are places in the group; the zero value is any.
	Indexes Indexes
	Node    cluster.NodeID
	// Replacement matches only those that have replaced another.
	Replacement bool
}

// AllocName names one allocation: the one of its name that has not ended, on any
// node or on the one named.
type AllocName struct {
	Group cluster.GroupKey
	Index int
	Node  cluster.NodeID // or empty
}
