package statestore

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// changes is where a transaction has changed the state, as far as feeds care.
type changes struct {
	// nodes are those whose row changed; drained those of them that drained
	// before; reachability those that were deleted, registered or took another
	// status.
	nodes, drained, reachability set[cluster.NodeID]
	// allocs are the groups and nodes of allocations that changed.
	allocs set[groupOnNode]
	// jobs are those that changed, or whose evaluations did.
	jobs set[cluster.JobKey]
}

type groupOnNode struct {
	group cluster.GroupKey
	node  cluster.NodeID
}

func newChanges() *changes { return &changes{} }

func (c *changes) node(before, after *cluster.Node) {
	n := after
	if n == nil {
		n = before
	}
	c.nodes.add(n.ID)
	if before.Draining() {
		c.drained.add(n.ID)
	}
	if before == nil || after == nil || before.Status != after.Status {
		c.reachability.add(n.ID)
	}
}

func (c *changes) alloc(before, after *cluster.Allocation) {
	for _, a := range []*cluster.Allocation{before, after} {
		if a != nil {
			c.allocs.add(groupOnNode{a.GroupKey(), a.NodeID})
		}
	}
}

func (c *changes) job(before, after *cluster.Job) {
	if after == nil {
		after = before
	}
	c.jobs.add(after.Key())
}

func (c *changes) eval(before, after *cluster.Evaluation) {
	if after == nil {
		after = before
	}
	c.jobs.add(after.JobKey())
}

// news is what one commit has for feeds.
type news struct {
	// nodes drain, or did before, and they or one of their allocations changed.
	nodes set[cluster.NodeID]
	// groups have an allocation on such a node that changed.
	groups set[cluster.GroupKey]
	// groupsOfFollowed and jobs are for those who follow the job.
	groupsOfFollowed set[cluster.GroupKey]
	jobs             set[cluster.JobKey]
}

// news sorts out whom the changes concern, in the state that has them.
func (c *changes) news(r reads) *news {
	n := &news{jobs: c.jobs}
	draining := make(map[cluster.NodeID]bool)
	drains := func(id cluster.NodeID) bool {
		d, known := draining[id]
		if !known {
			d = c.drained.has(id) || r.Node(id).Draining()
			draining[id] = d
		}
		return d
	}
	for _, id := range c.nodes.items {
		if drains(id) {
			n.nodes.add(id)
		}
	}
	for _, a := range c.allocs.items {
		if drains(a.node) {
			n.nodes.add(a.node)
			n.groups.add(a.group)
		} else {
			n.groupsOfFollowed.add(a.group)
		}
	}
	for _, id := range c.reachability.items {
		for a := range r.LiveAllocsByNode(id) {
			n.groupsOfFollowed.add(a.GroupKey())
		}
	}
	return n
}

// set holds items in the order in which they came, each once. The zero value is
// empty.
type set[T comparable] struct {
	items []T
	// in has them all once there are more than fewItems, and is nil until then.
	in map[T]struct{}
}

// fewItems is how many items are looked through one by one: most entries touch no more,
// and a map costs more than that.
const fewItems = 8

func (s *set[T]) add(item T) {
	if s.has(item) {
		return
	}
	s.items = append(s.items, item)
	switch {
	case s.in != nil:
		s.in[item] = struct{}{}
	case len(s.items) > fewItems:
		s.in = make(map[T]struct{}, 2*len(s.items))
		for _, i := range s.items {
			s.in[i] = struct{}{}
		}
	}
}

func (s *set[T]) has(item T) bool {
	if s.in == nil {
		return slices.Contains(s.items, item)
	}
	_, ok := s.in[item]
	return ok
}

// take returns the items and empties the set.
func (s *set[T]) take() []T {
	items := s.items
	*s = set[T]{}
	return items
}
