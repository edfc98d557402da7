package remote

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// replica is the part of the state that the nodes of a fleet have read. It is safe for
// concurrent use.
type replica struct {
	// nodes are the nodes of the fleet. They do not change.
	nodes map[cluster.NodeID]*cluster.Node

	mu sync.Mutex
	// changes counts the changes; guarded by mu.
	changes uint64
	// allocs are the allocations of each node that are not client-terminal; guarded by mu. The
	// slices do not change.
	allocs map[cluster.NodeID][]*cluster.Allocation
	// placed holds the node of each allocation; guarded by mu.
	placed map[cluster.AllocID]cluster.NodeID
}

var _ simclient.State = (*replica)(nil)

func newReplica(nodes []*cluster.Node) *replica {
	r := &replica{
		nodes:  make(map[cluster.NodeID]*cluster.Node, len(nodes)),
		allocs: make(map[cluster.NodeID][]*cluster.Allocation), placed: make(map[cluster.AllocID]cluster.NodeID),
	}
	for _, n := range nodes {
		r.nodes[n.ID] = n
	}
	return r
}

// set replaces the allocations of a node.
func (r *replica) set(id cluster.NodeID, allocs []*cluster.Allocation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	for _, a := range r.allocs[id] {
		delete(r.placed, a.ID)
	}
	for _, a := range allocs {
		r.placed[a.ID] = id
	}
	r.allocs[id] = allocs
}

// Index counts the changes.
func (r *replica) Index() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}

// Node returns a node of the fleet, or nil.
func (r *replica) Node(id cluster.NodeID) *cluster.Node { return r.nodes[id] }

// Nodes yields the nodes of the fleet, by id.
func (r *replica) Nodes() iter.Seq[*cluster.Node] {
	return func(yield func(*cluster.Node) bool) {
		for _, id := range slices.Sorted(maps.Keys(r.nodes)) {
			if !yield(r.nodes[id]) {
				return
			}
		}
	}
}

// Alloc returns an allocation on a node of the fleet, or nil if there is none or it has ended.
func (r *replica) Alloc(id cluster.AllocID) *cluster.Allocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	allocs := r.allocs[r.placed[id]]
	if i := slices.IndexFunc(allocs, func(a *cluster.Allocation) bool { return a.ID == id }); i >= 0 {
		return allocs[i]
	}
	return nil
}

// LiveAllocsByNode yields those that are not client-terminal.
func (r *replica) LiveAllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	r.mu.Lock()
	allocs := r.allocs[id]
	r.mu.Unlock()
	return func(yield func(*cluster.Allocation) bool) {
		for _, a := range allocs {
			if !a.ClientTerminal() && !yield(a) {
				return
			}
		}
	}
}
