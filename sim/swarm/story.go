package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// story draws the events of a scenario: drains, losses of nodes, and what happens to leaders.
type story struct {
	*population
	// drains are the drains that begin, in no order.
	drains []*episode
	// restored is true if a snapshot is restored at a set time.
	restored bool
	// anchors are the times of important events.
	anchors []time.Duration
}

// drawStory draws the events besides drains and faults.
func (m *story) drawStory() {
	changes := &edits{m}
	m.drawUpdates()
	m.drawCancels()
	m.drawRepeats()
	changes.drawEdits()
	changes.drawEnds()
	changes.drawExits()
	changes.drawPlaces()
	changes.drawVolumeChanges()
	m.drawLosses()
	m.drawReturns()
	changes.drawRaces()
	m.drawElections()
	m.drawClocks()
}

// moment draws the time of an event. Most events come soon after an anchor, because such events find
// most. The others come at any time.
func (m *story) moment(d dice) time.Duration {
	if len(m.anchors) > 0 && d.odds(0.7) {
		return one(d, m.anchors...) + d.span(10*time.Millisecond, 30*time.Second)
	}
	return d.at(0, m.calm)
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
	return one(d, m.nodes...).id
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
