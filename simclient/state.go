package simclient

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// State is what clients see of a cluster's state. It does not change, and nothing
// in it is written to.
type State interface {
	// Index is the raft index of the newest entry in the state.
	Index() uint64
	// Node returns the node, or nil.
	Node(cluster.NodeID) *cluster.Node
	// Nodes yields all nodes.
	Nodes() iter.Seq[*cluster.Node]
	// Alloc returns the allocation, or nil.
	Alloc(cluster.AllocID) *cluster.Allocation
	// LiveAllocsByNode yields those of a node's allocations that are not
	// client-terminal. The node need not exist.
	LiveAllocsByNode(cluster.NodeID) iter.Seq[*cluster.Allocation]
}

// Applier takes what clients report to the servers.
type Applier interface {
	// Report returns at once: true if the reports were queued, and then calls
	// reply exactly once, from any goroutine, as soon as it is known what became
	// of them; false if there is no room, and then nothing happens. They are
	// applied if the servers have taken them, although they may have refused some;
	// the state of [Options].Snapshot shows them by then. If in doubt they are
	// not: the clients say the same again, which does no harm. The reports belong
	// to the applier.
	Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool)
}
