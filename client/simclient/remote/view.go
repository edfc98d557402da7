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
	mu  sync.Mutex
	now *view // never nil; guarded by mu
}

// view is a replica at one time. It does not change.
type view struct {
	index uint64
	nodes map[cluster.NodeID]*cluster.Node
	// allocs are the allocations of each node that are not client-terminal.
	allocs map[cluster.NodeID][]*cluster.Allocation
	// placed holds the node of each allocation; never nil, and shared with the replica.
	placed *placed
}

// placed holds the node of each allocation. An allocation never changes its node, so all views
// share it. It is safe for concurrent use.
type placed struct {
	mu sync.Mutex
	on map[cluster.AllocID]cluster.NodeID // guarded by mu
}

// set replaces a node's allocations.
func (p *placed) set(id cluster.NodeID, before, after []*cluster.Allocation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range before {
		delete(p.on, a.ID)
	}
	for _, a := range after {
		p.on[a.ID] = id
	}
}

// node returns the allocation's node, or "" if none has it.
func (p *placed) node(id cluster.AllocID) cluster.NodeID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on[id]
}

var _ simclient.State = (*view)(nil)

func newReplica(nodes []*cluster.Node) *replica {
	v := &view{
		nodes:  make(map[cluster.NodeID]*cluster.Node, len(nodes)),
		placed: &placed{on: make(map[cluster.AllocID]cluster.NodeID)},
	}
	for _, n := range nodes {
		v.nodes[n.ID] = n
	}
	return &replica{now: v}
}

// newest returns the newest view.
func (r *replica) newest() *view {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// set replaces the allocations of a node.
func (r *replica) set(id cluster.NodeID, allocs []*cluster.Allocation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	after := &view{index: r.now.index + 1, nodes: r.now.nodes, allocs: maps.Clone(r.now.allocs), placed: r.now.placed}
	if after.allocs == nil {
		after.allocs = make(map[cluster.NodeID][]*cluster.Allocation)
	}
	after.allocs[id] = allocs
	after.placed.set(id, r.now.allocs[id], allocs)
	r.now = after
}

// Index counts the changes.
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

// Alloc returns an allocation on a node of the fleet, or nil if there is none or it has ended. An old
// view does not find an allocation that its node has lost since; clients do not ask for it.
func (v *view) Alloc(id cluster.AllocID) *cluster.Allocation {
	allocs := v.allocs[v.placed.node(id)]
	if i := slices.IndexFunc(allocs, func(a *cluster.Allocation) bool { return a.ID == id }); i >= 0 {
		return allocs[i]
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
