package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// drawLosses draws nodes that go down, disconnect or are deleted. Most come back.
func (m *story) drawLosses() {
	d := m.draft.dice("losses")
	for _, kind := range []struct {
		is     trait
		change scenario.Change
		back   scenario.Change
	}{
		{nodeDown, scenario.NodeDown, scenario.NodeReady},
		{nodeAway, scenario.NodeDisconnected, scenario.NodeReady},
		{nodeDelete, scenario.NodeDelete, scenario.NodeRegister},
	} {
		for range m.draft.often(d, kind.is) {
			id, at := m.somewhere(d), m.moment(d)
			if e := one(d, m.drains...); e.request.Deadline > 0 && d.odds(0.3) {
				// It is lost when its deadline passes.
				id, at = e.node, max(0, e.at+min(e.request.Deadline, m.draft.calm)-d.span(10*time.Millisecond, 10*time.Second))
			}
			if kind.is == nodeDelete && d.odds(0.5) { // it is unreachable before it is deleted
				away := one(d, scenario.NodeDown, scenario.NodeDisconnected)
				m.draft.happens(max(0, at-d.span(10*time.Millisecond, time.Minute)), &scenario.NodeChange{Nodes: ids(id), Change: away})
			}
			m.lose(d, id, at, kind.change, kind.back)
		}
	}
}

// lose changes a node, and mostly reverts the change later.
func (m *story) lose(d dice, id cluster.NodeID, at time.Duration, change, back scenario.Change) {
	m.draft.happens(at, &scenario.NodeChange{Nodes: ids(id), Change: change})
	m.anchor(at)
	if d.odds(0.8) {
		m.draft.happens(at+d.span(500*time.Millisecond, 2*time.Minute), &scenario.NodeChange{Nodes: ids(id), Change: back})
	}
}

// drawReturns draws registrations and changes of eligibility.
func (m *story) drawReturns() {
	d := m.draft.dice("returns")
	for range m.draft.often(d, nodeRegister) {
		id := m.somewhere(d)
		if len(m.population.spare) > 0 && d.odds(0.6) {
			id = one(d, m.population.spare...)
		}
		m.draft.happens(m.moment(d), &scenario.NodeChange{Nodes: ids(id), Change: scenario.NodeRegister})
	}
	for range m.draft.often(d, nodeEligible) {
		change := one(d, scenario.NodeEligible, scenario.NodeEligible, scenario.NodeIneligible)
		m.draft.happens(m.moment(d), &scenario.NodeChange{Nodes: ids(m.somewhere(d)), Change: change})
	}
}

func ids(of ...cluster.NodeID) []cluster.NodeID { return of }
