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
		{"a mark in a report", invariant.UnexplainedMark, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			s.forge(reportOf("a1", "n1"), shims.ChangeApplied{}, nothing, func(state *statestore.Snapshot) {
				state.Alloc("a1").DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "dn1", Class: cluster.MarkFree}
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
		{"a revision that changes without a request", invariant.RevisionMoved, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.drain("n1", 0)
			m := &shims.NodeUpdateStatus{At: s.now, Node: "n1", Status: cluster.NodeReady}
			s.forge(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { _ = txn.UpdateNodeStatus("n1", cluster.NodeReady, s.now) },
				func(state *statestore.Snapshot) { state.Node("n1").Drain.Revision++ })
			return s
		}},
	}
}

func fineCause() []fine {
	return []fine{
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
	}
}

// updates writes the rows of a request for a drain.
func (s *fixture) updates(m *shims.NodeUpdateDrain) func(*statestore.Txn) {
	return func(txn *statestore.Txn) { _, _ = txn.UpdateNodeDrain(m.DrainUpdate) }
}

func reportOf(id cluster.AllocID, on cluster.NodeID) *shims.AllocClientUpdate {
	return &shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: id, Node: on, ClientStatus: cluster.ClientRunning, At: epoch}}}
}
