package rules

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// PauseView is an optional interface of a [View], for stores that can pause all drains at once. If the view does not
// implement it, only pauses of single drains hold.
type PauseView interface {
	// DrainPause returns the pause of all drains, or nil.
	DrainPause() *cluster.DrainPause
}

// SurgeView is an optional interface of a [View], for stores with a scheduler that can place a replacement beside the
// allocation that it replaces: see [cluster.SurgeRequested]. If the view does not implement it, max_surge has no effect.
type SurgeView interface {
	// PlacesBeside reports whether the scheduler does that in this state.
	PlacesBeside() bool
}

// View is one consistent state of the cluster. Callers do not change what it returns. Each method
// yields in a fixed order, which its comment gives. Decisions depend on the order and must be the
// same on every server.
//
// The cost of every method must depend only on what it returns, not on the size of the state. A
// view without such indexes is correct but slow.
//
// A store may delete evaluations that are not open, and ended allocations that the drainer does not
// need: see [Needs]. A rule that reads other ended rows changes [Needs].
type View interface {
	// Index is the raft index of the newest entry in the view.
	Index() uint64
	// Node returns the node, or nil.
	Node(cluster.NodeID) *cluster.Node
	// DrainingNodes yields the nodes that drain, by id.
	DrainingNodes() iter.Seq[*cluster.Node]
	// Job returns the current version of the job, or nil.
	Job(cluster.JobKey) *cluster.Job
	// Alloc returns the allocation, or nil.
	Alloc(cluster.AllocID) *cluster.Allocation
	// NodeAllocs yields, by id, the allocations of a node that belong to the stage and are not
	// client-terminal: those that are leaving ([cluster.Allocation.Leaving]), or those that are
	// not.
	NodeAllocs(n cluster.NodeID, s cluster.Stage, leaving bool) iter.Seq[*cluster.Allocation]
	// Unconfirmed yields, by id, the allocations of a node that are [cluster.Allocation.Unconfirmed].
	// Only the record of a drain depends on it.
	Unconfirmed(cluster.NodeID) iter.Seq[*cluster.Allocation]
	// KeptData yields, by id, the allocations of a node that [cluster.KeepsData]. A store
	// of a cluster in which no data moves yields none.
	KeptData(cluster.NodeID) iter.Seq[*cluster.Allocation]
	// Consumers counts the node's allocations of [cluster.StageConsumers] that
	// are not client-terminal.
	Consumers(cluster.NodeID) int
	// GroupAllocs yields, by id, the group's allocations that are not client-terminal. It also
	// yields client-terminal canaries that a drain marked and that have no replacement.
	GroupAllocs(cluster.GroupKey) iter.Seq[*cluster.Allocation]
	// ChangingAllocs yields, by [cluster.Allocation.Progress] and then by id, those of GroupAllocs
	// that are on a draining node or are not stable. The cost must follow the number of items read,
	// because a re-check stops early. Fields that [cluster.Allocation.Bare] leaves out are not
	// read, and may be missing.
	ChangingAllocs(cluster.GroupKey) iter.Seq[*cluster.Allocation]
	// Healthy counts the group's healthy allocations ([cluster.Allocation.Healthy]) on all nodes.
	Healthy(cluster.GroupKey) int
	// DrainAllocs yields, by id, all allocations that the drain has marked, including those that
	// have ended.
	DrainAllocs(cluster.DrainID) iter.Seq[*cluster.Allocation]
	// OpenEvals yields the job's evaluations that are pending or blocked, by
	// creation index, then id.
	OpenEvals(cluster.JobKey) iter.Seq[*cluster.Evaluation]
}
