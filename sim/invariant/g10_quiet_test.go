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

func brokenQuiet() []broken {
	return []broken{
		{"an entry without items", invariant.IdleWrite, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: s.now}})
			return s
		}},
	}
}

func fineQuiet() []fine {
	return []fine{
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
