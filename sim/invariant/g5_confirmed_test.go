package invariant_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenConfirmations() []broken {
	return []broken{
		{"a lost allocation that the record does not count", invariant.MiscountedUnconfirmed, nil, func(t *testing.T) *fixture {
			s := lostOnN1(t)
			m := s.ends("n1")
			e := endings("n1", "dn1", cluster.OutcomeUnconfirmed)
			e[0].Completion = m.Completions.Completions[0]
			s.fake(m, shims.CompletionsApplied{Ended: e}, func(txn *statestore.Txn) { txn.CompleteDrains(m.At, e) })
			return s
		}},
		{"a complete drain with a lost allocation", invariant.UntrueOutcome, nil, func(t *testing.T) *fixture {
			s := lostOnN1(t)
			m := s.ends("n1")
			e := endings("n1", "dn1", cluster.OutcomeComplete)
			e[0].Completion, e[0].Unconfirmed = m.Completions.Completions[0], &cluster.UnconfirmedAllocs{Count: 1, Allocs: []cluster.AllocID{"a1"}}
			s.fake(m, shims.CompletionsApplied{Ended: e}, func(txn *statestore.Txn) { txn.CompleteDrains(m.At, e) })
			return s
		}},
		{"a report that changes no record", invariant.MiscountedUnconfirmed, nil, func(t *testing.T) *fixture {
			s := unconfirmedOnN1(t)
			record := s.state().DrainRecord("dn1")
			m := &shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: "a1", Node: "n1", ClientStatus: cluster.ClientComplete, At: s.now}}}
			s.forge(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { txn.UpdateAllocsFromClient(m.Reports, m.At) }, func(state *statestore.Snapshot) {
				*state.DrainRecord("dn1") = *record
			})
			return s
		}},
		{"an allocation that is confirmed before its time", invariant.ConfirmedEarly, nil, func(t *testing.T) *fixture {
			s := unconfirmedOnN1(t)
			m := &shims.ConfirmStops{At: s.now, Nodes: []cluster.NodeID{"n1"}}
			s.forge(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { _, _ = txn.ConfirmDrain("dn1", "ada", s.now) }, func(state *statestore.Snapshot) {
				state.DrainRecord("dn1").Unconfirmed.ConfirmedBy = ""
			})
			return s
		}},
		{"a record that does not name the confirmation of another drain", invariant.MiscountedUnconfirmed, nil, func(t *testing.T) *fixture {
			return confirmsSecond(t, func(u *cluster.UnconfirmedAllocs) { u.Other = nil })
		}},
		{"a record that names another time of a confirmation", invariant.MiscountedUnconfirmed, nil, func(t *testing.T) *fixture {
			return confirmsSecond(t, func(u *cluster.UnconfirmedAllocs) { u.Other.At = u.Other.At.Add(1) })
		}},
		{"a report that a record calls a confirmation", invariant.MiscountedUnconfirmed, nil, func(t *testing.T) *fixture {
			s := unconfirmedOnN1(t)
			m := &shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: "a1", Node: "n1", ClientStatus: cluster.ClientComplete, At: s.now}}}
			s.forge(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { txn.UpdateAllocsFromClient(m.Reports, m.At) }, func(state *statestore.Snapshot) {
				state.DrainRecord("dn1").Unconfirmed.Other = &cluster.OtherConfirmation{Drain: "second", By: "ada", At: s.now, Allocs: 1}
			})
			return s
		}},
		{"a counted row that is collected", invariant.CollectedCounted, nil, func(t *testing.T) *fixture {
			s := unconfirmedOnN1(t)
			m := &shims.Collect{Request: collect.Request{Before: collect.Before{Allocs: s.now.Add(time.Hour)}, Rows: collect.Rows{Allocs: []cluster.AllocID{"a1"}}}}
			s.fake(m, shims.ChangeApplied{}, func(txn *statestore.Txn) { txn.DeleteAllocs(m.Rows.Allocs) })
			return s
		}},
	}
}

