package scheduler

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

// placer chooses nodes for the allocations of one group. It reads every ready node once.
// Each placement then costs the logarithm of the number of nodes.
type placer struct {
	need cluster.Resources
	// refuses returns why a node cannot take an allocation of the name because of its volumes, and
	// unclaimable why no node can, or the empty string. Both are nil for a group without volumes.
	refuses     func(name string, n *cluster.Node) string
	unclaimable func(name string) string
	// heap holds the nodes that may fit one more allocation, the best first. pop drops a
	// node without room: no room becomes free during a plan.
	heap candidates
}

// candidate is one node as a place for the group.
type candidate struct {
	*room
	// same counts the allocations of the group on the node. left is [room.left].
	same int
	left int64
}

// compareID orders by node id.
func (c candidate) compareID(id cluster.NodeID) int { return cmp.Compare(c.node.ID, id) }

// newPlacer returns a placer for the group. same counts the group's allocations on each
// node.
func newPlacer(w *world, j *cluster.Job, g *cluster.TaskGroup, demands *feasible.Demands, same map[cluster.NodeID]int) *placer {
	rooms := w.ready()
	p := &placer{need: g.Resources(), heap: make(candidates, 0, len(rooms))}
	for i := range rooms {
		if r := &rooms[i]; r.fits(p.need) && accepts(r.node, j, g) && demands.Refusal(r.node) == "" {
			p.heap = append(p.heap, candidate{room: r, left: r.left(p.need)})
		}
	}
	for id, n := range same { //lint:order each candidate by itself; most nodes have none of the group
		if at, is := slices.BinarySearchFunc(p.heap, id, candidate.compareID); is {
			p.heap[at].same = n
		}
	}
	heap.Init(&p.heap)
	if len(g.Volumes) > 0 {
		book := w.claims()
		p.refuses = func(name string, n *cluster.Node) string { return book.Refusal(j.Namespace, g, name, n) }
		p.unclaimable = func(name string) string { return book.Unclaimable(j.Namespace, g, name) }
	}
	return p
}

// place reserves room for one allocation of the name and returns its node, or nil if it fits nowhere.
// It uses the node to avoid only if no other fits.
func (p *placer) place(name string, avoid cluster.NodeID) *cluster.Node {
	if p.unclaimable != nil && p.unclaimable(name) != "" {
		return nil
	}
	best, ok := p.popFor(name)
	if !ok {
		return nil
	}
	if best.node.ID == avoid {
		if other, ok := p.popFor(name); ok {
			heap.Push(&p.heap, best)
			best = other
		}
	}
	best.take(p.need)
	best.same++
	best.left = best.room.left(p.need)
	heap.Push(&p.heap, best)
	return best.node
}

// popFor removes the best candidate that fits and that can take the volumes of an allocation of the
// name.
func (p *placer) popFor(name string) (candidate, bool) {
	if p.refuses == nil {
		return p.pop()
	}
	var refused []candidate
	best, ok := p.pop()
	for ok && p.refuses(name, best.node) != "" {
		refused = append(refused, best)
		best, ok = p.pop()
	}
	for _, c := range refused { // another name may have volumes that they can take
		heap.Push(&p.heap, c)
	}
	return best, ok
}

// pop removes the best candidate that fits.
func (p *placer) pop() (candidate, bool) {
	for p.heap.Len() > 0 {
		if c := heap.Pop(&p.heap).(candidate); c.fits(p.need) {
			return c, true
		}
	}
	return candidate{}, false
}

// placeOn reserves room on the node for an allocation of the name and returns the node, or nil if the
// allocation does not fit.
func (p *placer) placeOn(name string, id cluster.NodeID) *cluster.Node {
	for i, c := range p.heap {
		if c.node.ID != id {
			continue
		}
		if !c.fits(p.need) || p.refuses != nil && p.refuses(name, c.node) != "" {
			return nil
		}
		c.take(p.need)
		c.same++
		c.left = c.room.left(p.need)
		p.heap[i] = c
		heap.Fix(&p.heap, i)
		return c.node
	}
	return nil
}

// candidates is a heap: the best comes first.
type candidates []candidate

func (h candidates) Len() int { return len(h) }

// Less orders by the number of allocations of the group, then by left, then by node id.
func (h candidates) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	switch {
	case a.same != b.same:
		return a.same < b.same
	case a.left != b.left:
		return a.left < b.left
	}
	return a.node.ID < b.node.ID
}

func (h candidates) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push and Pop are for package heap.
func (h *candidates) Push(c any) { *h = append(*h, c.(candidate)) }

// Pop removes the last.
func (h *candidates) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
