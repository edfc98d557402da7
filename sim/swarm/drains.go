package swarm

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// fewNodes is the largest number of nodes with which all nodes may be drained and all batch work may
// end. With more nodes this costs as much as many seeds and finds no more.
const fewNodes = 20

// episode is a drain of a node, from its request to its end.
type episode struct {
	node cluster.NodeID
	at   time.Duration
	// key is the request's, or empty.
	key string
	// request is never nil.
	request *scenario.Drain
}

// drawDrains draws which nodes are drained, and when.
func (m *story) drawDrains() {
	d := m.draft.dice("drains")
	count := d.within(m.draft.shape.drains)
	if m.draft.has(drainAll) && len(m.population.nodes) <= fewNodes {
		switch draw := d.between(1, 10); {
		case draw <= 1:
			count = len(m.population.nodes)
		case draw <= 4:
			count++
		}
	}
	nodes := some(d, count, m.loaded())
	at := d.at(0, 3*time.Second)
	for len(nodes) > 0 {
		together := 1
		if d.odds(0.2) {
			together = min(len(nodes), d.within(m.draft.shape.together))
		}
		op := m.drawRequest(d, nodes[:together])
		m.draft.happens(at, op)
		for _, id := range op.Nodes {
			m.drains = append(m.drains, &episode{node: id, at: at, key: op.Key, request: op})
		}
		m.anchor(at)
		if op.Deadline > 0 && op.Deadline < m.draft.calm {
			m.anchor(at + op.Deadline)
		}
		nodes = nodes[together:]
		if m.draft.has(drainTogether) {
			at += one(d, 0, 0, d.span(time.Millisecond, 50*time.Millisecond))
		} else {
			at = d.at(0, m.draft.shape.begun)
		}
	}
}

// loaded returns the ids of the nodes with allocations, and of some without.
func (m *story) loaded() []cluster.NodeID {
	var ids []cluster.NodeID
	for i, n := range m.population.nodes {
		if n.load > 0 || i%5 == 0 {
			ids = append(ids, n.id)
		}
	}
	return ids
}

func (m *story) drawRequest(d dice, nodes []cluster.NodeID) *scenario.Drain {
	op := &scenario.Drain{Nodes: nodes, Deadline: m.drawDeadline(d), IgnoreSystem: m.draft.shows(d, ignoreSystem)}
	if m.draft.has(drainRepeat) && d.odds(0.5) {
		op.Key = fmt.Sprintf("k%d", len(m.drains)+1)
		op.Twice = d.odds(0.3)
	}
	op.MaxSurge = m.drawMaxSurge()
	return op
}

// drawDeadline draws a deadline. Most deadlines pass while faults last.
func (m *story) drawDeadline(d dice) time.Duration {
	switch draw := d.between(1, 100); {
	case draw <= 25:
		return 0
	case draw <= 31:
		return scenario.Force
	case draw <= 34:
		return scenario.Never
	case draw <= 40:
		return d.span(time.Second, 10*time.Second)
	case draw <= 45:
		return time.Minute // so that some are equal
	}
	return d.span(10*time.Second, m.draft.calm+time.Minute)
}

// drawUpdates draws updates of running drains.
func (m *story) drawUpdates() {
	d := m.draft.dice("updates")
	for range m.draft.often(d, drainUpdate) * m.draft.shape.several {
		e := one(d, m.drains...)
		op := m.drawRequest(d, []cluster.NodeID{e.node})
		at := e.at + d.span(time.Second, 2*time.Minute)
		if deadline := e.at + e.request.Deadline; e.request.Deadline > 0 && deadline < m.draft.calm && d.odds(0.5) {
			// Shortly before the deadline, at it, or while its entry is in flight.
			at = max(0, deadline+one(d, -50*time.Millisecond, 0, d.span(time.Millisecond, time.Second)))
		}
		if d.odds(0.2) {
			op.IgnoreSystem = !e.request.IgnoreSystem
		}
		m.draft.happens(at, op)
		m.anchor(at)
		if op.Deadline > 0 && op.Deadline < m.draft.calm-at {
			m.anchor(at + op.Deadline)
		}
	}
}

// drawPauses draws pauses of one drain and of all, some of them one in the other, and some resumed early or twice.
func (m *story) drawPauses() {
	d := m.draft.dice("pauses of drains")
	nodes := func() []cluster.NodeID {
		if d.odds(0.3) {
			return nil // all drains
		}
		return []cluster.NodeID{m.drained(d)}
	}
	for range m.draft.times(d, drainPause) {
		at, op := m.moment(d), &scenario.PauseDrains{Nodes: nodes(), For: d.span(10*time.Millisecond, time.Minute)}
		m.draft.happens(at, op)
		m.anchor(at)
		m.anchor(at + op.For)
		if len(op.Nodes) > 0 && d.odds(0.2) {
			m.draft.happens(at+op.For/2, &scenario.Drain{Nodes: op.Nodes, Deadline: one(d, scenario.Force, time.Minute)})
		}
		again := at + d.span(10*time.Millisecond, time.Minute)
		if d.odds(0.3) {
			m.draft.happens(again, &scenario.PauseDrains{Nodes: nodes(), For: d.span(10*time.Millisecond, time.Minute)})
		}
		if d.odds(0.3) {
			m.draft.happens(again, &scenario.ResumeDrains{Nodes: one(d, op.Nodes, nodes())})
		}
	}
}

// drawCancels draws cancels, and later drains of the same nodes.
func (m *story) drawCancels() {
	d := m.draft.dice("cancels")
	for range m.draft.times(d, drainCancel) {
		e := one(d, m.drains...)
		at := e.at + d.span(20*time.Millisecond, 2*time.Minute)
		m.draft.happens(at, &scenario.Cancel{Nodes: []cluster.NodeID{e.node}, Eligible: d.odds(0.6), Undo: m.draft.dice("undo").odds(0.3)})
		m.anchor(at)
		if m.draft.shows(d, drainAgain) {
			at += one(d, 0, d.span(time.Millisecond, time.Second), d.span(time.Second, time.Minute))
			m.draft.happens(at, m.drawRequest(d, []cluster.NodeID{e.node}))
			m.anchor(at)
		}
	}
	for range m.draft.often(d, drainAgain) {
		e := one(d, m.drains...)
		m.draft.happens(e.at+d.span(10*time.Second, m.draft.calm), m.drawRequest(d, []cluster.NodeID{e.node}))
	}
}

// drawRepeats draws repeated requests, with their key or without.
func (m *story) drawRepeats() {
	d := m.draft.dice("repeats")
	for range m.draft.times(d, drainRepeat) {
		e := one(d, m.drains...)
		again := *e.request
		again.Nodes, again.Twice = []cluster.NodeID{e.node}, false
		if d.odds(0.2) {
			again.Key = ""
		}
		m.draft.happens(e.at+d.span(10*time.Millisecond, m.draft.calm), &again)
	}
}

// drawConfirms draws operators who confirm that no task of an ended drain runs. They may be wrong.
func (m *story) drawConfirms() {
	d := m.draft.dice("confirms")
	for range m.draft.times(d, drainConfirm) {
		e := one(d, m.drains...)
		m.draft.happens(e.at+d.span(10*time.Second, m.draft.calm), &scenario.Confirm{Nodes: []cluster.NodeID{e.node}})
	}
}
