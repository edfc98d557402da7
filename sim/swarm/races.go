package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// drawRaces draws events between the plan of an entry and its apply.
func (m *edits) drawRaces() {
	for _, kind := range []struct {
		is     trait
		before scenario.EntryKind
	}{
		{raceMarks, scenario.Marks}, {raceCompletions, scenario.Completions},
		{racePlans, scenario.Plan}, {raceReports, scenario.Report},
	} {
		d := m.draft.dice(string(kind.is))
		for range m.draft.times(d, kind.is) * m.draft.shape.several {
			at := m.story.moment(d)
			for _, op := range m.drawRace(d, kind.before) {
				m.draft.happensBefore(at, kind.before, op)
			}
		}
	}
}

// drawRace draws operations that invalidate a plan: on its drain, its groups or its nodes. It may
// return none.
func (m *edits) drawRace(d dice, kind scenario.EntryKind) []scenario.Op {
	if kind == scenario.Completions && d.odds(0.4) {
		if op := m.drawPlace(d); op != nil {
			return []scenario.Op{op}
		}
	}
	switch draw := d.between(1, 10); {
	case draw <= 4:
		return m.drawRequests(d)
	case draw <= 5:
		return []scenario.Op{m.drawLoss(d)}
	}
	if g := m.story.touched(d, m.population.services()); g != nil {
		return []scenario.Op{m.drawChange(d, g)}
	}
	return nil
}

// drawRequests draws requests about one or several drains: a cancel, a cancel and a new drain, or an
// update.
func (m *edits) drawRequests(d dice) []scenario.Op {
	var nodes []cluster.NodeID
	for _, e := range some(d, d.between(1, len(m.story.drains)), m.story.drains) {
		nodes = append(nodes, e.node)
	}
	again := m.story.drawRequest(d, nodes)
	if d.odds(0.4) {
		return []scenario.Op{again}
	}
	cancel := &scenario.Cancel{Nodes: nodes, Eligible: d.odds(0.5)}
	if d.odds(0.5) {
		return []scenario.Op{cancel}
	}
	return []scenario.Op{cancel, again}
}

// drawChange draws a change of a group.
func (m *edits) drawChange(d dice, g *group) scenario.Op {
	switch d.between(1, 7) {
	case 1:
		return m.drawLimit(d, g)
	case 2:
		return m.drawScale(d, g)
	case 3:
		return m.drawRegroup(d, g)
	case 4:
		return &scenario.Stop{Job: g.key.Job, Purge: d.odds(0.5)}
	case 5:
		return &scenario.StopAlloc{Alloc: m.drawName(d, g)}
	}
	return &scenario.Exit{Alloc: m.drawName(d, g), Failed: true}
}

// drawLoss draws the loss of a node, and its later return.
func (m *edits) drawLoss(d dice) *scenario.NodeChange {
	id := m.story.somewhere(d)
	change, back := scenario.NodeDown, scenario.NodeReady
	switch d.between(1, 3) {
	case 1:
		change = scenario.NodeDisconnected
	case 2:
		change, back = scenario.NodeDelete, scenario.NodeRegister
	}
	m.draft.happens(d.at(m.draft.calm/2, m.draft.calm-time.Second), &scenario.NodeChange{Nodes: ids(id), Change: back})
	return &scenario.NodeChange{Nodes: ids(id), Change: change}
}
