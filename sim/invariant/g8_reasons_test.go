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

func brokenReasons() []broken {
	var all []broken
	add := func(name string, c invariant.Check, change func(s *fixture, q *invariant.Quiet), also ...invariant.Check) {
		all = append(all, broken{name, c, also, func(t *testing.T) *fixture {
			s := reasons(t)
			s.quiet(held, func(q *invariant.Quiet) { change(s, q) })
			return s
		}})
	}
	add("a missing report", invariant.NoReason, func(_ *fixture, q *invariant.Quiet) { q.Reports = q.Reports[1:] })
	add("a missing allocation", invariant.NoReason, func(_ *fixture, q *invariant.Quiet) {
		q.Reports[0].Allocs = q.Reports[0].Allocs[1:]
	}, invariant.WrongTotals)
	add("an allocation twice", invariant.TwoReasons, func(_ *fixture, q *invariant.Quiet) {
		q.Reports[0].Allocs = append(q.Reports[0].Allocs[:1:1], q.Reports[0].Allocs...)
	}, invariant.WrongTotals)
	add("a report twice", invariant.TwoReasons, func(_ *fixture, q *invariant.Quiet) { q.Reports = append(q.Reports, q.Reports[0]) })
	add("an allocation of another node", invariant.ReasonOfAbsent, func(s *fixture, q *invariant.Quiet) {
		extra := q.Reports[0].Allocs[0]
		extra.Alloc = "a3"
		q.Reports[0].Allocs = append([]rules.AllocExplanation{extra}, q.Reports[0].Allocs...)
	}, invariant.WrongTotals)
	add("a report of an ended drain", invariant.ReasonOfAbsent, func(_ *fixture, q *invariant.Quiet) {
		r := q.Reports[0]
		d := *r.Drain
		d.ID = "over"
		r.Drain = &d
		q.Reports = append(q.Reports, r)
	})
	for _, id := range reasonIDs() {
		add("a wrong reason for "+string(id), invariant.UntrueReason, func(_ *fixture, q *invariant.Quiet) {
			a := reportOfAlloc(q, id)
			a.Reason = (a.Reason + 5) % rules.ReasonCount
		}, invariant.WrongTotals)
	}
	add("a reason for an allocation whose end was confirmed", invariant.UntrueReason, func(_ *fixture, q *invariant.Quiet) {
		q.Truth = fixed{held: true, ended: "stopping"}
	})
	add("a wrong number of healthy allocations", invariant.WrongNumbers, func(_ *fixture, q *invariant.Quiet) { reportOfAlloc(q, "a1").Healthy++ })
	add("a wrong time for a stop", invariant.WrongNumbers, func(_ *fixture, q *invariant.Quiet) {
		a := reportOfAlloc(q, "stopping")
		a.Due = a.Due.Add(time.Second)
	})
	add("a wrong end of a hold", invariant.WrongNumbers, func(_ *fixture, q *invariant.Quiet) { reportOfAlloc(q, "p2").Due = time.Time{} })
	add("a wrong start of a hold", invariant.WrongSince, func(s *fixture, q *invariant.Quiet) { reportOfAlloc(q, "p2").Since.At = s.now })
	add("a wrong time for a verdict", invariant.WrongNumbers, func(_ *fixture, q *invariant.Quiet) { reportOfAlloc(q, "unjudged").Due = epoch })
	add("a missing evaluation of a marked allocation", invariant.WrongNumbers, func(s *fixture, q *invariant.Quiet) { reportOfAlloc(q, "marked").Eval = nil })
	add("a missing list of outstanding allocations", invariant.WrongNumbers, func(_ *fixture, q *invariant.Quiet) { reportOfAlloc(q, "a1").Outstanding = nil }, invariant.WrongCulprit)
	add("a list with an allocation that is not outstanding", invariant.WrongNumbers, func(_ *fixture, q *invariant.Quiet) {
		a := reportOfAlloc(q, "a1")
		a.Outstanding = append([]cluster.AllocID{"a2"}, a.Outstanding...)
	}, invariant.WrongCulprit)
	add("a wrong group", invariant.WrongNumbers, func(_ *fixture, q *invariant.Quiet) { reportOfAlloc(q, "a1").Group.Name = "another" })
	add("another start than the stop", invariant.WrongSince, func(_ *fixture, q *invariant.Quiet) {
		a := reportOfAlloc(q, "stopping")
		a.Since.At = a.Since.At.Add(-1)
	})
	add("a start observed by the leader, although the state has one", invariant.WrongSince, func(_ *fixture, q *invariant.Quiet) {
		reportOfAlloc(q, "marked").Since.Observed = true
	})
	add("no start", invariant.WrongSince, func(_ *fixture, q *invariant.Quiet) { reportOfAlloc(q, "unjudged").Since = rules.Since{} })
	add("a start in the future", invariant.WrongSince, func(s *fixture, q *invariant.Quiet) {
		reportOfAlloc(q, "unjudged").Since.At = s.now.Add(time.Second)
	})
	for name, change := range map[string]func(c *rules.Culprit){
		"another allocation": func(c *rules.Culprit) { c.Alloc = "batch" },
		"a wrong node":       func(c *rules.Culprit) { c.Node = "n2" },
		"a wrong state":      func(c *rules.Culprit) { c.State = rules.CulpritMarked },
		"a wrong start":      func(c *rules.Culprit) { c.Since = epoch.Add(-time.Hour) },
		"a wrong number":     func(c *rules.Culprit) { c.More++ },
	} {
		add("a culprit with "+name, invariant.WrongCulprit, func(_ *fixture, q *invariant.Quiet) {
			copied := *reportOfAlloc(q, "a1").Culprit
			change(&copied)
			reportOfAlloc(q, "a1").Culprit = &copied
		})
	}
	add("no culprit of a stage", invariant.WrongCulprit, func(_ *fixture, q *invariant.Quiet) { reportOfAlloc(q, "s1").Culprit = nil })
	add("a culprit of a reason without one", invariant.WrongCulprit, func(_ *fixture, q *invariant.Quiet) {
		reportOfAlloc(q, "batch").Culprit = reportOfAlloc(q, "s1").Culprit
	})
	add("an evaluation with a wrong status", invariant.WrongCulprit, func(_ *fixture, q *invariant.Quiet) {
		e := reportOfAlloc(q, "marked").Eval.Copy()
		e.Status = cluster.EvalBlocked
		reportOfAlloc(q, "marked").Eval = e
	})
	for name, change := range map[string]func(r *rules.AllocExplanation){
		"without the sick one":    func(r *rules.AllocExplanation) { r.Culprit = nil },
		"with a missing one":      func(r *rules.AllocExplanation) { r.Missing = 1 },
		"with a healthy culprit":  func(r *rules.AllocExplanation) { r.Culprit = &rules.Culprit{Alloc: "a2", Node: "n2"} },
		"with an unknown culprit": func(r *rules.AllocExplanation) { r.Culprit = &rules.Culprit{Alloc: "never"} },
	} {
		all = append(all, broken{"a group below its budget " + name, invariant.WrongCulprit, nil, func(t *testing.T) *fixture {
			s := withoutRoom(t)
			s.quiet(func(q *invariant.Quiet) { change(reportOfAlloc(q, "a1")) })
			return s
		}})
	}
	add("a wrong sum of a stage", invariant.WrongTotals, func(_ *fixture, q *invariant.Quiet) { q.Reports[0].Left[cluster.StageSystem]++ })
	add("a wrong worst reason", invariant.WrongTotals, func(_ *fixture, q *invariant.Quiet) { q.Reports[0].Reason = rules.ReasonLeftByRequest })
	all = append(all, broken{"a mark in flight without a start", invariant.WrongSince, nil, func(t *testing.T) *fixture {
		s := withoutRoom(t)
		s.run("a3")
		s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
		s.read(1)
		s.quiet(func(q *invariant.Quiet) { reportOfAlloc(q, "a1").Since = rules.Since{Observed: true} })
		return s
	}})
	return append(all, broken{"a mark in flight that is not reported", invariant.UntrueReason, []invariant.Check{invariant.WrongTotals},
		func(t *testing.T) *fixture {
			s := withoutRoom(t)
			s.run("a3")
			s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
			s.read(1)
			s.quiet(func(q *invariant.Quiet) { reportOfAlloc(q, "a1").Reason = rules.ReasonWaitingForRoom })
			return s
		}})
}

