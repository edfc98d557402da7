package invariant_test

import (
	"testing"
	"time"

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

// setBack sets the clock of term 1 back, steps the term, and steps it again 40 ms later without
// an event.
func (s *fixture) setBack(by time.Duration) {
	s.j.ClockSet(s.now, 1, -by)
	clock, later := s.now.Add(-by), 40*time.Millisecond
	s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: clock, Woken: true, WakeAt: clock.Add(later), View: s.state(), Queries: 1})
	s.wait(later)
	s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: clock.Add(later), View: s.state(), Queries: 1})
}
