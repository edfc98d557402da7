package swarm

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// drawFaults draws faults of every name that the scenario has: a few at the next opportunities, or
// many by chance in a period.
func (m *story) drawFaults() {
	for _, kind := range scenario.Faults() {
		d := m.draft.dice("fault/" + string(kind.Name))
		for range m.strikes(d, kind.Name) {
			f := &scenario.Fault{Name: kind.Name, On: m.drawTarget(d, kind.On)}
			if kind.Delays != scenario.NoDelay {
				f.Delay = d.ranging(kind.Usual.Min, kind.Usual.Max)
			}
			at := m.moment(d)
			switch {
			case kind.Lasts: // it strikes once
			case isRare(kind): // on any node
				f.On, f.For, f.Probability, f.Count = "", m.draft.calm, one(d, 0.3, 0.6, 1), 2*m.draft.shape.times
			case kind.Name == scenario.StoreRestore: // it costs as much as many entries
			case kind.Operates && d.odds(0.5):
				f.For = d.span(10*time.Second, m.draft.calm)
				f.Probability = one(d, 0.1, 0.3, 0.7)
				f.Count = m.draft.shape.times
			case d.odds(0.5):
				f.Count = d.between(1, 2*m.draft.shape.times)
			default:
				f.For = d.span(10*time.Second, m.draft.calm)
				f.Probability = one(d, 0.02, 0.05, 0.1, 0.3)
				f.Count = 5 * m.draft.shape.times
			}
			if (kind.On == scenario.OnAllocs || isRare(kind)) && d.odds(0.5) {
				at = 0 // for the allocations that exist at the beginning
			}
			m.draft.happens(at, f)
		}
	}
}

// strikes draws how often a fault is armed.
func (m *story) strikes(d dice, name scenario.FaultName) int {
	n := m.draft.times(d, faultTrait(name))
	switch {
	case name == scenario.StoreRestore && (m.restored || m.draft.has(restores) && !m.draft.shape.restoresElse):
		return 0 // it costs as much as many entries, and once is enough
	case name.Kind().Operates:
		if d.odds(oddsOfOperating) {
			return 0 // the same operation happens at set times too
		}
		return min(n, 1)
	case name != scenario.SchedUnplaceable:
		return n
	case !d.odds(m.draft.shape.unplaceable):
		return 0
	}
	return min(n, 1)
}

// oddsOfOperating is the probability that a fault which performs an operation is not armed although
// the scenario has the trait. Such operations hide other events.
const oddsOfOperating = 0.4

// isRare reports whether a fault has few opportunities: the calls of controllers, and the copies of data.
func isRare(kind scenario.FaultKind) bool {
	return kind.Data || kind.Name == scenario.ControllerHang || kind.Name == scenario.ControllerMute
}

// drawTarget draws the target of a fault. Empty means any target.
func (m *story) drawTarget(d dice, kind scenario.Target) string {
	if d.odds(0.5) {
		return ""
	}
	switch kind {
	case scenario.OnWrites:
		return one(d, "drainer", "drainer", "scheduler", "clients", "operator", "marks", "marks", "completion", "plan", "report", "barrier")
	case scenario.OnNode:
		return string(m.drained(d))
	case scenario.OnAllocs:
		if d.odds(0.5) {
			return scenario.Selector{Node: m.drained(d)}.String()
		}
	}
	g := m.touched(d, m.population.groups)
	if g == nil || kind == scenario.NoTarget {
		return ""
	}
	s := scenario.Selector{Job: g.key.Job}
	if kind != scenario.OnJob {
		s.Group = g.key.Name
	}
	return s.String()
}
