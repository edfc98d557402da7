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
		{"a step at an arbitrary time", invariant.IdleWake, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.stepUntil(1, true, s.now.Add(time.Minute))
			s.wait(time.Minute)
			s.due(1)
			return s
		}},
		{"a step before the deadline", invariant.IdleWake, nil, func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.stepUntil(1, true, s.now.Add(time.Minute-1))
			s.wait(time.Minute - 1)
			s.due(1)
			return s
		}},
		{"a step soon after the clock was set back, without a failed write", invariant.IdleWake, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.look(1)
			s.setBack(time.Second)
			return s
		}},
		{"a step for a verdict that exists already", invariant.IdleWake, nil, func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", 0)
			due := epoch.Add(5*time.Minute + invariant.DefaultHealthGrace)
			s.stepUntil(1, true, due)
			s.now = due
			s.due(1)
			return s
		}},
		{"a mark refused in the state from which it was planned", invariant.IdleWrite, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.unhealthy("a3")
			s.look(1)
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"an end refused in the state from which it was planned", invariant.IdleWrite, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.ends("n1"))
			return s
		}},
		{"another evaluation of a group that is not stuck", invariant.IdleWrite, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.again("web"))
			return s
		}},
		{"an entry without items", invariant.IdleWrite, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: s.now}})
			return s
		}},
		{"a step after twice the wait of one failure", invariant.IdleWake, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.fail(raftwrite.Rejected)
			s.stepUntil(1, false, s.now.Add(2*invariant.DefaultRetryBase))
			s.wait(2 * invariant.DefaultRetryBase)
			s.due(1)
			return s
		}},
		{"a step after twice the wait, although a success came between two failures", invariant.IdleWake, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.fail(raftwrite.Rejected)
			s.wait(invariant.DefaultRetryBase)
			s.write(1, 2, s.marks(cluster.MarkPaced, "a1"))
			s.drain("n2", 0)
			s.unhealthy("a2")
			s.propose(1, 3, s.marks(cluster.MarkFree, "a2"))
			s.look(1)
			s.answer(1, 3, raftwrite.Rejected)
			s.stepUntil(1, false, s.now.Add(2*invariant.DefaultRetryBase))
			s.wait(2 * invariant.DefaultRetryBase)
			s.due(1)
			return s
		}},
		{"a step soon after a look, although the rate allows another look at once", invariant.IdleWake, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.stepUntil(1, true, s.now.Add(time.Millisecond))
			s.wait(time.Millisecond)
			s.due(1)
			return s
		}},
		{"a step at the end of an earlier wait", invariant.IdleWake, nil, func(t *testing.T) *fixture {
			s := failedTwice(t)
			s.setBack(2*time.Second - 10*time.Millisecond)
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
		{"steps without end", invariant.EndlessSteps, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			for range 40 {
				s.stepUntil(1, true, s.now)
			}
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
			s.look(1)
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
		{"a step at the end of the coalescing window", func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.stepUntil(1, true, s.now.Add(time.Minute+invariant.DefaultCoalesce))
			s.wait(time.Minute + invariant.DefaultCoalesce)
			s.due(1)
			return s
		}},
		{"a step that retries a write", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			s.answer(1, 1, raftwrite.Rejected)
			s.stepUntil(1, true, s.now.Add(50*time.Millisecond))
			s.wait(50 * time.Millisecond)
			s.due(1)
			return s
		}},
		{"a step at the end of a wait after the clock was set back into the wait", func(t *testing.T) *fixture {
			s := failedTwice(t)
			s.setBack(time.Second - 60*time.Millisecond)
			return s
		}},
		{"a step at a deadline that was cancelled after the drainer's last look", func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.stepUntil(1, true, s.now.Add(time.Minute))
			s.cancel("n1") // the drainer does not know yet
			s.wait(time.Minute)
			s.due(1)
			return s
		}},
		{"a mark refused because the state changed after the plan", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			m := s.marks(cluster.MarkPaced, "a1")
			s.propose(1, 1, m)
			s.look(1)
			s.unhealthy("a3")
			r := s.apply(m)
			s.j.Answered(s.now, 1, 1, shims.Answer{Outcome: raftwrite.Applied, Index: s.index, Response: r})
			s.look(1)
			return s
		}},
		{"some steps at one time", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			for range 20 {
				s.stepUntil(1, true, s.now)
			}
			return s
		}},
	}
}

// failedTwice is a fixture whose leader's mark of a1 failed at 0s and 1s. The time is 2s.
func failedTwice(t *testing.T) *fixture {
	s := draining(t, invariant.Options{})
	for n := range 2 {
		s.propose(1, 1+n, s.marks(cluster.MarkPaced, "a1"))
		s.look(1)
		s.answer(1, 1+n, raftwrite.Rejected)
		s.look(1)
		s.wait(time.Second)
	}
	return s
}

// setBack sets the clock of term 1 back, steps the term, and steps it again 40 ms later without
// an event.
func (s *fixture) setBack(by time.Duration) {
	s.j.ClockSet(s.now, 1, -by)
	clock, later := s.now.Add(-by), 40*time.Millisecond
	s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: clock, Woken: true, WakeAt: clock.Add(later), View: s.state(), Looks: 1})
	s.wait(later)
	s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: clock.Add(later), View: s.state(), Looks: 1})
}
