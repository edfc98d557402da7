package invariant_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenMemory() []broken {
	return []broken{
		{"a paced mark that only a fresh drainer wants", invariant.Forgotten, nil, func(t *testing.T) *stage {
			s := blockedUp(t)
			s.quiet(s.fresh(cluster.MarkPaced, "a1"))
			return s
		}},
		{"a stage mark that only a fresh drainer wants", invariant.Forgotten, nil, func(t *testing.T) *stage {
			s := blockedUp(t)
			s.quiet(s.fresh(cluster.MarkStage, "a1"))
			return s
		}},
		{"an end that only a fresh drainer wants", invariant.Forgotten, nil, func(t *testing.T) *stage {
			s := blockedUp(t)
			s.quiet(s.wantsEnd("n1"))
			return s
		}},
		{"an evaluation that only a fresh drainer wants", invariant.Forgotten, nil, func(t *testing.T) *stage {
			s := blockedUp(t)
			s.quiet(func(q *invariant.Quiet) { q.Fresh = &invariant.Wants{Reevaluate: []cluster.GroupKey{groupKey("web")}} })
			return s
		}},
		{"an end that a drainer which saw an old state does not come back to", invariant.Forgotten, nil, func(t *testing.T) *stage {
			s, stepped := sawOld(t)
			stepped.WakeAt = time.Time{}
			s.j.Stepped(s.now, stepped)
			s.wait(time.Second)
			s.quiet(s.wantsEnd("n1"))
			return s
		}},
		{"another end of the same story", invariant.OtherEnd, nil, func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 3, 1)
			before := invariant.Facts(s.state())
			s.drain("n1", 0)
			s.j.SameFacts(s.now, before, invariant.Facts(s.state()))
			return s
		}},
	}
}

func fineMemory() []fine {
	return []fine{
		{"what a fresh drainer wants is in flight, or waits", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			s.quiet(s.fresh(cluster.MarkPaced, "a1"), inFlight)
			s.answer(1, 1, raftwrite.Rejected)
			s.look(1)
			s.quiet(s.fresh(cluster.MarkPaced, "a1"), waiting)
			s.quiet(s.fresh(cluster.MarkPaced, "a1"), held)
			return s
		}},
		{"an end and an evaluation are gathered while a round is on its way", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			s.quiet(func(q *invariant.Quiet) {
				q.Fresh = &invariant.Wants{Completions: s.ends("n1").Completions.Completions, Reevaluate: []cluster.GroupKey{groupKey("web")}}
			}, inFlight)
			return s
		}},
		{"a deadline mark within the coalescing window", func(t *testing.T) *stage {
			s := leading(t, invariant.Options{})
			s.drain("n1", time.Minute)
			s.wait(time.Minute)
			s.look(1)
			s.quiet(s.fresh(cluster.MarkDeadline, "a1"))
			return s
		}},
		// Small seed 1005173: the fresh drainer was asked as soon as the newest state was
		// shown, and the running one looks for it from time to time.
		{"an end that a drainer which saw an old state comes back to", func(t *testing.T) *stage {
			s, stepped := sawOld(t)
			s.j.Stepped(s.now, stepped)
			s.wait(invariant.DefaultRetryBase / 2)
			s.quiet(s.wantsEnd("n1"))
			return s
		}},
		{"the same end of the same story", func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 3, 1)
			s.j.SameFacts(s.now, invariant.Facts(s.state()), invariant.Facts(s.state()))
			return s
		}},
	}
}

// blockedUp has a leader with nothing to do: n1 drains and its group has no room.
func blockedUp(t *testing.T) *stage {
	s := draining(t, invariant.Options{})
	s.sick("a3")
	s.look(1)
	s.quiet()
	return s
}

// sawOld is a stage whose drainer knows a barrier, and the step in which it looks at an
// older state and names a time to look again.
func sawOld(t *testing.T) (*stage, invariant.Step) {
	s := web(t, invariant.Options{}, 3, 1)
	s.drain("n1", 0)
	old := s.state()
	s.sick("a3")
	s.j.Began(s.now, 0, 1)
	s.ask(1, 0)
	s.step(1, false)
	s.j.Answered(s.now, 1, 0, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
	return s, invariant.Step{Term: 1, Clock: s.now, Woken: true, View: old, Looks: 1, WakeAt: s.now.Add(invariant.DefaultRetryBase)}
}

// wantsEnd has a fresh drainer want the end of a drain.
func (s *stage) wantsEnd(id cluster.NodeID) func(*invariant.Quiet) {
	return func(q *invariant.Quiet) { q.Fresh = &invariant.Wants{Completions: s.ends(id).Completions.Completions} }
}

// fresh has a fresh drainer want a mark.
func (s *stage) fresh(c cluster.MarkClass, id cluster.AllocID) func(*invariant.Quiet) {
	return func(q *invariant.Quiet) { q.Fresh = &invariant.Wants{Marks: s.marks(c, id).Marks.Marks} }
}

// inFlight has the report say that the mark of a1 is in flight.
func inFlight(q *invariant.Quiet) { waiting(q) }

// Facts name what is there by what it is, and tell what became of drains.
func TestFacts(t *testing.T) {
	t.Parallel()
	s := web(t, invariant.Options{}, 3, 1)
	s.drain("n1", 0)
	s.mark(cluster.MarkPaced, "a1")
	s.drain("n2", time.Minute)
	s.wait(time.Minute)
	s.mark(cluster.MarkDeadline, "a2")
	s.wait(time.Hour)
	s.end("n2")
	s.drain("n3", 0)
	s.apply(s.request("n3", nil))
	must.Eq(t, []string{
		"group default/web.web runs 3 of 3, 3 healthy",
		"node n1 drain dn1 runs, left: web.web[a1]",
		`node n2 drain dn2 ended "deadline reached", 1 left`,
		`node n3 drain dn3 ended "cancelled"`,
	}, invariant.Facts(s.state()))
	must.Eq(t, []string{
		"drain dn1 marked paced default/web.web[a1]",
		"drain dn2 marked deadline default/web.web[a2]",
	}, invariant.MarkFacts(s.state()))
	must.SliceEmpty(t, invariant.Facts(statestore.New().Snapshot()))
}
