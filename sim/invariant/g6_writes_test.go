package invariant_test

import (
	"testing"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

func brokenWrites() []broken {
	return []broken{
		{"a plan from a state older than the barrier", invariant.PlannedFromOldState, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			old := s.state()
			s.barrier(1, 8)
			s.drain("n2", 0)
			s.j.Answered(s.now, 1, 8, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
			s.propose(1, 2, s.marks(cluster.MarkPaced, "a1"))
			s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: s.now, Woken: true, View: old, Queries: 1})
			return s
		}},
	}
}

// draining is a fixture with a leader that has read the drain of n1.
func draining(t *testing.T, o invariant.Options) *fixture {
	s := leading(t, o)
	s.drain("n1", 0)
	s.read(1)
	return s
}

// fail lets a mark of a1 fail. The drainer processes the failure.
func (s *fixture) fail(o raftwrite.Outcome) {
	s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
	s.read(1)
	s.answer(1, 1, o)
	s.read(1)
}

// waiting sets the reason of a1 to "write pending".
func waiting(q *invariant.Quiet) {
	for i := range q.Reports[0].Allocs {
		if a := &q.Reports[0].Allocs[i]; a.Alloc == "a1" {
			a.Reason, a.Since = rules.ReasonWritePending, rules.Since{Observed: true, At: epoch}
			a.Culprit, a.Missing = nil, 0
		}
	}
}
