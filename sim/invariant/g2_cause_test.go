package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenCause() []broken {
	return []broken{
		{"a mark on a node that does not drain", invariant.NotDraining, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			s.cancel("n1")
			s.forge(m, shims.MarksApplied{Accepted: m.Marks.Marks}, s.evalsOf(m), s.markRows(m))
			return s
		}},
		{"a mark planned for the previous drain", invariant.NotDraining, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			s.cancel("n1")
			r := s.request("n1", &cluster.DrainSpec{})
			r.Drain = "second"
			s.apply(r)
			m.Marks.Marks[0].Drain = "dn1"
			s.forge(m, shims.MarksApplied{Accepted: m.Marks.Marks}, s.evalsOf(m), func(state *statestore.Snapshot) {
				s.markRows(m)(state)
			})
			return s
		}},
		{"an end planned for the previous drain", invariant.NotDraining, []invariant.Check{invariant.WrongAnswer}, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.ends("n1")
			s.cancel("n1")
			r := s.request("n1", &cluster.DrainSpec{})
			r.Drain = "second"
			s.apply(r)
			s.ended("a1")
			e := []rules.Ending{{Completion: m.Completions.Completions[0], Outcome: cluster.OutcomeComplete}}
			s.fake(m, shims.CompletionsApplied{Ended: e}, nothing)
			return s
		}},
		{"a deadline mark planned before the deadline changed", invariant.StaleRevision, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", time.Minute)
			m := s.marks(cluster.MarkDeadline, "a1")
			s.drain("n1", time.Second)
			s.wait(time.Minute)
			m.At = s.now
			s.applyUnchecked(m)
			return s
		}},
		{"an end planned before the strategy changed", invariant.StaleRevision, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.ended("a1")
			s.drain("n1", 0)
			m := s.ends("n1")
			s.drain("n1", time.Minute)
			e := endings("n1", "dn1", cluster.OutcomeComplete)
			s.fake(m, shims.CompletionsApplied{Ended: e}, func(txn *statestore.Txn) { txn.CompleteDrains(m.At, e) })
			return s
		}},
		{"a mark on an excluded system allocation", invariant.MarkedExcluded, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.job(newJob(cluster.JobSystem, "logs", 1))
			s.place("s1", "logs", "n1")
			s.ended("a1")
			s.apply(s.request("n1", &cluster.DrainSpec{IgnoreSystemJobs: true}))
			s.markAnyway(cluster.MarkStage, "s1")
			return s
		}},
		{"a mark in a report", invariant.UnexplainedMark, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.forge(reportOf("a1", "n1"), shims.ChangeApplied{}, nothing, func(state *statestore.Snapshot) {
				state.Alloc("a1").DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "dn1", Class: cluster.MarkFree}
			})
			return s
		}},
		{"a mark with another time than its entry", invariant.UnexplainedMark, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			s.fake(m, shims.MarksApplied{Accepted: m.Marks.Marks}, func(txn *statestore.Txn) {
				_ = txn.ApplyMarks(m.At.Add(time.Second), m.Marks.Marks, m.Evals)
			})
			return s
		}},
		{"a mark of another class than the entry says", invariant.UnexplainedMark, []invariant.Check{
			invariant.ValidRefused, invariant.WrongAnswer, invariant.MiscountedMarks, invariant.IdleWrite,
		}, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			s.forge(m, shims.MarksApplied{Accepted: m.Marks.Marks}, s.evalsOf(m), func(state *statestore.Snapshot) {
				s.markRows(m)(state)
				state.Alloc("a1").DesiredTransition.Class = cluster.MarkFree
			})
			return s
		}},
		{"a cancel that leaves a mark", invariant.NotWithdrawn, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.mark(cluster.MarkPaced, "a1")
			mark := s.state().Alloc("a1").DesiredTransition
			m := s.request("n1", nil)
			r := shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1", Withdrawn: 1}}
			s.forge(m, r, s.updates(m), func(state *statestore.Snapshot) { state.Alloc("a1").DesiredTransition = mark })
			return s
		}},
		{"a cancel that leaves the class of a mark", invariant.NotWithdrawn, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.mark(cluster.MarkPaced, "a1")
			m := s.request("n1", nil)
			r := shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1", Withdrawn: 1}}
			s.forge(m, r, s.updates(m), func(state *statestore.Snapshot) {
				state.Alloc("a1").DesiredTransition.Class = cluster.MarkPaced
			})
			return s
		}},
		{"a cancel that leaves MigrateDisablePlacement", invariant.NotWithdrawn, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.mark(cluster.MarkPaced, "a1")
			m := s.request("n1", nil)
			r := shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1", Withdrawn: 1}}
			s.forge(m, r, s.updates(m), func(state *statestore.Snapshot) {
				state.Alloc("a1").DesiredTransition.MigrateDisablePlacement = true
			})
			return s
		}},
		{"a cancel that miscounts the withdrawn marks", invariant.NotWithdrawn, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.mark(cluster.MarkPaced, "a1")
			s.stop("a1", true)
			m := s.request("n1", nil)
			s.fake(m, shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1", Withdrawn: 1}}, s.updates(m))
			return s
		}},
		{"an entry that removes a mark of no drain", invariant.ForeignMarkWithdrawn, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.place("b1", "web", "n1", func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true })
			s.forge(reportOf("b1", "n1"), shims.ChangeApplied{}, nothing, func(state *statestore.Snapshot) {
				state.Alloc("b1").DesiredTransition.Migrate = false
			})
			return s
		}},
		{"a plan that stops an allocation after its mark was withdrawn", invariant.StoppedWithoutMark, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.mark(cluster.MarkPaced, "a1")
			s.cancel("n1")
			s.stop("a1", true)
			return s
		}},
		{"batch work placed again after a deadline stopped it", invariant.PlacedAgain, nil, func(t *testing.T) *fixture {
			s := batch(t)
			s.wait(time.Minute)
			s.mark(cluster.MarkDeadline, "b1")
			s.stop("b1", true)
			s.place("b2", "sum", "n3", replacing("b1"))
			return s
		}},
		{"batch work placed again after a deadline marked it and its node died", invariant.PlacedAgain, nil, func(t *testing.T) *fixture {
			s := batch(t)
			s.wait(time.Minute)
			s.mark(cluster.MarkDeadline, "b1")
			s.stopAs(cluster.PlanStop{Alloc: "b1", Lost: true, Description: cluster.DescLost})
			s.place("b2", "sum", "n3", replacing("b1"))
			return s
		}},
		{"batch work placed again that failed after a deadline stopped it", invariant.PlacedAgain, nil, func(t *testing.T) *fixture {
			s := batch(t)
			s.wait(time.Minute)
			s.mark(cluster.MarkDeadline, "b1")
			s.stop("b1", true)
			s.failed("b1")
			s.place("b2", "sum", "n3", replacing("b1"))
			return s
		}},
		{"a deadline mark on batch work that may be placed again", invariant.PlacedAgain, nil, func(t *testing.T) *fixture {
			s := batch(t)
			s.wait(time.Minute)
			m := s.marks(cluster.MarkDeadline, "b1")
			s.forge(m, shims.MarksApplied{Accepted: m.Marks.Marks}, s.evalsOf(m), s.markRows(m))
			return s
		}},
		{"a repeated request that acts again", invariant.RepeatedActed, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			m := s.request("n1", &cluster.DrainSpec{Deadline: time.Hour})
			m.Key = "once"
			s.apply(m)
			again := s.request("n1", &cluster.DrainSpec{Deadline: time.Hour})
			again.At, again.Key = s.now.Add(time.Minute), "once"
			s.fake(again, shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1", Repeated: true}}, func(txn *statestore.Txn) {
				again.Key = ""
				_, _ = txn.UpdateNodeDrain(again.DrainUpdate)
				again.Key = "once"
			})
			return s
		}},
		{"a new request answered as a repeated one", invariant.RepeatedActed, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			m := s.request("n1", &cluster.DrainSpec{})
			m.Key = "once"
			s.apply(m)
			next := s.request("n1", &cluster.DrainSpec{Deadline: time.Hour})
			next.Key = "another"
			s.fake(next, shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1", Repeated: true}}, nothing)
			return s
		}},
		{"a drain that loses a key", invariant.RepeatedActed, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			m := s.request("n1", &cluster.DrainSpec{})
			m.Key = "once"
			s.forge(m, shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1"}}, s.updates(m),
				func(state *statestore.Snapshot) { state.Node("n1").Drain.Keys = nil })
			return s
		}},
		{"a mark that sets NoShutdownDelay", invariant.UnexplainedMark, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := s.marks(cluster.MarkPaced, "a1")
			s.forge(m, shims.MarksApplied{Accepted: m.Marks.Marks}, func(txn *statestore.Txn) { _ = txn.ApplyMarks(m.At, m.Marks.Marks, m.Evals) },
				func(state *statestore.Snapshot) { state.Alloc("a1").DesiredTransition.NoShutdownDelay = true })
			return s
		}},
		{"a revision that changes without a request", invariant.RevisionMoved, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := &shims.NodeUpdateStatus{At: s.now, Node: "n1", Status: cluster.NodeReady}
			s.forge(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { _ = txn.UpdateNodeStatus("n1", cluster.NodeReady, s.now) },
				func(state *statestore.Snapshot) { state.Node("n1").Drain.Revision++ })
			return s
		}},
		{"a strategy that changes without its revision", invariant.RevisionMoved, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			was := s.state().Node("n1").Drain.Revision
			m := s.request("n1", &cluster.DrainSpec{Deadline: time.Hour})
			r := shims.DrainRequestApplied{DrainResult: cluster.DrainResult{Drain: "dn1"}}
			s.forge(m, r, s.updates(m), func(state *statestore.Snapshot) { state.Node("n1").Drain.Revision = was })
			return s
		}},
		{"a proposal after the end of its term", invariant.WroteAfterTerm, nil, func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.drain("n1", 0)
			s.j.Ended(s.now, 1)
			s.j.Proposed(s.now, invariant.Write{Term: 1, N: 9, Message: s.marks(cluster.MarkPaced, "a1")})
			return s
		}},
	}
}

