package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

func brokenReasons() []broken {
	var all []broken
	add := func(name string, c invariant.Check, change func(s *stage, q *invariant.Quiet), also ...invariant.Check) {
		all = append(all, broken{name, c, also, func(t *testing.T) *stage {
			s := reasons(t)
			s.quiet(held, func(q *invariant.Quiet) { change(s, q) })
			return s
		}})
	}
	add("a report too few", invariant.NoReason, func(_ *stage, q *invariant.Quiet) { q.Reports = q.Reports[1:] })
	add("an allocation too few", invariant.NoReason, func(_ *stage, q *invariant.Quiet) {
		q.Reports[0].Allocs = q.Reports[0].Allocs[1:]
	}, invariant.WrongTotals)
	add("an allocation twice", invariant.TwoReasons, func(_ *stage, q *invariant.Quiet) {
		q.Reports[0].Allocs = append(q.Reports[0].Allocs[:1:1], q.Reports[0].Allocs...)
	}, invariant.WrongTotals)
	add("a report twice", invariant.TwoReasons, func(_ *stage, q *invariant.Quiet) { q.Reports = append(q.Reports, q.Reports[0]) })
	add("an allocation that is elsewhere", invariant.ReasonForNone, func(s *stage, q *invariant.Quiet) {
		extra := q.Reports[0].Allocs[0]
		extra.Alloc = "a3"
		q.Reports[0].Allocs = append([]rules.AllocExplanation{extra}, q.Reports[0].Allocs...)
	}, invariant.WrongTotals)
	add("a report of a drain that is over", invariant.ReasonForNone, func(_ *stage, q *invariant.Quiet) {
		r := q.Reports[0]
		d := *r.Drain
		d.ID = "over"
		r.Drain = &d
		q.Reports = append(q.Reports, r)
	})
	for _, id := range reasonIDs() {
		add("another reason for "+string(id), invariant.UntrueReason, func(_ *stage, q *invariant.Quiet) {
			a := reportOfAlloc(q, id)
			a.Reason = (a.Reason + 5) % rules.ReasonCount
		}, invariant.WrongTotals)
	}
	add("a reason for what has ended, as its client knows", invariant.UntrueReason, func(_ *stage, q *invariant.Quiet) {
		q.Truth = known{held: true, ended: "stopping"}
	})
	add("a number of a group", invariant.WrongNumbers, func(_ *stage, q *invariant.Quiet) { reportOfAlloc(q, "a1").Healthy++ })
	add("when a stop is due", invariant.WrongNumbers, func(_ *stage, q *invariant.Quiet) {
		a := reportOfAlloc(q, "stopping")
		a.Due = a.Due.Add(time.Second)
	})
	add("when a verdict is due", invariant.WrongNumbers, func(_ *stage, q *invariant.Quiet) { reportOfAlloc(q, "unjudged").Due = epoch })
	add("the evaluation of what is marked", invariant.WrongNumbers, func(s *stage, q *invariant.Quiet) { reportOfAlloc(q, "marked").Eval = nil })
	add("what is waited for", invariant.WrongNumbers, func(_ *stage, q *invariant.Quiet) { reportOfAlloc(q, "a1").Outstanding = nil })
	add("what is waited for and is not on its way", invariant.WrongNumbers, func(_ *stage, q *invariant.Quiet) {
		a := reportOfAlloc(q, "a1")
		a.Outstanding = append([]cluster.AllocID{"a2"}, a.Outstanding...)
	})
	add("the group of an allocation", invariant.WrongNumbers, func(_ *stage, q *invariant.Quiet) { reportOfAlloc(q, "a1").Group.Name = "another" })
	add("since another time than the stop", invariant.WrongSince, func(_ *stage, q *invariant.Quiet) {
		a := reportOfAlloc(q, "stopping")
		a.Since.At = a.Since.At.Add(-1)
	})
	add("since a time that only the leader has seen, although the state has one", invariant.WrongSince, func(_ *stage, q *invariant.Quiet) {
		reportOfAlloc(q, "marked").Since.Seen = true
	})
	add("since no time", invariant.WrongSince, func(_ *stage, q *invariant.Quiet) { reportOfAlloc(q, "unjudged").Since = rules.Since{} })
	add("since a time to come", invariant.WrongSince, func(s *stage, q *invariant.Quiet) {
		reportOfAlloc(q, "unjudged").Since.At = s.now.Add(time.Second)
	})
	add("the sum of a stage", invariant.WrongTotals, func(_ *stage, q *invariant.Quiet) { q.Reports[0].Left[cluster.StageSystem]++ })
	add("the worst reason", invariant.WrongTotals, func(_ *stage, q *invariant.Quiet) { q.Reports[0].Reason = rules.ReasonLeftByRequest })
	all = append(all, broken{"a hold that dates from before it began", invariant.WrongSince, nil, func(t *testing.T) *stage {
		s := blockedUp(t)
		s.quiet(sinceEver)
		s.wait(time.Second)
		s.job(service("web", 3, 0))
		s.look(1)
		s.quiet(sinceEver)
		return s
	}}, broken{"a pending mark that dates from before it was wanted", invariant.WrongSince, nil, func(t *testing.T) *stage {
		s := blockedUp(t)
		s.wait(time.Second)
		s.run("a3")
		s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
		s.look(1)
		s.quiet(sinceEver)
		return s
	}})
	all = append(all, broken{"a mark in flight since no time", invariant.WrongSince, nil, func(t *testing.T) *stage {
		s := blockedUp(t)
		s.run("a3")
		s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
		s.look(1)
		s.quiet(func(q *invariant.Quiet) { reportOfAlloc(q, "a1").Since = rules.Since{Seen: true} })
		return s
	}})
	return append(all, broken{"a mark said to be pending that is not planned", invariant.UntrueReason, []invariant.Check{invariant.Stalled},
		func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.quiet()
			return s
		}}, broken{"a mark in flight that is not said to be", invariant.UntrueReason, []invariant.Check{invariant.WrongTotals},
		func(t *testing.T) *stage {
			s := blockedUp(t)
			s.run("a3")
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.look(1)
			s.quiet(func(q *invariant.Quiet) { reportOfAlloc(q, "a1").Reason = rules.ReasonWaitingForRoom })
			return s
		}})
}

