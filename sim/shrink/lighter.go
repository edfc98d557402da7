package shrink

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// weights are the faults, by how much of a reader's mind each takes: those of one
// line do the like, from the lightest to the heaviest.
func weights() [][]scenario.FaultName {
	return [][]scenario.FaultName{
		{scenario.ApplySlow, scenario.ApplyFull, scenario.ApplyReject, scenario.ApplyAmbiguousLost, scenario.ApplyAmbiguousApplied, scenario.ApplyAmbiguousLate},
		{scenario.WatchSpurious, scenario.WatchDelay, scenario.WatchCoalesce},
		{scenario.SchedSlow, scenario.SchedFailEval, scenario.SchedUnplaceable},
		{scenario.LeaderPaused, scenario.LeaderLoseMidBatch, scenario.LeaderFlap, scenario.LeaderTwo},
		{scenario.ClientSlowStop, scenario.ClientMute, scenario.ClientFailNew, scenario.ClientNeverStop},
		{scenario.NodeDisconnect, scenario.NodeCrash},
		{scenario.APIDup, scenario.APITimeout},
		{scenario.DrainUpdate, scenario.DrainCancel, scenario.DrainAgain},
		{scenario.JobEdit, scenario.JobScale, scenario.JobPurge},
		{scenario.ClockSkew, scenario.ClockForward, scenario.ClockBack},
	}
}

// faultWeight is how heavy a fault is. What strikes by chance, or again and again, is
// heavier than what strikes once.
func faultWeight(f *scenario.Fault) int {
	weight := 1
	for _, like := range weights() {
		weight += max(0, slices.Index(like, f.Name))
	}
	if f.Probability != 0 {
		weight += len(weights())
	}
	if !explicit(f) {
		weight += len(weights())
	}
	return weight
}

// explicit reports whether a fault strikes once, at the first opportunity, or as soon
// as it is armed.
func explicit(f *scenario.Fault) bool {
	return (f.Probability == 0 || f.Probability >= 1) && f.For == 0 && f.Count <= 1
}

// lighter makes heavy faults into the lightest of their like, or into the next
// lighter one.
func lighter(to func(at int) int) func(*scenario.Scenario) []edit {
	return func(s *scenario.Scenario) (edits []edit) {
		for i := range s.Events {
			f, is := s.Events[i].Op.(*scenario.Fault)
			if !is {
				continue
			}
			for _, like := range weights() {
				if at := slices.Index(like, f.Name); at > 0 {
					edits = append(edits, func(d *draft) { turn(d.Events[i].Op.(*scenario.Fault), like[to(at)]) })
				}
			}
		}
		return edits
	}
}

func lightest(int) int       { return 0 }
func nextLighter(at int) int { return at - 1 }

// turn makes a fault into another.
func turn(f *scenario.Fault, into scenario.FaultName) {
	f.Name = into
	switch into.Kind().Delays {
	case scenario.NoDelay:
		f.Delay = scenario.Range{}
	case scenario.MustDelay:
		if f.Delay == (scenario.Range{}) {
			f.Delay = scenario.Range{Min: scenario.DefaultLate, Max: scenario.DefaultLate}
		}
	}
}

// strikeOnce has faults strike once where they are armed to strike again and again.
func strikeOnce(s *scenario.Scenario) (edits []edit) {
	for i := range s.Events {
		if f, is := s.Events[i].Op.(*scenario.Fault); is && !explicit(f) {
			edits = append(edits, func(d *draft) {
				f := d.Events[i].Op.(*scenario.Fault)
				f.Probability, f.For, f.Count = 0, 0, 0
			})
		}
	}
	return edits
}
