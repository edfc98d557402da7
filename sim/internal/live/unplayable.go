package live

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Unplayable lists the parts of a scenario that cannot be played, each with the reason. It
// returns nil if everything can be played.
func Unplayable(s *scenario.Scenario) []string {
	var lines []string
	if s.Cluster.Clients == scenario.RealClients {
		lines = append(lines, "clients: a play has simulated clients")
	}
	if slices.ContainsFunc(s.Nodes, func(n scenario.Node) bool { return len(n.Devices) > 0 }) {
		lines = append(lines, "devices: no client of a play has device plugins")
	}
	for _, e := range s.Events {
		if why := unplayable(e); why != "" {
			lines = append(lines, why)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// unplayable returns the part of the event that cannot be played, with the reason. It is empty if
// the whole event can be played.
func unplayable(e scenario.Event) string {
	if e.Before != "" {
		return "before: a play cannot insert an event between a plan and its apply"
	}
	switch op := e.Op.(type) {
	case *scenario.Clock:
		return "clock: " + oneClock
	case *scenario.Place:
		return "place: only raft's log can change the state"
	case *scenario.Forget:
		return "forget: only raft starts a term"
	case *scenario.NodeChange:
		if op.Unnoticed {
			return "unnoticed: the server always tells its scheduler"
		}
	case *scenario.Fault:
		return unplayableFault(op.Name)
	}
	return ""
}

const oneClock = "all goroutines of a process read one clock, and a play cannot set it"

// unplayableFault returns a fault and why it cannot be played. It is empty if the fault can be
// played.
func unplayableFault(name scenario.FaultName) string {
	word := "fault " + string(name) + ": "
	if name.Kind().Real {
		return word + "a play has simulated clients"
	}
	switch name {
	case scenario.ClockForward, scenario.ClockBack, scenario.ClockSkew:
		return word + oneClock
	case scenario.ApplyReject, scenario.ApplyFull, scenario.ApplySlow,
		scenario.ApplyAmbiguousApplied, scenario.ApplyAmbiguousLate, scenario.ApplyAmbiguousLost:
		return word + "raft alone decides the outcome of a write"
	case scenario.ApplyPartialRefuse, scenario.SchedFailEval:
		return word + "a play cannot insert an entry between two entries"
	case scenario.WatchSpurious, scenario.ViewStale, scenario.SchedSlow, scenario.SchedLateAnswer:
		return word + "the server's own code reads the store and wakes its goroutines"
	}
	return ""
}