func fineCause() []fine {
	return []fine{
		{"a paced mark planned before the deadline was extended", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", time.Minute)
			m := s.marks(cluster.MarkPaced, "a1")
			s.drain("n1", time.Hour)
			s.apply(m)
			return s
		}},
		{"a refused mark and a refused end of a cancelled drain", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m, e := s.marks(cluster.MarkPaced, "a1"), s.ends("n1")
			s.cancel("n1")
			s.apply(m)
			s.apply(e)
			return s
		}},
		{"a cancel with a mark, a stop, and a mark of no drain", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 3)
			s.place("b1", "web", "n1")
			s.place("b2", "web", "n1", func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true })
			s.run("b1", "b2")
			s.drain("n1", 0)
			s.mark(cluster.MarkPaced, "a1", "b1")
			s.stop("b1", true)
			s.cancel("n1")
			return s
		}},
		{"batch work placed again after it failed", func(t *testing.T) *fixture {
			s := batch(t)
			s.wait(time.Minute)
			s.mark(cluster.MarkDeadline, "b1")
			s.failed("b1")
			s.place("b2", "sum", "n3", replacing("b1"))
			return s
		}},
		{"batch work placed again that failed, in a later plan than its stop", func(t *testing.T) *fixture {
			s := batch(t)
			s.wait(time.Minute)
			s.mark(cluster.MarkDeadline, "b1")
			s.failed("b1")
			s.stopAs(cluster.PlanStop{Alloc: "b1", Description: cluster.DescRescheduled})
			s.place("b2", "sum", "n3", replacing("b1"))
			return s
		}},
		{"repeated requests with a key, and requests without one", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			for range 2 {
				m := s.request("n1", &cluster.DrainSpec{Deadline: time.Hour})
				m.Key = "once"
				s.apply(m)
			}
			s.drain("n1", time.Hour)
			s.cancel("n1")
			m := s.request("n1", &cluster.DrainSpec{Deadline: time.Hour})
			m.Key = "once"
			s.apply(m) // the record keeps the key
			return s
		}},
		{"a term that ends", func(t *testing.T) *fixture {
			s := leading(t, invariant.Options{})
			s.j.Ended(s.now, 1)
			return s
		}},
	}
}

// batch is a fixture with batch work, b1, on n1, which drains with a deadline of a minute.
func batch(t *testing.T) *fixture {
	s := web(t, invariant.Options{}, 1, 1)
	s.job(newJob(cluster.JobBatch, "sum", 1))
	s.place("b1", "sum", "n1")
	s.report(cluster.ClientRunning, nil, "b1")
	s.drain("n1", time.Minute)
	return s
}

// updates writes the rows of a request for a drain.
func (s *fixture) updates(m *shims.NodeUpdateDrain) func(*statestore.Txn) {
	return func(txn *statestore.Txn) { _, _ = txn.UpdateNodeDrain(m.DrainUpdate) }
}

func reportOf(id cluster.AllocID, on cluster.NodeID) *shims.AllocClientUpdate {
	return &shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: id, Node: on, ClientStatus: cluster.ClientRunning, At: epoch}}}
}
