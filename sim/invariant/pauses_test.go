package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// pausing is a request to pause or to resume the drain of a node, or all drains.
func (s *fixture) pausing(id cluster.NodeID, pause bool) *shims.PauseDrains {
	return &shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{Node: id, Pause: pause, At: s.now}}
}

// pauses writes the rows of such a request.
func pauses(m *shims.PauseDrains) func(*statestore.Txn) {
	return func(txn *statestore.Txn) { _, _ = statestore.PauseDrains(txn, m.DrainPauseUpdate) }
}

func brokenPauses() []broken {
	return []broken{
		{"a mark after a pause", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.apply(s.pausing("n1", true))
			s.markAnyway(cluster.MarkPaced, "a1")
			return s
		}},
		{"a mark of a drain that began under a pause of all", invariant.WrongClass, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.apply(s.pausing("", true))
			s.drain("n1", time.Hour)
			s.markAnyway(cluster.MarkPaced, "a1")
			return s
		}},
		{"the end of a paused drain", invariant.EndedEarly, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.ended("a1")
			s.drain("n1", 0)
			s.apply(s.pausing("", true))
			s.endAnyway("n1", cluster.OutcomeComplete, 0)
			return s
		}},
		{"a pause that has no effect", invariant.WrongPause, []invariant.Check{invariant.RevisionMoved}, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.fake(s.pausing("n1", true), shims.DrainPauseApplied{}, nothing)
			return s
		}},
		{"a resume under a pause of all that has an effect", invariant.WrongPause, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.apply(s.pausing("", true))
			s.fake(s.pausing("n1", false), shims.DrainPauseApplied{DrainPauseResult: cluster.DrainPauseResult{Changed: true}}, pauses(s.pausing("", false)))
			return s
		}},
		{"an undo that leaves the node ineligible", invariant.WrongUndo, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.request("n1", nil)
			m.Undo = true
			s.forge(m, shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1"}}, s.updates(m),
				func(state *statestore.Snapshot) { state.Node("n1").SchedulingEligibility = cluster.NodeIneligible })
			return s
		}},
		{"a resume that leaves the deadline", invariant.DeadlineMoved, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", time.Hour)
			before := s.state().Node("n1").Drain.Strategy.ForceDeadline
			s.apply(s.pausing("", true))
			s.now = s.now.Add(time.Minute)
			m := s.pausing("", false)
			s.forge(m, shims.DrainPauseApplied{DrainPauseResult: cluster.DrainPauseResult{Changed: true}}, pauses(m),
				func(state *statestore.Snapshot) { state.Node("n1").Drain.Strategy.ForceDeadline = before })
			return s
		}},
	}
}

func finePauses() []fine {
	return []fine{
		{"a drain that is paused, forced in its pause, and ends", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", time.Hour)
			s.apply(s.pausing("n1", true))
			s.apply(s.pausing("n1", true))
			s.drain("n1", -1)
			s.mark(cluster.MarkForced, "a1")
			return s
		}},
		{"both kinds of pauses, one in the other", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", time.Hour)
			for _, request := range []struct {
				node  cluster.NodeID
				pause bool
			}{{"", true}, {"n1", false}, {"n1", true}, {"", false}, {"n1", false}, {"n1", false}, {"", false}, {"", true}, {"", true}} {
				s.now = s.now.Add(time.Second)
				s.apply(s.pausing(request.node, request.pause))
			}
			s.now = s.now.Add(time.Second)
			s.drain("n1", time.Minute)
			s.now = s.now.Add(time.Second)
			s.apply(s.pausing("", false))
			s.mark(cluster.MarkPaced, "a1")
			return s
		}},
	}
}
