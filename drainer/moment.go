package drainer

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// moment is what decisions are made from: a view, a time and a policy, and what
// has been found out about them. It lives as long as one step, one re-check or
// one report.
type moment struct {
	view      View
	now       time.Time
	policy    Policy
	*findings // never nil
	// turns are the answers of turnHasCome.
	turns map[turn]bool
}

// turn names the beginning of one stage on one node.
type turn struct {
	node  cluster.NodeID
	stage cluster.Stage
}

func newMoment(v View, now time.Time, p Policy) *moment {
	return newMomentOf(v, now, p, newFindings(0))
}

// newMomentOf returns a moment of a view of which something has been found out.
func newMomentOf(v View, now time.Time, p Policy, f *findings) *moment {
	return &moment{view: v, now: now, policy: p.withDefaults(), findings: f, turns: map[turn]bool{}}
}

// moment is that of the step.
func (l Look) moment(p Policy) *moment {
	if l.findings == nil {
		return newMoment(l.View, l.Now, p)
	}
	return newMomentOf(l.View, l.Now, p, l.findings)
}

// node returns the node, or nil.
func (m *moment) node(id cluster.NodeID) *cluster.Node { return m.findings.node(m.view, id) }

// consumers counts the node's consumers.
func (m *moment) consumers(id cluster.NodeID) int { return m.findings.countConsumers(m.view, id) }

// findings are what has been found out about the nodes of one view: whatever has something
// on a node asks for it.
type findings struct {
	nodes map[cluster.NodeID]*cluster.Node
	// counted are the consumers of nodes.
	counted map[cluster.NodeID]int
	// pluginsTurns are the nodes whose storage plugins somebody found to have their turn.
	pluginsTurns []cluster.NodeID
}

// newFindings returns one with room for so many nodes.
func newFindings(nodes int) *findings {
	return &findings{nodes: make(map[cluster.NodeID]*cluster.Node, nodes), counted: map[cluster.NodeID]int{}}
}

// node returns the node of the view, or nil.
func (f *findings) node(v View, id cluster.NodeID) *cluster.Node {
	n, known := f.nodes[id]
	if !known {
		n = v.Node(id)
		f.nodes[id] = n
	}
	return n
}

// countConsumers counts the node's consumers in the view.
func (f *findings) countConsumers(v View, id cluster.NodeID) int {
	count, known := f.counted[id]
	if !known {
		count = v.Consumers(id)
		f.counted[id] = count
	}
	return count
}