func fineReasons() []fine {
	return []fine{
		{"every reason there is", func(t *testing.T) *stage {
			s := reasons(t)
			s.quiet(held)
			return s
		}},
		{"a group that waits for a replacement, one below its budget, one that may not move", func(t *testing.T) *stage {
			s := web(t, invariant.Options{}, 5, 1)
			s.drain("n1", time.Hour)
			s.drain("n2", 0)
			s.quiet(held)
			s.blocked("web")
			s.quiet(held)
			s.job(service("web", 3, 0))
			s.quiet(held)
			return s
		}},
		{"a hold that goes on, another that begins", func(t *testing.T) *stage {
			s := blockedUp(t)
			s.quiet(sinceEver)
			s.wait(time.Second)
			s.quiet(sinceEver)
			s.job(service("web", 3, 0))
			s.look(1)
			s.quiet(func(q *invariant.Quiet) { reportOfAlloc(q, "a1").Since.At = s.now })
			return s
		}},
		{"a hold that a mark in flight hides, without room", hiddenHold(func(s *stage) { s.sick("a3") })},
		{"a hold that a mark in flight hides, of all moves", hiddenHold(func(s *stage) { s.job(service("web", 3, 0)) })},
		{"a leader that has yet to catch up", func(t *testing.T) *stage {
			s := reasons(t)
			old, reports := s.state(), s.explain()
			s.ended("a1", "marked")
			s.cancel("n2")
			s.quiet(held, func(q *invariant.Quiet) { q.State, q.Reports = old, reports })
			return s
		}},
		{"marks that could be made, and are planned", func(t *testing.T) *stage {
			s := draining(t, invariant.Options{})
			s.drain("n2", time.Minute)
			s.quiet(held)
			s.wait(time.Minute)
			s.quiet(held)
			return s
		}},
	}
}

// hiddenHold has what begins to hold a group while a mark of it is in flight. The write
// fails, and the drainer says since when it has seen the group held.
func hiddenHold(begin func(*stage)) func(t *testing.T) *stage {
	return func(t *testing.T) *stage {
		s := draining(t, invariant.Options{})
		s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
		s.look(1)
		s.wait(time.Second)
		begin(s)
		s.look(1)
		since := s.now
		s.wait(time.Second)
		s.quiet(inFlight, func(q *invariant.Quiet) {
			r := &q.Reports[0]
			r.Reason, r.Waiting = rules.ReasonWritePending, [rules.ReasonCount]int{rules.ReasonWritePending: 1}
		})
		s.answer(1, 1, raftwrite.Rejected)
		s.wait(time.Second)
		s.look(1)
		s.quiet(func(q *invariant.Quiet) { reportOfAlloc(q, "a1").Since = rules.Since{At: since, Seen: true} })
		return s
	}
}

// sinceEver dates what the leader has seen from the beginning.
func sinceEver(q *invariant.Quiet) {
	for i := range q.Reports {
		for k := range q.Reports[i].Allocs {
			if s := &q.Reports[i].Allocs[k].Since; s.Seen {
				s.At = epoch.Add(-time.Second)
			}
		}
	}
}

// reasonIDs are the allocations of [reasons].
func reasonIDs() []cluster.AllocID {
	return []cluster.AllocID{"a1", "away", "batch", "marked", "p1", "s1", "stopping", "unjudged"}
}

// reasons has an allocation for almost every reason, on n1; one that is out of touch
// on n2.
func reasons(t *testing.T) *stage {
	s := leading(t, invariant.Options{})
	for _, j := range []*cluster.Job{
		newJob(cluster.JobBatch, "sum", 1), newJob(cluster.JobSystem, "logs", 1), plugin(newJob(cluster.JobSystem, "csi", 1)), service("far", 1, 1),
	} {
		s.job(j)
	}
	s.place("batch", "sum", "n1")
	s.place("s1", "logs", "n1")
	s.place("p1", "csi", "n1")
	s.place("away", "far", "n2")
	for _, id := range []cluster.AllocID{"marked", "stopping", "unjudged"} {
		s.place(id, "web", "n1")
	}
	s.run("away", "marked", "stopping", "s1", "p1")
	s.report(cluster.ClientRunning, nil, "batch", "unjudged")
	s.drain("n1", time.Hour)
	s.drain("n2", 0)
	s.job(service("web", 5, 2))
	s.mark(cluster.MarkPaced, "marked", "stopping")
	s.stop("stopping", true)
	s.status("n2", cluster.NodeDisconnected)
	s.wait(time.Second)
	return s
}

// reportOfAlloc is what the reports say of an allocation.
func reportOfAlloc(q *invariant.Quiet, id cluster.AllocID) *rules.AllocExplanation {
	for i := range q.Reports {
		for k := range q.Reports[i].Allocs {
			if q.Reports[i].Allocs[k].Alloc == id {
				return &q.Reports[i].Allocs[k]
			}
		}
	}
	return nil
}
