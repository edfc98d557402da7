package live

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Unplayable says what of a scenario cannot be played, word by word and with the reason. Nil
// is that everything can be played.
func Unplayable(s *scenario.Scenario) []string {
	var lines []string
	for _, e := range s.Events {
		if why := unplayable(e); why != "" {
			lines = append(lines, why)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// unplayable is a word of the event and why it cannot be played; empty if it can.
func unplayable(e scenario.Event) string {
	if e.Before != "" {
		return "before: raft lets nothing happen between a plan and its apply"
	}
	switch op := e.Op.(type) {
	case *scenario.Clock:
		return "clock: " + oneClock
	case *scenario.Place:
		return "place: only raft's log can change the state"
	case *scenario.Forget:
		return "forget: a server begins its terms itself"
	case *scenario.NodeChange:
		if op.Unnoticed {
			return "unnoticed: a server tells its scheduler"
		}
	case *scenario.Fault:
		return unplayableFault(op.Name)
	}
	return ""
}

const oneClock = "all goroutines of a process read one clock, and a bubble's cannot be set"

// unplayableFault is a fault and why it cannot be played; empty if it can.
func unplayableFault(name scenario.FaultName) string {
	word := "fault " + string(name) + ": "
	switch name {
	case scenario.ClockForward, scenario.ClockBack, scenario.ClockSkew:
		return word + oneClock
	case scenario.ApplyReject, scenario.ApplyFull, scenario.ApplySlow,
		scenario.ApplyAmbiguousApplied, scenario.ApplyAmbiguousLate, scenario.ApplyAmbiguousLost:
		return word + "a write's outcome is raft's own"
	case scenario.ApplyPartialRefuse, scenario.SchedFailEval:
		return word + "nothing happens between two entries on purpose"
	case scenario.WatchSpurious, scenario.ViewStale, scenario.SchedSlow:
		return word + "a server reads its store directly"
	}
	return ""
}
