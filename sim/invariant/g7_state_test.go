package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

func brokenMemory() []broken {
	return []broken{
		{"an end missed by a drainer that read an old state and set no timer", invariant.Forgotten, nil, func(t *testing.T) *fixture {
			s, stepped := readOld(t)
			stepped.WakeAt = time.Time{}
			s.j.Stepped(s.now, stepped)
			s.wait(time.Second)
			s.quiet(s.plansEnd("n1"))
			return s
		}},
	}
}

func fineMemory() []fine {
	return []fine{
		{"an end and an evaluation while a round is in flight", func(t *testing.T) *fixture {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.read(1)
			s.quiet(func(q *invariant.Quiet) {
				q.Fresh = &invariant.Plan{Completions: s.ends("n1").Completions.Completions, Reevaluate: []cluster.GroupKey{groupKey("web")}}
			}, inFlight)
			return s
		}},
		// Small seed 1005173: the judge started a fresh drainer as soon as the newest state was
		// visible. The running drainer reads it from time to time.
		{"an end not yet planned by a drainer that read an old state and set a timer", func(t *testing.T) *fixture {
			s, stepped := readOld(t)
			s.j.Stepped(s.now, stepped)
			s.wait(invariant.DefaultRetryBase / 2)
			s.quiet(s.plansEnd("n1"))
			return s
		}},
	}
}

// withoutRoom is a fixture whose leader has nothing to do: n1 drains and its group has no room.
func withoutRoom(t *testing.T) *fixture {
	s := draining(t, invariant.Options{})
	s.unhealthy("a3")
	s.read(1)
	s.quiet()
	return s
}

// readOld is a fixture whose drainer has the answer to its barrier, and the step in which it reads
// an older state and sets a time for another read.
func readOld(t *testing.T) (*fixture, invariant.Step) {
	s := web(t, invariant.Options{}, 3, 1)
	s.drain("n1", 0)
	old := s.state()
	s.unhealthy("a3")
	s.j.Began(s.now, 0, 1)
	s.barrier(1, 0)
	s.step(1, false)
	s.j.Answered(s.now, 1, 0, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
	return s, invariant.Step{Term: 1, Clock: s.now, Woken: true, View: old, Queries: 1, WakeAt: s.now.Add(invariant.DefaultRetryBase)}
}

// plansEnd lets a fresh drainer plan the end of a drain.
func (s *fixture) plansEnd(id cluster.NodeID) func(*invariant.Quiet) {
	return func(q *invariant.Quiet) { q.Fresh = &invariant.Plan{Completions: s.ends(id).Completions.Completions} }
}

// fresh lets a fresh drainer plan a mark.
func (s *fixture) fresh(c cluster.MarkClass, id cluster.AllocID) func(*invariant.Quiet) {
	return func(q *invariant.Quiet) { q.Fresh = &invariant.Plan{Marks: s.marks(c, id).Marks.Marks} }
}

// inFlight sets the reason of a1 to that of a mark in flight.
func inFlight(q *invariant.Quiet) { waiting(q) }
