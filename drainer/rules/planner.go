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
	// surge means that the scheduler can place a replacement beside an allocation.
	surge bool
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
	beside, can := v.(SurgeView)
	return &Planner{
		view: v, now: now, policy: p.WithDefaults(), surge: can && beside.PlacesBeside(),
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