func fineReasons() []fine {
	return []fine{
		{"a reason that goes on, and another one that begins", func(t *testing.T) *fixture {
			s := withoutRoom(t)
			s.quiet(sinceBefore)
			s.wait(time.Second)
			s.quiet(sinceBefore)
			s.job(service("web", 3, 0))
			s.read(1)
			s.quiet(func(q *invariant.Quiet) { reportOfAlloc(q, "a1").Since.At = s.now })
			return s
		}},
		{"a lack of room hidden by a mark in flight", hiddenHold(func(s *fixture) { s.unhealthy("a3") })},
		{"a ban of paced moves hidden by a mark in flight", hiddenHold(func(s *fixture) { s.job(service("web", 3, 0)) })},
		{"a leader with an old state", func(t *testing.T) *fixture {
			s := reasons(t)
			old, reports := s.state(), s.explain()
			s.ended("a1", "marked")
			s.cancel("n2")
			s.quiet(held, func(q *invariant.Quiet) { q.State, q.Reports = old, reports })
			return s
		}},
	}
}

// hiddenHold starts a reason of a group while a mark in flight hides it. The write fails, and the
// drainer reports the start of the reason.
func hiddenHold(begin func(*fixture)) func(t *testing.T) *fixture {
	return func(t *testing.T) *fixture {
		s := draining(t, invariant.Options{})
		s.propose(1, 1, s.marks(cluster.MarkPaced, "a1"))
		s.read(1)
		s.wait(time.Second)
		begin(s)
		s.read(1)
		since := s.now
		s.wait(time.Second)
		s.quiet(inFlight, func(q *invariant.Quiet) {
			r := &q.Reports[0]
			r.Reason, r.Waiting = rules.ReasonWritePending, [rules.ReasonCount]int{rules.ReasonWritePending: 1}
		})
		s.answer(1, 1, raftwrite.Rejected)
		s.wait(time.Second)
		s.read(1)
		s.quiet(func(q *invariant.Quiet) { reportOfAlloc(q, "a1").Since = rules.Since{At: since, Observed: true} })
		return s
	}
}

