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
	need  cluster.Resources
	group *cluster.TaskGroup
	world *world
	// refuses returns why a node cannot take an allocation of the name because of its volumes, and
	// unclaimable why no node can, or the empty string. Both are nil for a group without volumes.
	refuses     func(name string, n *cluster.Node) string
	unclaimable func(name string) string
	// devices are what the group requests, and next the devices of the next allocation on each candidate;
	// nil if it requests none.
	devices feasible.Devices
	next    map[cluster.NodeID]feasible.Assignment
	// distinct: a node takes one allocation of the group at most.
	distinct bool
	// heap holds the nodes that may fit one more allocation, the best first. pop drops a
	// node without room: no room becomes free during a plan.
	heap candidates
}

// candidate is one node as a place for the group.
type candidate struct {
	*room
	// at is the place of the room among those of the turn, which are ordered by node id.
	at int
	// same counts the allocations of the group on the node. left is [placer.left].
	same int
	left int64
	// taken: the plan has placed an allocation of the group on the node.
	taken bool
}

// compareID orders by node id.
func (c candidate) compareID(id cluster.NodeID) int { return cmp.Compare(c.node.ID, id) }

// newPlacer returns a placer for the group. same counts the group's allocations on each
// node.
// The plan has placed the allocations in placed, and stops those in left.
func newPlacer(w *world, j *cluster.Job, g *cluster.TaskGroup, demands *feasible.Demands, same map[cluster.NodeID]int, placed []*cluster.Allocation, left map[cluster.AllocID]bool) *placer {
	rooms, version := w.ready(), w.ClusterVersion()
	p := &placer{need: g.Resources(), group: g, world: w, devices: demands.Devices(), heap: slices.Grow(w.arrays.heap[:0], len(rooms))}
	if p.devices.Any() {
		p.next = make(map[cluster.NodeID]feasible.Assignment)
	}
	taken := takenNodes(w, j, g, placed, left)
	if taken != nil {
		p.distinct = true
	}
	for i := range rooms {
		if r := &rooms[i]; !taken[r.node.ID] && r.fits(p.need) && accepts(r.node, j, g, version) && demands.Refusal(r.node) == "" && p.assign(r.node) && w.hasFree(g, r.node) {
			p.heap = append(p.heap, candidate{room: r, at: i, left: p.left(r)})
		}
	}
	for id, n := range same { //lint:order each candidate by itself; most nodes have none of the group
		if at, is := slices.BinarySearchFunc(p.heap, id, candidate.compareID); is {
			p.heap[at].same = n
		}
	}
	w.arrays.heap = p.heap
	heap.Init(&p.heap)
	if len(g.Volumes) > 0 {
		book := w.claims()
		p.refuses = func(name string, n *cluster.Node) string { return book.Refusal(j.Namespace, g, name, n) }
		p.unclaimable = func(name string) string { return book.Unclaimable(j.Namespace, g, name) }
	}
	return p
}

// takenNodes returns the nodes that take no allocation of the group because an allocation that the group keeps
// apart from is there. It returns nil for a group whose allocations may share a node.
func takenNodes(v View, j *cluster.Job, g *cluster.TaskGroup, placed []*cluster.Allocation, left map[cluster.AllocID]bool) map[cluster.NodeID]bool {
	if j.Type.EveryNode() || !j.DistinctHosts && !g.DistinctHosts {
		return nil
	}
	taken := make(map[cluster.NodeID]bool)
	for a := range v.UnconcludedAllocs(j.Key()) {
		if !a.Terminal() && !left[a.ID] && j.KeepsApart(g.Name, a) {
			taken[a.NodeID] = true
		}
	}
	for _, a := range placed {
		if j.KeepsApart(g.Name, a) {
			taken[a.NodeID] = true
		}
	}
	return taken
}

// assign chooses the devices of the next allocation on the node, if the group requests any. It reports false
// if there are not enough.
func (p *placer) assign(n *cluster.Node) bool {
	if p.next == nil {
		return true
	}
	next, ok := p.devices.Assign(n, p.world.heldOn(n.ID).devices)
	if ok {
		p.next[n.ID] = next
	} else {
		delete(p.next, n.ID)
	}
	return ok
}

// fits reports whether one more allocation fits.
func (p *placer) fits(c candidate) bool {
	if p.distinct && c.taken || p.next != nil && p.next[c.node.ID].Devices == nil {
		return false
	}
	return c.fits(p.need) && p.world.hasFree(p.group, c.node)
}

// left is [room.left]. A node with devices that the group prefers counts as fuller than any other.
func (p *placer) left(r *room) int64 {
	left := r.left(p.need)
	if p.next != nil {
		left -= int64(p.next[r.node.ID].Score) << 20 // room.left is below 2^20
	}
	return left
}

// spot is a place for one allocation. The zero value is none.
type spot struct {
	node *cluster.Node
	// devices are nil if the group requests none.
	devices *cluster.AssignedDevices
}

// take reserves room and devices on the candidate for one allocation, and updates it.
func (p *placer) take(c *candidate) spot {
	s := spot{node: c.node}
	c.take(p.need)
	c.same++
	c.taken = true
	if p.next != nil {
		s.devices = p.next[c.node.ID].Devices
		p.world.heldOn(c.node.ID).devices.Add(s.devices)
		p.assign(c.node)
	}
	c.left = p.left(c.room)
	return s
}

// place reserves room for one allocation of the name and returns its node and devices, or no spot if it fits
// nowhere. It uses the node to avoid only if no other fits.
func (p *placer) place(name string, avoid cluster.NodeID) spot {
	if p.unclaimable != nil && p.unclaimable(name) != "" {
		return spot{}
	}
	best, ok := p.popFor(name)
	if !ok {
		return spot{}
	}
	if best.node.ID == avoid {
		if other, ok := p.popFor(name); ok {
			heap.Push(&p.heap, best)
			best = other
		}
	}
	s := p.take(&best)
	heap.Push(&p.heap, best)
	return s
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
		if c := heap.Pop(&p.heap).(candidate); p.fits(c) {
			return c, true
		}
	}
	return candidate{}, false
}

// placeOn reserves room on the node for an allocation of the name, or returns no spot if the allocation does
// not fit.
func (p *placer) placeOn(name string, id cluster.NodeID) spot {
	for i, c := range p.heap {
		if c.node.ID != id {
			continue
		}
		if !p.fits(c) || p.refuses != nil && p.refuses(name, c.node) != "" {
			return spot{}
		}
		s := p.take(&c)
		p.heap[i] = c
		heap.Fix(&p.heap, i)
		return s
	}
	return spot{}
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
	return a.at < b.at
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
