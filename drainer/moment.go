package drainer

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// moment is what decisions are made from: a view, a time and a policy, and what
// has been found out about them. It lives as long as one step, one re-check or
// one report.
type moment struct {
	view   View
	now    time.Time
	policy Policy
	// turns remembers the answers of turnHasCome, nodes those of node.
	turns map[turn]bool
	nodes map[cluster.NodeID]*cluster.Node
}

// turn names the beginning of one stage on one node.
type turn struct {
	node  cluster.NodeID
	stage cluster.Stage
}

func newMoment(v View, now time.Time, p Policy) *moment {
	return &moment{
		view: v, now: now, policy: p.withDefaults(),
		turns: map[turn]bool{}, nodes: map[cluster.NodeID]*cluster.Node{},
	}
}

// node returns the node, or nil. It is remembered: every group that has something on
// it asks for it.
func (m *moment) node(id cluster.NodeID) *cluster.Node {
	n, known := m.nodes[id]
	if !known {
		n = m.view.Node(id)
		m.nodes[id] = n
	}
	return n
}
