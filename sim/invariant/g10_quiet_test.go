package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenQuiet() []broken {
	return []broken{
		{"a step for a verdict that exists already", invariant.IdleWake, nil, func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", 0)
			due := epoch.Add(5*time.Minute + invariant.DefaultHealthGrace)
			s.stepUntil(1, true, due)
			s.now = due
			s.due(1)
			return s
		}},
		{"an entry without items", invariant.IdleWrite, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: s.now}})
			return s
		}},
		{"an evaluation of a job without a mark", invariant.IdleWrite, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.job(service("other", 1, 1))
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			m.Evals = append(m.Evals, s.eval("other"))
			s.fake(m, shims.MarksApplied{Accepted: m.Marks.Marks}, func(txn *statestore.Txn) { _ = txn.ApplyMarks(m.At, m.Marks.Marks, m.Evals) })
			return s
		}},
	}
}

func fineQuiet() []fine {
	return []fine{
		{"steps at a deadline, at the time of a verdict, and at the end of a stop time", func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.place("b1", "web", "n1")
			s.report(cluster.ClientRunning, nil, "b1")
			s.drain("n1", time.Hour)
			s.read(1)
			for _, at := range []time.Duration{5*time.Minute + invariant.DefaultHealthGrace, time.Hour} {
				s.stepUntil(1, true, epoch.Add(at))
				s.now = epoch.Add(at)
				s.due(1)
			}
			s.write(1, 1, s.marks(cluster.MarkDeadline, "a1", "b1"))
			s.stepUntil(1, true, s.now.Add(5*time.Second+invariant.DefaultStopMargin))
			s.wait(5*time.Second + invariant.DefaultStopMargin)
			s.due(1)
			return s
		}},
		{"a mark refused because the state changed after the plan", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			m := s.marks(cluster.MarkPaced, "a1")
			s.propose(1, 1, m)
			s.read(1)
			s.unhealthy("a3")
			r := s.apply(m)
			s.j.Answered(s.now, 1, 1, shims.Answer{Outcome: raftwrite.Applied, Index: s.index, Response: r})
			s.read(1)
			return s
		}},
	}
}

// setBack sets the clock of term 1 back, steps the term, and steps it again 40 ms later without
// an event.
func (s *fixture) setBack(by time.Duration) {
	s.j.ClockSet(s.now, 1, -by)
	clock, later := s.now.Add(-by), 40*time.Millisecond
	s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: clock, Woken: true, WakeAt: clock.Add(later), View: s.state(), Queries: 1})
	s.wait(later)
	s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: clock.Add(later), View: s.state(), Queries: 1})
}
