package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// drawRaces draws what comes between the plan of an entry and its apply.
func (m *maker) drawRaces() {
	for _, kind := range []struct {
		is     trait
		before scenario.EntryKind
	}{
		{raceMarks, scenario.Marks}, {raceCompletions, scenario.Completions},
		{racePlans, scenario.Plan}, {raceReports, scenario.Report},
	} {
		d := m.dice(string(kind.is))
		for range m.times(d, kind.is) {
			if op := m.drawRace(d, kind.before); op != nil {
				m.happensBefore(m.moment(d), kind.before, op)
			}
		}
	}
}

// drawRace draws what makes a plan untrue; nil if there is nothing that could.
func (m *maker) drawRace(d dice, kind scenario.EntryKind) scenario.Op {
	if kind == scenario.Completions && d.odds(0.4) {
		if op := m.drawPlace(d); op != nil {
			return op
		}
	}
	switch d.between(1, 10) {
	case 1:
		return &scenario.Cancel{Nodes: ids(m.drained(d)), Eligible: d.odds(0.5)}
	case 2:
		return m.drawRequest(d, ids(m.drained(d)))
	case 3:
		if g := m.touched(d, m.groups); g != nil {
			return &scenario.StopAlloc{Alloc: m.drawName(d, g)}
		}
	case 4:
		return m.drawLoss(d)
	}
	g := m.touched(d, m.services())
	if g == nil {
		return nil
	}
	switch d.between(1, 6) {
	case 1:
		return m.drawLimit(d, g)
	case 2:
		return m.drawScale(d, g)
	case 3:
		return m.drawRegroup(d, g)
	case 4:
		return &scenario.Stop{Job: g.key.Job, Purge: d.odds(0.5)}
	}
	return &scenario.Exit{Alloc: m.drawName(d, g), Failed: true}
}

// drawLoss draws the loss of a node, which comes back some time later.
func (m *maker) drawLoss(d dice) *scenario.NodeChange {
	id := m.somewhere(d)
	change, back := scenario.NodeDown, scenario.NodeReady
	switch d.between(1, 3) {
	case 1:
		change = scenario.NodeDisconnected
	case 2:
		change, back = scenario.NodeDelete, scenario.NodeRegister
	}
	m.happens(d.at(m.calm/2, m.calm-time.Second), &scenario.NodeChange{Nodes: ids(id), Change: back})
	return &scenario.NodeChange{Nodes: ids(id), Change: change}
}
