package live

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Unplayable says, word by word and with the reason, what of a scenario cannot be played
// so; nil if everything can.
func Unplayable(s *scenario.Scenario, o Options) []string {
	why := map[string]string{}
	for _, e := range s.Events {
		word, reason := unplayable(e.Op)
		if o.Raft && reason == "" {
			word, reason = unplayableWithRaft(e)
		}
		if reason != "" {
			why[word] = reason
		}
	}
	if s.Run.CutServers != nil && o.Raft {
		why["cut-servers"] = "goroutines cannot be stopped"
	}
	if c := s.Cluster; o.Raft && (c.Commit != scenario.Range{} || c.Establish != scenario.Range{} || c.Wake != scenario.Range{} || c.Schedule != scenario.Range{}) {
		why["cluster"] = "raft and goroutines take as long as they take"
	}
	var lines []string
	for word, reason := range why {
		lines = append(lines, word+": "+reason)
	}
	slices.Sort(lines)
	return lines
}

// unplayable is a word and why it cannot be played with goroutines; empty if it can.
func unplayable(op scenario.Op) (word, reason string) {
	const oneClock = "all goroutines of a process read one clock, and a bubble's cannot be set"
	switch op := op.(type) {
	case *scenario.Clock:
		return "clock", oneClock
	case *scenario.Fault:
		switch op.Name {
		case scenario.ClockForward, scenario.ClockBack, scenario.ClockSkew:
			return "fault " + string(op.Name), oneClock
		}
	}
	return "", ""
}

// unplayableWithRaft is the same of what only the contract can.
func unplayableWithRaft(e scenario.Event) (word, reason string) {
	const noRequest = "a server has no such request"
	if e.Before != "" {
		return "before", "nobody can come between raft and its state machine"
	}
	switch op := e.Op.(type) {
	case *scenario.Drain:
		if len(op.Nodes) > 1 {
			return "drain of several nodes", "a server takes one request at a time, and something may happen between two"
		}
	case *scenario.Place:
		return "place", "raft's log is the only way to the state"
	case *scenario.Pause:
		return "pause", "goroutines cannot be stopped"
	case *scenario.Forget:
		return "forget", "a server begins its terms itself"
	case *scenario.Stop:
		return "stop", noRequest
	case *scenario.StopAlloc:
		return "stop", noRequest
	case *scenario.NodeChange:
		switch op.Change {
		case scenario.NodeDelete, scenario.NodeEligible, scenario.NodeIneligible:
			return fmt.Sprintf("node %s", op.Change), noRequest
		}
		if op.Unnoticed {
			return "unnoticed", "a server tells its scheduler"
		}
	case *scenario.Fault:
		switch op.Name {
		case scenario.NodeCrash, scenario.NodeDisconnect,
			scenario.ClientSlowStop, scenario.ClientNeverStop, scenario.ClientFailNew, scenario.ClientMute:
		case scenario.JobPurge:
			return "fault " + string(op.Name), noRequest
		default:
			if !op.Name.Operates() {
				return "fault " + string(op.Name), "raft has faults of its own"
			}
		}
	}
	return "", ""
}