// sinceBefore sets the start of the reasons that only the leader dates to a time before the run.
func sinceBefore(q *invariant.Quiet) {
	for i := range q.Reports {
		for k := range q.Reports[i].Allocs {
			if s := &q.Reports[i].Allocs[k].Since; s.Observed {
				s.At = epoch.Add(-time.Second)
			}
		}
	}
}

// reasonIDs returns the allocations of [reasons].
func reasonIDs() []cluster.AllocID {
	return []cluster.AllocID{"a1", "away", "batch", "marked", "p1", "p2", "s1", "stopping", "unjudged"}
}

// reasons is a fixture with an allocation for almost every reason on n1, and one out of touch on
// n2.
func reasons(t *testing.T) *fixture {
	s := leading(t, invariant.Options{})
	for _, j := range []*cluster.Job{
		newJob(cluster.JobBatch, "sum", 1), newJob(cluster.JobSystem, "logs", 1), plugin(newJob(cluster.JobSystem, "csi", 1)), service("far", 1, 1),
	} {
		s.job(j)
	}
	s.place("batch", "sum", "n1")
	s.place("s1", "logs", "n1")
	s.place("p1", "csi", "n1")
	s.place("p2", "csi", "n1")
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
	s.stop("p2", false)
	s.limits("n1", time.Minute, 10*time.Minute)
	s.apply(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{
		Alloc: "p2", Node: "n1", ClientStatus: cluster.ClientRunning, At: s.now,
		VolumeHolds: &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{Namespace: "default", Volume: "data", Alloc: "a1", Since: s.now.Add(-time.Second)}}},
	}}})
	s.status("n2", cluster.NodeDisconnected)
	s.wait(time.Second)
	return s
}

// reportOfAlloc returns the report on an allocation, or nil.
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
