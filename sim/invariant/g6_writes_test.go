package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

func brokenWrites() []broken {
	return []broken{
		{"a plan at the start of a term before a barrier", invariant.PlannedBeforeBarrier, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.drain("n1", 0)
			s.j.Began(s.now, 0, 1)
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"a retry after an unknown outcome before a barrier", invariant.PlannedBeforeBarrier, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.fail(raftwrite.Unknown)
			s.wait(time.Minute)
			s.propose(1, 2, s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"a plan after a barrier that is older than the unknown outcome", invariant.PlannedBeforeBarrier, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.ask(1, 8)
			s.fail(raftwrite.Unknown)
			s.j.Answered(s.now, 1, 8, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
			s.wait(time.Minute)
			s.propose(1, 2, s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"a plan from a state older than the barrier", invariant.PlannedFromOldState, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			old := s.state()
			s.ask(1, 8)
			s.drain("n2", 0)
			s.j.Answered(s.now, 1, 8, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
			s.propose(1, 2, s.marks(cluster.MarkPaced, "a1"))
			s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: s.now, Woken: true, View: old, Looks: 1})
			return s
		}},
		{"the same mark in flight twice", invariant.SentTwice, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.propose(1, 2, s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"the same end in flight twice", invariant.SentTwice, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, s.ends("n1"))
			s.propose(1, 2, s.ends("n1"))
			return s
		}},
		{"a rejected mark that is not planned again", invariant.NotRetried, []invariant.Check{invariant.UntrueReason}, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.fail(raftwrite.Rejected)
			s.wait(invariant.DefaultRetryBase)
			s.quiet(waiting)
			return s
		}},
		{"a rejected end that is not planned again", invariant.NotRetried, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.ended("a1")
			s.propose(1, 1, s.ends("n1"))
			s.look(1)
			s.answer(1, 1, raftwrite.Rejected)
			s.look(1)
			s.wait(invariant.DefaultRetryBase)
			s.quiet()
			return s
		}},
		{"a failed barrier that is not proposed again", invariant.NotRetried, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.j.Began(s.now, 0, 1)
			s.ask(1, 0)
			s.step(1, false)
			s.answer(1, 0, raftwrite.Unknown)
			s.step(1, false)
			s.wait(invariant.DefaultRetryBase)
			s.quiet()
			return s
		}},
		{"a mark proposed without an evaluation", invariant.NoEvaluation, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			m := s.marks(cluster.MarkPaced, "a1")
			m.Evals = nil
			s.propose(1, 1, m)
			return s
		}},
		{"a marked allocation without an open evaluation", invariant.NotReevaluated, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.closeEvals("web")
			s.look(1)
			s.quiet()
			return s
		}},
	}
}

func fineWrites() []fine {
	return []fine{
		{"a retry after an unknown outcome and a barrier", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.fail(raftwrite.Unknown)
			s.wait(invariant.DefaultRetryBase)
			s.ask(1, 2)
			s.step(1, false)
			s.j.Answered(s.now, 1, 2, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
			s.write(1, 3, s.marks(cluster.MarkPaced, "a1"))
			s.quiet()
			return s
		}},
		{"a rejected mark during its wait", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.fail(raftwrite.Rejected)
			s.wait(invariant.DefaultRetryBase - 1)
			s.quiet(waiting)
			return s
		}},
		{"two writes of unknown outcome, and a barrier after both", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.drain("n2", 0)
			s.unhealthy("a2")
			s.propose(1, 1, s.marks(cluster.MarkFree, "a2"))
			s.propose(1, 2, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			s.answer(1, 1, raftwrite.Unknown)
			s.step(1, false)
			s.wait(invariant.DefaultRetryBase)
			s.ask(1, 3)
			s.step(1, false)
			s.answer(1, 2, raftwrite.Unknown)
			s.j.Answered(s.now, 1, 3, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
			s.step(1, false)
			s.wait(time.Minute)
			s.write(1, 4, s.marks(cluster.MarkFree, "a2"))
			return s
		}},
		{"a stuck group with a recent evaluation", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.closeEvals("web")
			s.write(1, 2, s.again("web"))
			s.closeEvals("web")
			s.look(1)
			s.wait(invariant.DefaultRetryBase - 1)
			s.quiet()
			return s
		}},
		{"a failed barrier during its wait", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 3, 1)
			s.j.Began(s.now, 0, 1)
			s.ask(1, 0)
			s.step(1, false)
			s.answer(1, 0, raftwrite.Unknown)
			s.step(1, false)
			s.wait(invariant.DefaultRetryBase - 1)
			s.quiet()
			return s
		}},
	}
}

// draining is a fixture with a leader that has seen the drain of n1.
func draining(t *testing.T, o invariant.Options) *fixture {
	s := leading(t, o)
	s.drain("n1", 0)
	s.look(1)
	return s
}

// fail lets a mark of a1 fail. The drainer processes the failure.
func (s *fixture) fail(o raftwrite.Outcome) {
	s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
	s.look(1)
	s.answer(1, 1, o)
	s.look(1)
}

// waiting sets the reason of a1 to "write pending".
func waiting(q *invariant.Quiet) {
	for i := range q.Reports[0].Allocs {
		if a := &q.Reports[0].Allocs[i]; a.Alloc == "a1" {
			a.Reason, a.Since = rules.ReasonWritePending, rules.Since{Observed: true, At: epoch}
		}
	}
}
