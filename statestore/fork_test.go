package statestore_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Writes to a store and to its fork do not show in the other, also not in the list of draining nodes, which
// the store keeps beside the tables.
func TestStore_Fork(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := statestore.New()
	write := func(s *statestore.Store, index uint64, do func(*statestore.Txn) error) {
		txn := s.Begin(index)
		must.NoError(t, do(txn))
		txn.Commit()
	}
	drain := func(id cluster.NodeID) func(*statestore.Txn) error {
		return func(txn *statestore.Txn) error {
			_, err := txn.UpdateNodeDrain(cluster.DrainUpdate{Node: id, Spec: &cluster.DrainSpec{}, Drain: cluster.DrainID("d-" + id), At: at})
			return err
		}
	}
	draining := func(s *statestore.Store) (ids []cluster.NodeID) {
		for n := range s.Snapshot().DrainView().DrainingNodes() {
			ids = append(ids, n.ID)
		}
		return ids
	}
	for i, id := range []cluster.NodeID{"a", "b", "c"} {
		write(s, uint64(i+1), func(txn *statestore.Txn) error { return txn.UpsertNode(clustertest.Node(id), at) })
	}
	write(s, 4, drain("a"))
	fork := s.Fork()
	must.Eq(t, 4, fork.Snapshot().Index())
	wake := make(chan struct{}, 1)
	feed := fork.Reader().Subscribe(wake)
	defer feed.Close()
	write(fork, 5, drain("b"))
	must.Eq(t, 1, len(wake)) // a fork has feeds of its own
	write(s, 5, drain("c"))

	must.Eq(t, []cluster.NodeID{"a", "b"}, draining(fork))
	must.Eq(t, []cluster.NodeID{"a", "c"}, draining(s))
	fork.Abandon()
	must.False(t, s.Snapshot().Abandoned())
}
