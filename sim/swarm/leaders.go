package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// drawElections draws elections, pauses, restores and lost memory.
func (m *story) drawElections() {
	d := m.dice("elections")
	for range m.often(d, elections) {
		op := &scenario.Elect{Lost: d.odds(0.5)}
		if d.odds(0.3) {
			op.Server = d.between(1, m.s.Cluster.Servers)
		}
		if d.odds(0.4) {
			op.Believes = d.span(100*time.Millisecond, 20*time.Second)
		}
		m.happens(m.moment(d), op)
	}
	for range m.often(d, pauses) {
		op := &scenario.Pause{For: d.span(100*time.Millisecond, time.Minute)}
		if d.odds(0.3) {
			op.Server = d.between(1, m.s.Cluster.Servers)
		}
		m.happens(m.moment(d), op)
	}
	if m.times(d, restores) > 0 && d.odds(m.shape.restores) {
		m.happens(m.moment(d), &scenario.Restore{})
		m.restored = true
	}
	for range m.times(d, forgets) {
		m.happens(m.moment(d), &scenario.Forget{})
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
	d := m.dice("clocks")
	if m.has(clockSkew) {
		for i := range m.s.Cluster.Servers {
			ahead := d.span(100*time.Millisecond, maxSkew/2)
			m.happens(0, &scenario.Clock{Server: i + 1, Ahead: one(d, ahead, -ahead)})
		}
	}
	for range m.times(d, clockStep) {
		op := &scenario.Clock{Ahead: d.span(time.Second, maxForward)}
		if d.odds(0.5) {
			op.Ahead = -d.span(time.Second, maxBack)
		}
		if d.odds(0.3) {
			op.Server = d.between(1, m.s.Cluster.Servers)
		}
		at := m.moment(d)
		m.happens(at, op)
		if d.odds(0.5) {
			m.happens(at+d.span(time.Second, time.Minute), &scenario.Clock{Server: op.Server})
		}
	}
}
