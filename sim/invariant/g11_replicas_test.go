package invariant_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func brokenReplicas() []broken {
	return []broken{
		{"another server writes another row", invariant.ReplicasDiffer, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{Digests: true}, 1, 1)
			s.drain("n1", 0)
			other := s.last
			other.After = s.changed(other.After, func(state *statestore.Snapshot) { state.Node("n1").Drain.Strategy.StartedAt = epoch.Add(1) })
			s.j.Replica(s.now, 1, other)
			return s
		}},
		{"another server has another final state", invariant.ReplicasDiffer, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			other := s.changed(s.state(), func(state *statestore.Snapshot) { state.Alloc("a1").ClientDescription = "odd" })
			s.j.End(s.now, s.state(), other)
			return s
		}},
		{"a restore that changes a row", invariant.RestoreDiffers, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			restored := s.changed(s.state(), func(state *statestore.Snapshot) { state.Alloc("a1").CreateTime = epoch.Add(time.Nanosecond) })
			s.j.Restored(s.now, s.state(), restored)
			return s
		}},
		{"an entry that writes a row that it does not name", invariant.Unnamed, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.forge(reportOf("a1", "n1"), shims.ChangeApplied{}, nothing, func(state *statestore.Snapshot) { state.Alloc("a2").ClientStatus = cluster.ClientLost })
			return s
		}},
		{"an entry that adds a row that it does not name", invariant.Unnamed, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{Every: 100}, 1, 1)
			s.fake(reportOf("a1", "n1"), shims.ChangeApplied{}, func(txn *statestore.Txn) { _ = txn.UpsertJob(service("hidden", 1, 1)) })
			s.j.End(s.now, s.state())
			return s
		}},
		{"an entry that deletes a row that it does not name", invariant.Unnamed, nil, func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.fake(reportOf("a1", "n1"), shims.ChangeApplied{}, func(txn *statestore.Txn) { txn.DeleteNodes([]cluster.NodeID{"n3"}, epoch) })
			return s
		}},
	}
}

func fineReplicas() []fine {
	return []fine{
		{"the same log on two servers, and a restore between", func(t *testing.T) *fixture {
			s := newFixture(t, invariant.Options{Digests: true})
			other := shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) { s.j.Replica(s.now, 1, a) }})
			both := func(m shims.Message) {
				s.apply(m)
				data, err := shims.Encode(m)
				must.NoError(t, err)
				_, err = other.ApplyEntry(s.index, data)
				must.NoError(t, err)
			}
			both(&shims.NodeRegister{At: epoch, Node: &cluster.Node{ID: "n1", Status: cluster.NodeReady}})
			both(s.request("n1", &cluster.DrainSpec{Deadline: time.Hour}))
			taken := s.state()
			s.forge(reportOf("none", "n1"), shims.ChangeApplied{}, nothing, func(*statestore.Snapshot) {}) // restores
			both(s.request("n1", nil))
			s.j.Restored(s.now, taken, s.changed(taken, func(*statestore.Snapshot) {}))
			return s
		}},
		{"writes past the log between two entries", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.index++
			txn := s.fsm.Store().Begin(s.index)
			must.NoError(t, txn.UpsertJob(service("more", 2, 1)))
			txn.Commit()
			s.drain("n1", 0)
			return s
		}},
		{"a skipped entry that sets up the world", func(t *testing.T) *fixture {
			s := web(t, invariant.Options{}, 1, 1)
			s.index++
			before := s.state()
			txn := s.fsm.Store().Begin(s.index)
			must.NoError(t, txn.UpsertJob(service("more", 2, 1)))
			txn.Commit()
			s.observe(shims.Applied{Index: s.index, Response: shims.Skipped{}, Before: before, After: s.state()})
			return s
		}},
	}
}

// changed returns a copy of a state with edited rows.
func (s *fixture) changed(state *statestore.Snapshot, edit func(*statestore.Snapshot)) *statestore.Snapshot {
	copied, err := statestore.Restore(s.persist(state))
	must.NoError(s.t, err)
	edit(copied.Snapshot())
	return copied.Snapshot()
}
