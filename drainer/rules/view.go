package rules

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// View is one consistent state of the cluster. Callers write to nothing that it returns. It
// yields everything in a fixed order, given with each method. The order is part of every
// decision, and decisions must be the same on every server.
//
// The cost of every method must depend on what it returns only, not on the size of the state. A view
// without such indexes is correct but slow.
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
	// NodeAllocs yields the allocations of a node that belong to the stage and
	// are not client-terminal, by id: those that are leaving
	// ([cluster.Allocation.Leaving]) or those that are not.
	NodeAllocs(n cluster.NodeID, s cluster.Stage, leaving bool) iter.Seq[*cluster.Allocation]
	// Consumers counts the node's allocations of [cluster.StageConsumers] that
	// are not client-terminal.
	Consumers(cluster.NodeID) int
	// GroupAllocs yields, by id, the group's allocations that are not
	// client-terminal, and its canaries that a drain marked, that are
	// client-terminal, and that have no replacement.
	GroupAllocs(cluster.GroupKey) iter.Seq[*cluster.Allocation]
	// ChangingAllocs yields, by [cluster.Allocation.Progress] and then by id, those of
	// GroupAllocs that are on a draining node or are not stable. The drainer reads them one by
	// one. The cost must follow the number of items taken: a re-check stops early. Fields that
	// [cluster.Allocation.Bare] leaves out are not read, and may be missing.
	ChangingAllocs(cluster.GroupKey) iter.Seq[*cluster.Allocation]
	// Healthy counts the group's allocations that count towards its budget,
	// wherever they are ([cluster.Allocation.Healthy]).
	Healthy(cluster.GroupKey) int
	// DrainAllocs yields all allocations that the drain has marked, by id, also those that have
	// ended.
	DrainAllocs(cluster.DrainID) iter.Seq[*cluster.Allocation]
	// OpenEvals yields the job's evaluations that are pending or blocked, by
	// creation index, then id.
	OpenEvals(cluster.JobKey) iter.Seq[*cluster.Evaluation]
}
