package rules

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Planner decides from a view, a time and a policy. It caches facts that many decisions need. It is used for one step, one re-check or one report, by one goroutine.
type Planner struct {
	view   View
	now    time.Time
	policy Policy

	nodes map[cluster.NodeID]*cluster.Node
	turns map[turn]bool
	users map[cluster.NodeID]users // nil until a decision needs them
	// pauseOfAll is the pause of all drains, or nil. pauseRead means that it was read.
	pauseOfAll *cluster.DrainPause
	pauseRead  bool
}

// turn is one stage on one node.
type turn struct {
	node  cluster.NodeID
	stage cluster.Stage
}

// NewPlanner returns a snapshot of the view at a time. Zero values of the policy are its
// defaults.
func NewPlanner(v View, now time.Time, p Policy) *Planner {
	return &Planner{
		view: v, now: now, policy: p.WithDefaults(),
		nodes: make(map[cluster.NodeID]*cluster.Node, 16), turns: map[turn]bool{},
	}
}

// Node returns the node, or nil.
func (s *Planner) Node(id cluster.NodeID) *cluster.Node {
	n, cached := s.nodes[id]
	if !cached {
		n = s.view.Node(id)
		s.nodes[id] = n
	}
	return n
}

// paused reports whether the drain of a draining node is paused, by its own pause or by the pause of all.
func (s *Planner) paused(n *cluster.Node) bool { return !s.pausedSince(n).IsZero() }

// pausedSince returns since when the drain of a draining node is paused without a break, or zero.
func (s *Planner) pausedSince(n *cluster.Node) time.Time {
	if !s.pauseRead {
		s.pauseRead = true
		if v, has := s.view.(PauseView); has {
			s.pauseOfAll = v.DrainPause()
		}
	}
	return n.Drain.PausedSince(s.pauseOfAll)
}

// passed reports whether the drain of a draining node is forced, or its deadline has come. The deadline of a paused
// drain does not come: it moves when the drain is resumed.
func (s *Planner) passed(n *cluster.Node) bool { return n.Drain.Strategy.Passed(s.now) && !s.paused(n) }
