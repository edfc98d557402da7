package remote

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/simclient"
)

// replica is what the nodes of a fleet have heard of the state. It is safe for
// concurrent use.
type replica struct {
	mu  sync.Mutex
	now *view // never nil; guarded by mu
}

// view is a replica at one time. It does not change.
type view struct {
	index uint64
	nodes map[cluster.NodeID]*cluster.Node
	// allocs are those of each node, whatever became of them, by id.
	allocs map[cluster.NodeID][]*cluster.Allocation
}

var _ simclient.State = (*view)(nil)

func newReplica(nodes []*cluster.Node) *replica {
	v := &view{nodes: make(map[cluster.NodeID]*cluster.Node, len(nodes))}
	for _, n := range nodes {
		v.nodes[n.ID] = n
	}
	return &replica{now: v}
}

// newest returns the present view.
func (r *replica) newest() *view {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// set notes what is on a node.
func (r *replica) set(id cluster.NodeID, allocs []*cluster.Allocation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	after := &view{index: r.now.index + 1, nodes: r.now.nodes, allocs: maps.Clone(r.now.allocs)}
	if after.allocs == nil {
		after.allocs = make(map[cluster.NodeID][]*cluster.Allocation)
	}
	after.allocs[id] = allocs
	r.now = after
}

// Index counts what was heard.
func (v *view) Index() uint64 { return v.index }

// Node returns a node of the fleet, or nil.
func (v *view) Node(id cluster.NodeID) *cluster.Node { return v.nodes[id] }

// Nodes yields the nodes of the fleet, by id.
func (v *view) Nodes() iter.Seq[*cluster.Node] {
	return func(yield func(*cluster.Node) bool) {
		for _, id := range slices.Sorted(maps.Keys(v.nodes)) {
			if !yield(v.nodes[id]) {
				return
			}
		}
	}
}

// Alloc returns an allocation on a node of the fleet, or nil.
func (v *view) Alloc(id cluster.AllocID) *cluster.Allocation {
	if id == "" {
		return nil
	}
	for _, allocs := range v.allocs { //lint:order one at most has it
		if i := slices.IndexFunc(allocs, func(a *cluster.Allocation) bool { return a.ID == id }); i >= 0 {
			return allocs[i]
		}
	}
	return nil
}

// LiveAllocsByNode yields those that are not client-terminal.
func (v *view) LiveAllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for _, a := range v.allocs[id] {
			if !a.ClientTerminal() && !yield(a) {
				return
			}
		}
	}
}
