package statestore_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/drainertest"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// This store passes the conformance test of the drainer's stores.
func TestStore_conformance(t *testing.T) {
	t.Parallel()
	must.NoError(t, drainertest.TestStore(func() drainertest.Store {
		s := statestore.New()
		return conforming{StateReader: s.Reader(), store: s}
	}))
}

// conforming writes the rows of the conformance test to a store.
type conforming struct {
	drainer.StateReader
	store *statestore.Store
}

func (c conforming) Abandon() { c.store.Abandon() }

func (c conforming) CommitPause(index uint64, all *cluster.DrainPause) error {
	u := cluster.DrainPauseUpdate{At: time.Unix(int64(index), 0)}
	if all != nil {
		u = cluster.DrainPauseUpdate{Pause: true, At: all.At, By: all.By}
	}
	txn := c.store.Begin(index)
	defer txn.Abort()
	if _, err := statestore.PauseDrains(txn, u); err != nil {
		return err
	}
	txn.Commit()
	return nil
}

func (c conforming) Commit(index uint64, rows drainertest.Rows) error {
	txn := c.store.Begin(index)
	defer txn.Abort()
	for _, n := range rows.Nodes {
		txn.PutNode(n.ID, n)
	}
	for _, j := range rows.Jobs {
		txn.PutJob(j.Key(), j)
	}
	for _, a := range rows.Allocs {
		txn.PutAlloc(a.ID, a)
	}
	for _, e := range rows.Evals {
		txn.PutEval(e.ID, e)
	}
	for _, id := range rows.DeletedNodes {
		txn.PutNode(id, nil)
	}
	for _, key := range rows.DeletedJobs {
		txn.PutJob(key, nil)
	}
	for _, id := range rows.DeletedAllocs {
		txn.PutAlloc(id, nil)
	}
	for _, id := range rows.DeletedEvals {
		txn.PutEval(id, nil)
	}
	txn.Commit()
	return nil
}

// This store also passes the conformance test of volumes.
func TestStore_conformanceOfVolumes(t *testing.T) {
	t.Parallel()
	must.NoError(t, drainertest.TestVolumes(func() drainertest.VolumeStore {
		s := statestore.New()
		return conforming{StateReader: s.Reader(), store: s}
	}))
}

func (c conforming) Claim(index uint64, a cluster.AllocID, plugins []cluster.PluginID) error {
	txn := c.store.Begin(index)
	defer txn.Abort()
	var claims []*cluster.VolumeClaim
	for _, p := range plugins {
		v := &cluster.Volume{ID: cluster.VolumeID("of-" + p), ExternalID: "x", Plugin: p, Capabilities: []cluster.VolumeCapability{single}}
		if err := txn.UpsertVolume(v, time.Unix(1, 0)); err != nil {
			return err
		}
		key := cluster.VolumeKey{Namespace: cluster.DefaultNamespace, ID: v.ID}
		claims = append(claims, &cluster.VolumeClaim{Volume: key, Alloc: a, Node: "n1", Capability: single})
	}
	statestore.PutClaims(txn, a, claims...)
	txn.Commit()
	return nil
}
