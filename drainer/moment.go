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
	nodes nodeMemory
}

// turn names the beginning of one stage on one node.
type turn struct {
	node  cluster.NodeID
	stage cluster.Stage
}

func newMoment(v View, now time.Time, p Policy) *moment {
	return &moment{view: v, now: now, policy: p.withDefaults(), turns: map[turn]bool{}, nodes: nodeMemory{}}
}

// moment is that of the step.
func (l Look) moment(p Policy) *moment {
	m := newMoment(l.View, l.Now, p)
	if l.nodes != nil {
		m.nodes = l.nodes
	}
	return m
}

// node returns the node, or nil.
func (m *moment) node(id cluster.NodeID) *cluster.Node { return m.nodes.node(m.view, id) }

// nodeMemory remembers nodes of one view: whatever has something on a node asks for it.
// Nil remembers nothing.
type nodeMemory map[cluster.NodeID]*cluster.Node

// node returns the node of the view, or nil.
func (r nodeMemory) node(v View, id cluster.NodeID) *cluster.Node {
	n, known := r[id]
	if !known {
		n = v.Node(id)
		if r != nil {
			r[id] = n
		}
	}
	return n
}
