package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// story draws the events of a scenario: drains, losses of nodes, and events of leaders.
type story struct {
	draft      *draft
	population *population
	// drains are the drains that begin, in no order.
	drains []*episode
	// restored is true if a snapshot is restored at a set time.
	restored bool
	// anchors are the times of important events.
	anchors []time.Duration
}

// drawStory draws the events besides drains and faults.
func (m *story) drawStory() {
	changes := &edits{m.draft, m.population, m}
	m.drawUpdates()
	m.drawCancels()
	m.drawRepeats()
	m.drawConfirms()
	changes.drawEdits()
	changes.drawEnds()
	changes.drawExits()
	changes.drawLastFailures()
	changes.drawVersions()
	changes.drawPolicies()
	changes.drawIntervals()
	changes.drawPlaces()
	changes.drawVolumeChanges()
	m.drawLosses()
	m.drawReturns()
	changes.drawRaces()
	m.drawElections()
	m.drawClocks()
	m.drawServices()
	m.drawPauses()
	changes.drawSurgeEdits()
}

// moment draws the time of an event. Most events come soon after an anchor, because such events find
// most. The others come at any time.
func (m *story) moment(d dice) time.Duration {
	if len(m.anchors) > 0 && d.odds(0.7) {
		return one(d, m.anchors...) + d.span(10*time.Millisecond, 30*time.Second)
	}
	return d.at(0, m.draft.calm)
}

// anchor makes other events come soon after a time.
func (m *story) anchor(at time.Duration) { m.anchors = append(m.anchors, at) }

// drained draws a node with a drain.
func (m *story) drained(d dice) cluster.NodeID { return one(d, m.drains...).node }

// somewhere draws a node, mostly one with a drain.
func (m *story) somewhere(d dice) cluster.NodeID {
	if d.odds(0.6) {
		return m.drained(d)
	}
	return one(d, m.population.nodes...).id
}

// touched draws a group, if possible one with allocations on a node with a drain. It returns nil if
// groups is empty.
func (m *story) touched(d dice, groups []*group) *group {
	if len(groups) == 0 {
		return nil
	}
	node := m.drained(d)
	from := d.IntN(len(groups))
	for i := range groups {
		g := groups[(from+i)%len(groups)]
		for _, on := range g.on {
			if on == node {
				return g
			}
		}
	}
	return groups[from]
}

// drawElections draws elections, pauses, restores and lost memory.
func (m *story) drawElections() {
	d := m.draft.dice("elections")
	for range m.draft.often(d, elections) {
		op := &scenario.Elect{Lost: d.odds(0.5)}
		if d.odds(0.3) {
			op.Server = d.between(1, m.draft.s.Cluster.Servers)
		}
		if d.odds(0.4) {
			op.Unaware = d.span(100*time.Millisecond, 20*time.Second)
		}
		m.draft.happens(m.moment(d), op)
	}
	for range m.draft.often(d, pauses) {
		op := &scenario.Pause{For: d.span(100*time.Millisecond, time.Minute)}
		if d.odds(0.3) {
			op.Server = d.between(1, m.draft.s.Cluster.Servers)
		}
		m.draft.happens(m.moment(d), op)
	}
	if m.draft.times(d, restores) > 0 && d.odds(m.draft.shape.restores) {
		m.draft.happens(m.moment(d), &scenario.Restore{})
		m.restored = true
	}
	for range m.draft.times(d, forgets) {
		m.draft.happens(m.moment(d), &scenario.Forget{})
	}
}

// Bounds of the difference between two clocks, and of one clock step.
const (
	maxSkew    = 5 * time.Second
	maxForward = time.Hour
	maxBack    = 10 * time.Minute
)

// drawClocks draws wrong clocks.
func (m *story) drawClocks() {
	d := m.draft.dice("clocks")
	if m.draft.has(clockSkew) {
		for i := range m.draft.s.Cluster.Servers {
			ahead := d.span(100*time.Millisecond, maxSkew/2)
			m.draft.happens(0, &scenario.Clock{Server: i + 1, Ahead: one(d, ahead, -ahead)})
		}
	}
	for range m.draft.times(d, clockStep) {
		op := &scenario.Clock{Ahead: d.span(time.Second, maxForward)}
		if d.odds(0.5) {
			op.Ahead = -d.span(time.Second, maxBack)
		}
		if d.odds(0.3) {
			op.Server = d.between(1, m.draft.s.Cluster.Servers)
		}
		at := m.moment(d)
		m.draft.happens(at, op)
		if d.odds(0.5) {
			m.draft.happens(at+d.span(time.Second, time.Minute), &scenario.Clock{Server: op.Server})
		}
	}
}
