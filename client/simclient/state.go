package simclient

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// State is the clients' view of a cluster's state. The allocations of one node change together, or
// not at all. Clients do not write to its rows.
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
	// Unconfirmed yields those of a node's allocations that are [cluster.Allocation.Unconfirmed].
	Unconfirmed(cluster.NodeID) iter.Seq[*cluster.Allocation]
}

// Applier takes the clients' reports to the servers.
type Applier interface {
	// Report returns at once. False is that there is no room, and nothing happens. True is
	// that the reports are queued: reply is called exactly once, from any goroutine, when
	// the outcome is known. They are applied if the servers have taken them, even if the
	// servers refused some; the state of [Options].Snapshot shows them by then. If the
	// outcome is unknown they are not applied: the clients repeat them, which is harmless.
	// The reports belong to the applier.
	Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool)
}
