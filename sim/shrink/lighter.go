package shrink

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// families returns families of similar faults, each from the lightest to the heaviest. A lighter
// fault is easier to understand.
func families() [][]scenario.FaultName {
	return [][]scenario.FaultName{
		{scenario.ApplySlow, scenario.ApplyFull, scenario.ApplyReject, scenario.ApplyAmbiguousLost, scenario.ApplyAmbiguousApplied, scenario.ApplyAmbiguousLate},
		{scenario.WatchSpurious, scenario.WatchDelay, scenario.WatchCoalesce},
		{scenario.SchedSlow, scenario.SchedLateAnswer, scenario.SchedFailEval, scenario.SchedUnplaceable},
		{scenario.LeaderPaused, scenario.LeaderLoseMidBatch, scenario.LeaderFlap, scenario.LeaderTwo},
		{scenario.ClientSlowStop, scenario.ClientMute, scenario.ClientFailNew, scenario.ClientNeverStop},
		{scenario.NodeDisconnect, scenario.NodeCrash},
		{scenario.APIDup, scenario.APITimeout},
		{scenario.DrainUpdate, scenario.DrainCancel, scenario.DrainPause, scenario.PauseAll, scenario.DrainAgain},
		{scenario.JobEdit, scenario.JobScale, scenario.JobPurge},
		{scenario.ClockSkew, scenario.ClockForward, scenario.ClockBack},
	}
}

// faultWeight returns the weight of a fault. A random or repeated fault is heavier than one that
// strikes once.
func faultWeight(f *scenario.Fault) int {
	weight := 1
	for _, family := range families() {
		weight += max(0, slices.Index(family, f.Name))
	}
	if f.Probability != 0 {
		weight += len(families())
	}
	if !strikesOnce(f) {
		weight += len(families())
	}
	return weight
}

// strikesOnce reports whether a fault strikes exactly once, at its first opportunity.
func strikesOnce(f *scenario.Fault) bool {
	return (f.Probability == 0 || f.Probability >= 1) && f.For == 0 && f.Count <= 1
}

// lighter replaces faults by lighter ones of their family. to returns the index of the new one.
func lighter(to func(at int) int) func(*scenario.Scenario) []edit {
	return func(s *scenario.Scenario) (edits []edit) {
		for i := range s.Events {
			f, is := s.Events[i].Op.(*scenario.Fault)
			if !is {
				continue
			}
			for _, family := range families() {
				if at := slices.Index(family, f.Name); at > 0 {
					edits = append(edits, func(d *draft) { replaceFault(d.Events[i].Op.(*scenario.Fault), family[to(at)]) })
				}
			}
		}
		return edits
	}
}

func lightest(int) int       { return 0 }
func nextLighter(at int) int { return at - 1 }

// replaceFault replaces a fault by another.
func replaceFault(f *scenario.Fault, by scenario.FaultName) {
	f.Name = by
	switch by.Kind().Delays {
	case scenario.NoDelay:
		f.Delay = scenario.Range{}
	case scenario.MustDelay:
		if f.Delay == (scenario.Range{}) {
			f.Delay = scenario.Range{Min: scenario.DefaultLate, Max: scenario.DefaultLate}
		}
	}
}

// singleStrikes makes repeated faults strike once.
func singleStrikes(s *scenario.Scenario) (edits []edit) {
	for i := range s.Events {
		if f, is := s.Events[i].Op.(*scenario.Fault); is && !strikesOnce(f) {
			edits = append(edits, func(d *draft) {
				f := d.Events[i].Op.(*scenario.Fault)
				f.Probability, f.For, f.Count = 0, 0, 0
			})
		}
	}
	return edits
}
