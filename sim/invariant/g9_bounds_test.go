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
		{"a mark and its evaluation too many", invariant.TooManyIDs, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{MaxIDs: 2})
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1", "a2"))
			return s
		}},
		{"an entry too large", invariant.TooManyBytes, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{MaxBytes: 1000})
			s.j.Proposed(s.now, invariant.Write{Term: 1, N: 1, Message: s.marks(cluster.MarkPaced, "a1"), Bytes: 1001})
			return s
		}},
		{"too many in flight", invariant.TooManyInFlight, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{MaxInFlight: 1})
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.propose(1, 2, s.marks(cluster.MarkPaced, "a2"))
			return s
		}},
		{"two looks in a step", invariant.TooManyQueries, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.j.Stepped(s.now, invariant.Step{Term: 1, Clock: s.now, Woken: true, View: s.state(), Looks: 2})
			return s
		}},
		{"more looks than the rate", invariant.TooManyQueries, nil, func(t *testing.T) *stage {
			s := web(t, invariant.Options{QueriesPerSecond: 2}, 3, 1)
			s.lead(1)
			for range 8 {
				s.wait(300 * time.Millisecond)
				s.look(1)
			}
			return s
		}},
		{"more records than the state may keep", invariant.TooManyRecords, []invariant.Check{invariant.Unnamed}, func(t *testing.T) *stage {
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
		{"rounds too close to each other", invariant.TooSoon, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{MinInterval: time.Second})
			s.write(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.wait(time.Second - 1)
			s.propose(1, 2, s.again("web"))
			s.look(1)
			return s
		}},
		{"again at once after a failure", invariant.TooSoon, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.fail(raftwrite.Rejected)
			s.propose(1, 2, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			return s
		}},
		{"behind a full queue at once", invariant.TooSoon, nil, func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.j.NotTaken(s.now, invariant.Write{Term: 1, N: 1, Message: s.marks(cluster.MarkPaced, "a1")})
			s.look(1)
			s.write(1, 2, s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"before the longer wait after a third failure", invariant.TooSoon, nil, func(t *testing.T) *stage {
			s := failedTwice(t)
			s.propose(1, 3, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			s.answer(1, 3, raftwrite.Rejected)
			s.look(1)
			s.wait(4*invariant.DefaultRetryBase - 1)
			s.write(1, 4, s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		{"a barrier again at once", invariant.TooSoon, nil, func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 3, 1)
			s.j.Began(s.now, 0, 1)
			s.ask(1, 0)
			s.step(1, false)
			s.answer(1, 0, raftwrite.Rejected)
			s.ask(1, 1)
			s.step(1, false)
			return s
		}},
	}
}

func fineBounds() []fine {
	return []fine{
		{"an entry as large as it may be", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{MaxIDs: 2, MaxBytes: 1000, MaxInFlight: 1})
			s.j.Proposed(s.now, invariant.Write{Term: 1, N: 1, Message: s.marks(cluster.MarkPaced, "a1"), Bytes: 1000})
			s.ask(1, 2) // no entry
			return s
		}},
		{"looks at the rate, the first of them at once", func(t *testing.T) *stage {
			s := web(t, invariant.Options{QueriesPerSecond: 2}, 3, 1)
			s.lead(1)
			s.look(1)
			for range 5 {
				s.wait(500 * time.Millisecond)
				s.look(1)
			}
			return s
		}},
		{"a round after the wait behind a full queue", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.j.NotTaken(s.now, invariant.Write{Term: 1, N: 1, Message: s.marks(cluster.MarkPaced, "a1")})
			s.look(1)
			s.wait(invariant.DefaultRetryBase)
			s.write(1, 2, s.marks(cluster.MarkPaced, "a1"))
			return s
		}},
		// Medium seed 766: the round seemed to have begun after its first failure.
		{"the second failure of a round, and the clock set back before the first", func(t *testing.T) *stage {
			s := twoInFlight(t)
			s.j.ClockSet(s.now, 1, -300*time.Millisecond)
			back := func() { s.lookAt(1, s.now.Add(-300*time.Millisecond)) }
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
		// Small seeds 110576 and 1021429: a clock that was set back showed an earlier time.
		{"a write and a barrier by a clock that was set back to before the last failure", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			failed := s.now
			s.fail(raftwrite.Unknown)
			s.wait(time.Second)
			s.ask(1, 2)
			s.look(1)
			s.answer(1, 2, raftwrite.Rejected)
			s.look(1)
			refused := s.now.Add(-1)
			s.wait(time.Minute)
			s.j.ClockSet(s.now, 1, refused.Sub(s.now))
			s.ask(1, 3)
			s.lookAt(1, refused)
			s.j.Answered(s.now, 1, 3, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
			s.wait(time.Second)
			s.j.ClockSet(s.now, 1, failed.Sub(s.now))
			m := s.marks(cluster.MarkPaced, "a1")
			m.At = failed
			s.propose(1, 4, m)
			s.lookAt(1, failed)
			return s
		}},
		{"the second failure of a round, and its backoff over", func(t *testing.T) *stage {
			s := twoInFlight(t)
			s.answer(1, 1, raftwrite.Rejected)
			s.look(1)
			s.wait(time.Second)
			s.answer(1, 2, raftwrite.Rejected)
			s.propose(1, 3, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			return s
		}},
	}
}

// twoInFlight is a round of two writes that are not answered.
func twoInFlight(t *testing.T) *stage {
	s := draining(t, invariant.Options{})
	s.drain("n2", 0)
	s.sick("a2")
	s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
	s.propose(1, 2, s.marks(cluster.MarkFree, "a2"))
	s.look(1)
	return s
}

// drainAs begins a drain under an id.
func (s *stage) drainAs(id cluster.NodeID, drain cluster.DrainID) {
	m := s.request(id, &cluster.DrainSpec{})
	m.Drain = drain
	s.apply(m)
}
