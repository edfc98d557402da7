package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenBounds() []broken {
	return []broken{
		{"two reads in a step", invariant.TooManyQueries, nil, func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: s.now, Woken: true, View: s.state(), Queries: 2})
			return s
		}},
		{"too many records of a node", invariant.TooManyRecords, []invariant.Check{invariant.Unnamed}, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			for i := range cluster.MaxDrainRecordsPerNode + 1 {
				id := cluster.NodeID([]string{"n1", "n2"}[i%2])
				s.drainAs(id, cluster.DrainID(rune('a'+i)))
				s.cancel(id)
			}
			s.forge(reportOf("a1", "n1"), shims.ChangeApplied{}, nothing, func(state *statestore.Snapshot) {
				for d := range state.Drains() {
					d.NodeID = "n1"
				}
			})
			return s
		}},
	}
}

func fineBounds() []fine {
	return []fine{
		// Medium seed 766: the judge dated the round after its first failure.
		{"a second failure in a round after the clock was set back", func(t *testing.T) *fixture {
			s := (&script{t: t}).given("two in flight")
			s.j.ClockSet(s.now, 1, -300*time.Millisecond)
			back := func() { s.readAt(1, s.now.Add(-300*time.Millisecond)) }
			s.wait(100 * time.Millisecond)
			s.answer(1, 1, raftwrite.Rejected)
			back()
			s.wait(time.Second)
			s.answer(1, 2, raftwrite.Rejected)
			m := s.marks(cluster.MarkPaced, "a1")
			m.At = s.now.Add(-300 * time.Millisecond)
			s.propose(1, 3, m)
			back()
			return s
		}},
		// Small seeds 110576 and 1021429: the clock was set back to before the failure.
		{"a write and a barrier after the clock was set back to before the last failure", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			failed := s.now
			s.fail(raftwrite.Unknown)
			s.wait(time.Second)
			s.ask(1, 2)
			s.read(1)
			s.answer(1, 2, raftwrite.Rejected)
			s.read(1)
			refused := s.now.Add(-1)
			s.wait(time.Minute)
			s.j.ClockSet(s.now, 1, refused.Sub(s.now))
			s.ask(1, 3)
			s.readAt(1, refused)
			s.j.Answered(s.now, 1, 3, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
			s.wait(time.Second)
			s.j.ClockSet(s.now, 1, failed.Sub(s.now))
			m := s.marks(cluster.MarkPaced, "a1")
			m.At = failed
			s.propose(1, 4, m)
			s.readAt(1, failed)
			return s
		}},
	}
}

// drainAs starts a drain with an id.
func (s *fixture) drainAs(id cluster.NodeID, drain cluster.DrainID) {
	m := s.request(id, &cluster.DrainSpec{})
	m.Drain = drain
	s.apply(m)
}
