package rules

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Snapshot is the input of decisions: a view, a time and a policy. It caches answers that many
// decisions need. It is used for one step, one re-check or one report, by one goroutine.
type Snapshot struct {
	view   View
	now    time.Time
	policy Policy

	nodes map[cluster.NodeID]*cluster.Node
	turns map[turn]bool
	users map[cluster.NodeID]users // nil until a decision needs them
}

// turn is one stage on one node.
type turn struct {
	node  cluster.NodeID
	stage cluster.Stage
}

// NewSnapshot returns a snapshot of the view at a time. Zero values of the policy are its
// defaults.
func NewSnapshot(v View, now time.Time, p Policy) *Snapshot {
	return &Snapshot{
		view: v, now: now, policy: p.WithDefaults(),
		nodes: make(map[cluster.NodeID]*cluster.Node, 16), turns: map[turn]bool{},
	}
}

// Node returns the node, or nil.
func (s *Snapshot) Node(id cluster.NodeID) *cluster.Node {
	n, known := s.nodes[id]
	if !known {
		n = s.view.Node(id)
		s.nodes[id] = n
	}
	return n
}
