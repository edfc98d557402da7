package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// drawStory draws what happens to drains, to what they drain, and to those who do it.
func (m *maker) drawStory() {
	m.drawUpdates()
	m.drawCancels()
	m.drawRepeats()
	m.drawEdits()
	m.drawEnds()
	m.drawExits()
	m.drawPlaces()
	m.drawLosses()
	m.drawReturns()
	m.drawRaces()
	m.drawElections()
	m.drawClocks()
}

// moment draws when something happens. What happens soon after something else tells
// most; what happens at any time is for what nobody has thought of.
func (m *maker) moment(d dice) time.Duration {
	if len(m.anchors) > 0 && d.odds(0.7) {
		return one(d, m.anchors...) + d.span(10*time.Millisecond, 30*time.Second)
	}
	return d.at(0, m.calm)
}

// anchor has other things happen about a time.
func (m *maker) anchor(at time.Duration) { m.anchors = append(m.anchors, at) }

// drained draws a node that drains at some time.
func (m *maker) drained(d dice) cluster.NodeID { return one(d, m.drains...).node }

// somewhere draws a node, one that drains rather than another.
func (m *maker) somewhere(d dice) cluster.NodeID {
	if d.odds(0.6) {
		return m.drained(d)
	}
	return one(d, m.nodes...).id
}

// touched draws a group, one with allocations on a node that drains rather than
// another; nil if there is none.
func (m *maker) touched(d dice, groups []*group) *group {
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
