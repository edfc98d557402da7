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
}

// turn names the beginning of one stage on one node.
type turn struct {
	node  cluster.NodeID
	stage cluster.Stage
}

func newMoment(v View, now time.Time, p Policy) *moment {
	return &moment{view: v, now: now, policy: p.withDefaults(), findings: newFindings(0)}
}

// moment is that of the step.
func (l Look) moment(p Policy) *moment {
	m := newMoment(l.View, l.Now, p)
	if l.findings != nil {
		m.findings = l.findings
	}
	return m
}

// node returns the node, or nil.
func (m *moment) node(id cluster.NodeID) *cluster.Node { return m.findings.node(m.view, id) }

// consumers counts the node's consumers.
func (m *moment) consumers(id cluster.NodeID) int { return m.findings.countConsumers(m.view, id) }

// findings are what has been found out about the nodes of one view, at one time and under one
// policy: whatever has something on a node asks for it.
type findings struct {
	nodes map[cluster.NodeID]*cluster.Node
	// counted are the consumers of nodes.
	counted map[cluster.NodeID]int
	// turns are the answers of turnHasCome, pluginsTurns the nodes whose storage plugins
	// it said yes for, each once.
	turns        map[turn]bool
	pluginsTurns []cluster.NodeID
}

// newFindings returns one with room for so many nodes.
func newFindings(nodes int) *findings {
	return &findings{
		nodes: make(map[cluster.NodeID]*cluster.Node, nodes), counted: map[cluster.NodeID]int{},
		turns: map[turn]bool{},
	}
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
