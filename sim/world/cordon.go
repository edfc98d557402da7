package world

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// cordon keeps everything from being placed on a node.
type cordon struct {
	world *World
	node  cluster.NodeID
	// since is the index of the state in which the node was eligible; said what was
	// last asked to have written of it, or nil.
	since uint64
	said  shims.Message
	over  bool
}

// cordonAll has nothing placed anywhere for a while.
func (w *World) cordonAll(f *fault) error {
	var cordons []*cordon
	state := w.Truth()
	for n := range state.Nodes() {
		if n.SchedulingEligibility == cluster.NodeEligible {
			cordons = append(cordons, &cordon{world: w, node: n.ID, since: state.Index()})
		}
	}
	if len(cordons) == 0 || !w.chance(f, target{}) {
		return nil
	}
	d := w.struck(f, target{})
	for _, c := range cordons {
		w.insist(c.closed)
	}
	w.after(d, func() error {
		for _, c := range cordons {
			if err := c.end(); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// closed has the node not be used, until it is over.
func (c *cordon) closed() shims.Message {
	n := c.world.Truth().Node(c.node)
	if c.over || n == nil || n.SchedulingEligibility == cluster.NodeIneligible {
		return nil
	}
	c.said = c.world.requests.Eligibility(c.node, cluster.NodeIneligible)
	return c.said
}

// end takes it back.
func (c *cordon) end() error {
	c.over = true
	return c.world.settled(func() shims.Message { return c.said }, func() error { c.world.insist(c.open); return nil })
}

// open has the node be used again, unless a drain has ended on it meanwhile, which
// leaves it as it wants to.
func (c *cordon) open() shims.Message {
	state := c.world.Truth()
	n := state.Node(c.node)
	if n == nil || n.Draining() || n.SchedulingEligibility == cluster.NodeEligible {
		return nil
	}
	for d := range state.DrainsByNode(c.node) {
		if d.EndIndex > c.since {
			return nil
		}
	}
	return c.world.requests.Eligibility(c.node, cluster.NodeEligible)
}
