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
		{"a step at a time that is no time of anything", invariant.IdleWake, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.stepUntil(1, true, s.now.Add(time.Minute))
			s.wait(time.Minute)
			s.due(1)
			return s
		}},
		{"a step before the deadline", invariant.IdleWake, nil, func(t *testing.T) *stage {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.stepUntil(1, true, s.now.Add(time.Minute-1))
			s.wait(time.Minute - 1)
			s.due(1)
			return s
		}},
		{"a step shortly after the clock was set back, with nothing to try again", invariant.IdleWake, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.look(1)
			s.setBack(time.Second)
			return s
		}},
		{"a step for a verdict that was given", invariant.IdleWake, nil, func(t *testing.T) *stage {
			s := leading(t, invariant.Options{})
			s.drain("n1", 0)
			due := epoch.Add(5*time.Minute + invariant.DefaultHealthGrace)
			s.stepUntil(1, true, due)
			s.now = due
			s.due(1)
			return s
		}},
		{"a mark refused by the state that it was planned from", invariant.IdleWrite, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.sick("a3")
			s.look(1)
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"an end refused by the state that it was planned from", invariant.IdleWrite, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.ends("n1"))
			return s
		}},
		{"a group evaluated again that is not stuck", invariant.IdleWrite, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.again("web"))
			return s
		}},
		{"an entry of nothing", invariant.IdleWrite, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: s.now}})
			return s
		}},
		{"a step at the end of a longer wait than after one failure", invariant.IdleWake, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.fail(raftwrite.Rejected)
			s.stepUntil(1, false, s.now.Add(2*invariant.DefaultRetryBase))
			s.wait(2 * invariant.DefaultRetryBase)
			s.due(1)
			return s
		}},
		{"a step at the end of a wait that a success has ended", invariant.IdleWake, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.fail(raftwrite.Rejected)
			s.wait(invariant.DefaultRetryBase)
			s.write(1, 2, s.marks(cluster.MarkPaced, "a1"))
			s.drain("n2", 0)
			s.sick("a2")
			s.propose(1, 3, s.marks(cluster.MarkFree, "a2"))
			s.look(1)
			s.answer(1, 3, raftwrite.Rejected)
			s.stepUntil(1, false, s.now.Add(2*invariant.DefaultRetryBase))
			s.wait(2 * invariant.DefaultRetryBase)
			s.due(1)
			return s
		}},
		{"a step soon after a look that was not limited", invariant.IdleWake, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.stepUntil(1, true, s.now.Add(time.Millisecond))
			s.wait(time.Millisecond)
			s.due(1)
			return s
		}},
		{"a step at the end of the wait before the last one", invariant.IdleWake, nil, func(t *testing.T) *stage {
			s := failedTwice(t)
			s.setBack(2*time.Second - 10*time.Millisecond)
			return s
		}},
		{"an evaluation of a job of which nothing was marked", invariant.IdleWrite, nil, func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 1, 1)
			s.job(service("other", 1, 1))
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			m.Evals = append(m.Evals, s.eval("other"))
			s.lie(m, shims.MarksApplied{Accepted: m.Marks.Marks}, func(txn *statestore.Txn) { _ = txn.ApplyMarks(m.At, m.Marks.Marks, m.Evals) })
			return s
		}},
		{"steps without end", invariant.Circles, nil, func(t *testing.T) *stage {
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
		{"steps at a deadline, at a verdict due, at the end of a wait", func(t *testing.T) *stage {
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
		{"a step that coalesces deadlines", func(t *testing.T) *stage {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.stepUntil(1, true, s.now.Add(time.Minute+invariant.DefaultCoalesce))
			s.wait(time.Minute + invariant.DefaultCoalesce)
			s.due(1)
			return s
		}},
		{"a step that tries again", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			s.answer(1, 1, raftwrite.Rejected)
			s.stepUntil(1, true, s.now.Add(50*time.Millisecond))
			s.wait(50 * time.Millisecond)
			s.due(1)
			return s
		}},
		{"a step in a wait that was over before the clock was set back into it", func(t *testing.T) *stage {
			s := failedTwice(t)
			s.setBack(time.Second - 60*time.Millisecond)
			return s
		}},
		{"a step at a time that the state it was computed from had stated", func(t *testing.T) *stage {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.stepUntil(1, true, s.now.Add(time.Minute))
			s.cancel("n1") // the drainer does not know yet
			s.wait(time.Minute)
			s.due(1)
			return s
		}},
		{"a mark refused because the state has moved", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			m := s.marks(cluster.MarkPaced, "a1")
			s.propose(1, 1, m)
			s.look(1)
			s.sick("a3")
			r := s.apply(m)
			s.j.Answered(s.now, 1, 1, shims.Answer{Outcome: raftwrite.Applied, Index: s.index, Response: r})
			s.look(1)
			return s
		}},
		{"some steps at one time", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			for range 20 {
				s.stepUntil(1, true, s.now)
			}
			return s
		}},
	}
}

// failedTwice is a stage with a leader whose mark of a1 failed at 0s and 1s. It is 2s now.
func failedTwice(t *testing.T) *stage {
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

// setBack sets the clock of term 1 back, steps it, and steps it again 40 ms later although
// no event asks for it.
func (s *stage) setBack(by time.Duration) {
	s.j.ClockSet(s.now, 1, -by)
	clock, later := s.now.Add(-by), 40*time.Millisecond
	s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: clock, Woken: true, WakeAt: clock.Add(later), View: s.state(), Looks: 1})
	s.wait(later)
	s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: clock.Add(later), View: s.state(), Looks: 1})
}
