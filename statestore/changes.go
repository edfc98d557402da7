package statestore

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// changes is where a transaction has changed the state, as far as feeds care. What
// concerns a feed is sorted out for each when it is told: most of it concerns none.
type changes struct {
	// draining are the nodes that drained before the transaction, toggled those of
	// which it has begun or ended a drain, with whether they drain now.
	draining drainingNodes // the store's
	toggled  map[cluster.NodeID]bool
	// nodes are those that changed and drain, or did before.
	nodes []cluster.NodeID
	// around are the groups with something on a node that was deleted or registered,
	// became reachable or ceased to be: the transaction accounts them anew.
	around set[cluster.GroupKey]
	// allocs are rows as they were before and after, where these are of different
	// groups or nodes.
	allocs []*cluster.Allocation
	// jobs are those that changed, or whose evaluations did.
	jobs []cluster.JobKey
}

// drainingNodes are the nodes that drain in the newest state. It is written to only
// while a transaction is committed, and read by the transaction that is open, or while
// one is committed.
type drainingNodes map[cluster.NodeID]struct{}

// drains reports whether the node drains now.
func (c *changes) drains(id cluster.NodeID) bool {
	if now, is := c.toggled[id]; is {
		return now
	}
	_, is := c.draining[id]
	return is
}

// drained reports whether the node drains now or did before.
func (c *changes) drained(id cluster.NodeID) bool {
	_, is := c.draining[id]
	if !is {
		_, is = c.toggled[id]
	}
	return is
}

// apply makes the nodes that drain now those of the store.
func (c *changes) apply() {
	for id, now := range c.toggled {
		if now {
			c.draining[id] = struct{}{}
		} else {
			delete(c.draining, id)
		}
	}
}

// toggle notes whether the node drains.
func (c *changes) toggle(id cluster.NodeID, drains bool) {
	if c.toggled == nil {
		c.toggled = make(map[cluster.NodeID]bool)
	}
	c.toggled[id] = drains
}

func (c *changes) node(before, after *cluster.Node) {
	n := after
	if n == nil {
		n = before
	}
	if before.Draining() != after.Draining() {
		c.toggle(n.ID, after.Draining())
	}
	if before.Draining() || after.Draining() {
		c.nodes = append(c.nodes, n.ID)
	}
}

func (c *changes) alloc(before, after *cluster.Allocation) {
	if after != nil {
		c.allocs = append(c.allocs, after)
	}
	if before != nil && (after == nil || before.NodeID != after.NodeID || before.GroupKey() != after.GroupKey()) {
		c.allocs = append(c.allocs, before)
	}
}

func (c *changes) job(before, after *cluster.Job) {
	if after == nil {
		after = before
	}
	c.jobs = append(c.jobs, after.Key())
}

func (c *changes) eval(before, after *cluster.Evaluation) {
	if after == nil {
		after = before
	}
	c.jobs = append(c.jobs, after.JobKey())
}

// keptChanges is how many changes of a kind there is room for after a transaction: more
// are rare, and their room is given back.
const keptChanges = 1 << 10

// reset forgets the changes, for the next transaction to use their room.
func (c *changes) reset() {
	c.toggled = nil
	c.nodes, c.jobs = emptied(c.nodes), emptied(c.jobs)
	c.allocs = emptied(c.allocs)
	c.around.reset()
}

func emptied[T any](s []T) []T {
	if cap(s) > keptChanges {
		return nil
	}
	clear(s)
	return s[:0]
}

// set holds items in the order in which they came, each once. The zero value is
// empty.
type set[T comparable] struct {
	items []T
	// in has them all once there have been more than fewItems, and is nil until then.
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

// reset empties the set, and keeps its room if it is not too much.
func (s *set[T]) reset() {
	if len(s.items) > keptChanges {
		*s = set[T]{}
		return
	}
	s.items = emptied(s.items)
	clear(s.in)
}

// take returns the items and empties the set.
func (s *set[T]) take() []T {
	items := s.items
	*s = set[T]{}
	return items
}