func fineConfirmations() []fine {
	return []fine{
		{"a drain that ends unconfirmed", unconfirmedOnN1},
		{"a node that returns", func(t *testing.T) *fixture {
			s := unconfirmedOnN1(t)
			s.status("n1", cluster.NodeReady)
			s.ended("a1")
			must.EqOp(t, 0, s.state().DrainRecord("dn1").CountUnconfirmed())
			return s
		}},
		{"time that confirms", func(t *testing.T) *fixture {
			s := unconfirmedOnN1(t)
			s.wait(time.Hour)
			s.apply(&shims.ConfirmStops{At: s.now, Nodes: []cluster.NodeID{"n1"}})
			must.EqOp(t, 0, s.state().DrainRecord("dn1").CountUnconfirmed())
			return s
		}},
		{"a drain that ends after time has confirmed its allocations", func(t *testing.T) *fixture {
			s := unconfirmedOnN1(t)
			s.drainAs("n1", "second")
			s.wait(time.Hour)
			s.apply(&shims.ConfirmStops{At: s.now, Nodes: []cluster.NodeID{"n1"}})
			s.end("n1")
			must.Eq(t, cluster.OutcomeComplete, s.state().DrainRecord("second").Outcome)
			must.EqOp(t, 0, s.state().DrainRecord("dn1").CountUnconfirmed())
			return s
		}},
		{"an operator who confirms", func(t *testing.T) *fixture {
			s := unconfirmedOnN1(t)
			s.apply(&shims.ConfirmDrain{At: s.now, Drain: "dn1", By: "ada"})
			s.apply(&shims.ConfirmDrain{At: s.now, Drain: "dn1", By: "bea"}) // again
			must.Eq(t, "ada", s.state().DrainRecord("dn1").Unconfirmed.ConfirmedBy)
			return s
		}},
		{"an operator who confirms one of three drains", func(t *testing.T) *fixture {
			s := unconfirmedOnN1(t)
			for _, id := range []cluster.DrainID{"second", "third"} {
				s.drainAs("n1", id)
				s.end("n1")
			}
			s.apply(&shims.ConfirmDrain{At: s.now, Drain: "second", By: "ada"})
			want := &cluster.OtherConfirmation{Drain: "second", By: "ada", At: s.now.UTC(), Allocs: 1}
			must.Eq(t, want, s.state().DrainRecord("dn1").Unconfirmed.Other)
			must.Eq(t, want, s.state().DrainRecord("third").Unconfirmed.Other)
			return s
		}},
		{"a lost allocation that is purged during the drain", func(t *testing.T) *fixture {
			s := lostOnN1(t)
			s.apply(&shims.JobDeregister{Job: jobKey("web"), Purge: true, At: s.now})
			s.end("n1")
			must.EqOp(t, 1, s.state().DrainRecord("dn1").CountUnconfirmed())
			return s
		}},
	}
}

// lostOnN1 is a fixture with a drain of n1, which is down. Its allocation a1 is lost.
func lostOnN1(t *testing.T) *fixture {
	s := newFixture(t, invariant.Options{})
	s.apply(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	s.node("n1")
	j := service("web", 1, 1)
	j.TaskGroups[0].Disconnect.StopOnClientAfter = 10 * time.Minute
	s.job(j)
	s.place("a1", "web", "n1")
	s.run("a1")
	s.status("n1", cluster.NodeDown)
	s.stopAs(cluster.PlanStop{Alloc: "a1", Lost: true})
	s.drain("n1", 0)
	return s
}

// unconfirmedOnN1 is lostOnN1 after the end of the drain.
func unconfirmedOnN1(t *testing.T) *fixture {
	s := lostOnN1(t)
	s.end("n1")
	must.Eq(t, cluster.OutcomeUnconfirmed, s.state().DrainRecord("dn1").Outcome)
	return s
}

// confirmsSecond is unconfirmedOnN1 with a second drain of the node, which an operator confirms. What the first
// record counts is forged.
func confirmsSecond(t *testing.T, forged func(*cluster.UnconfirmedAllocs)) *fixture {
	s := unconfirmedOnN1(t)
	s.drainAs("n1", "second")
	s.end("n1")
	m := &shims.ConfirmDrain{At: s.now, Drain: "second", By: "ada"}
	s.forge(m, shims.DrainConfirmed{Allocs: 1}, func(txn *statestore.Txn) { _, _ = txn.ConfirmDrain(m.Drain, m.By, m.At) }, func(state *statestore.Snapshot) {
		forged(state.DrainRecord("dn1").Unconfirmed)
	})
	return s
}
