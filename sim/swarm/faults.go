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
			if least, most := delays(kind.Name); most > 0 {
				f.Delay = d.ranging(least, most)
			}
			at := m.moment(d)
			switch {
			case kind.Lasts: // it strikes once
			case hitsControllers(kind.Name): // which are called rarely, on any node
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
			if (decidesBehaviour(kind.Name) || hitsControllers(kind.Name)) && d.odds(0.5) {
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

// decidesBehaviour reports whether a fault decides the behaviour of a new allocation.
func decidesBehaviour(name scenario.FaultName) bool {
	return name == scenario.ClientSlowStop || name == scenario.ClientNeverStop || name == scenario.ClientFailNew || name == scenario.ClientMute ||
		name == scenario.DriverLie
}

// hitsControllers reports whether a fault strikes at the calls of controllers.
func hitsControllers(name scenario.FaultName) bool {
	return name == scenario.ControllerHang || name == scenario.ControllerMute
}

// delays returns the bounds of a fault's delay. Zero means no delay.
func delays(name scenario.FaultName) (least, most time.Duration) {
	switch name {
	case scenario.ApplySlow, scenario.ApplyAmbiguousLate:
		return 100 * time.Millisecond, 30 * time.Second
	case scenario.LeaderLoseMidBatch:
		return time.Millisecond, 100 * time.Millisecond
	case scenario.LeaderFlap:
		return 50 * time.Millisecond, 20 * time.Second
	case scenario.LeaderTwo, scenario.ViewStale:
		return 100 * time.Millisecond, 20 * time.Second
	case scenario.LeaderPaused, scenario.SchedSlow, scenario.ClientCrash, scenario.NodeReboot, scenario.DiskFull, scenario.RecordLose:
		return 100 * time.Millisecond, time.Minute
	case scenario.WatchDelay, scenario.WatchCoalesce, scenario.WatchSpurious, scenario.SchedLateAnswer:
		return 10 * time.Millisecond, 20 * time.Second
	case scenario.SchedUnplaceable:
		return 5 * time.Second, 3 * time.Minute
	case scenario.NodeCrash, scenario.NodeDisconnect:
		return time.Second, 3 * time.Minute
	case scenario.DriverCrash, scenario.DeviceCrash, scenario.StorageCrash, scenario.StorageSlow:
		return 50 * time.Millisecond, 10 * time.Second
	case scenario.DriverHang, scenario.ShimKill, scenario.StorageHang:
		return 10 * time.Millisecond, time.Minute
	case scenario.ControllerHang, scenario.ControllerMute:
		return time.Second, 4 * time.Minute
	case scenario.NodeReturn, scenario.DrainAgain, scenario.MountBusy,
		scenario.DeviceHang, scenario.DeviceSick, scenario.DeviceVanish, scenario.DeviceRename, scenario.DeviceMute:
		return 10 * time.Millisecond, 2 * time.Minute
	case scenario.APITimeout, scenario.DrainUpdate, scenario.DrainCancel, scenario.JobEdit, scenario.JobScale,
		scenario.JobPurge, scenario.StoreRestore:
		return 10 * time.Millisecond, 30 * time.Second
	case scenario.ClockForward:
		return time.Second, maxForward
	case scenario.ClockBack:
		return time.Second, maxBack
	case scenario.ClockSkew:
		return 100 * time.Millisecond, maxSkew / 2
	}
	return 0, 0
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
