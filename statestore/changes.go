package statestore

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// changes lists the changes of a transaction that feeds may need. At the commit each feed selects
// the changes that concern it. Most changes concern no feed.
type changes struct {
	// draining are the nodes that drained before the transaction. toggled are the nodes
	// whose drain the transaction has started (true) or ended (false).
	draining drainingNodes // the store's
	toggled  map[cluster.NodeID]bool
	// nodes are the changed nodes that drain or drained before.
	nodes []cluster.NodeID
	// claiming are the nodes whose drain leaves an allocation of which a claim changed.
	claiming []cluster.NodeID
	// around are the groups with allocations on a node that was deleted or registered, or
	// whose reachability changed. The transaction counts these groups again.
	around set[cluster.GroupKey]
	// allocs are the rows after their change. The row before the change is also listed if it was
	// deleted or if its group or node differs.
	allocs []*cluster.Allocation
	// jobs are the jobs that changed, or whose evaluations changed.
	jobs []cluster.JobKey
}

// drainingNodes are the nodes that drain in the newest state. Only a commit writes to it.
// The open transaction and the commit read it.
type drainingNodes map[cluster.NodeID]struct{}

// drains reports whether the node drains now.
func (c *changes) drains(id cluster.NodeID) bool {
	if now, is := c.toggled[id]; is {
		return now
	}
	_, is := c.draining[id]
	return is
}

// drained reports whether the node drains now or drained before.
func (c *changes) drained(id cluster.NodeID) bool {
	_, is := c.draining[id]
	if !is {
		_, is = c.toggled[id]
	}
	return is
}

// apply updates the store's draining nodes.
func (c *changes) apply() {
	//lint:order each key is changed once
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

// keptChanges bounds the memory of each kind that is reused for the next transaction.
const keptChanges = 1 << 10

// reset removes the changes and keeps their memory for the next transaction.
func (c *changes) reset() {
	c.toggled = nil
	c.nodes, c.jobs, c.claiming = emptied(c.nodes), emptied(c.jobs), emptied(c.claiming)
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

// set holds distinct items in the order of insertion. The zero value is empty.
type set[T comparable] struct {
	items []T
	// in holds all items once there were more than fewItems. Until then it is nil.
	in map[T]struct{}
}

// fewItems is the size up to which a linear search is cheaper than a map.
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

// reset empties the set. It keeps the memory of small sets.
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
