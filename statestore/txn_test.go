package statestore_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func TestATransactionSeesWhatItWrote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 2))
	w.write(func(x *statestore.Txn) {
		_, err := x.ApplyPlan(&cluster.Plan{At: w.now, Places: []*cluster.Allocation{place(web, "w1", "n1"), place(web, "w2", "n1")}})
		must.NoError(t, err)
		must.Eq(t, w.index, x.State().Index())
		must.Eq(t, w.index, x.State().TableIndex(statestore.TableAllocs))
		must.Eq(t, 1, x.State().TableIndex(statestore.TableNodes))
		must.Eq(t, 2, x.State().DrainView().Consumers("n1"))
		must.Eq(t, cluster.Resources{CPU: 200, MemoryMB: 128}, x.State().Usage("n1").Resources)
		must.Eq(t, w.index-1, w.snap().Index(), must.Sprint("readers do not see it before the commit"))
		must.Eq(t, 0, w.snap().DrainView().Consumers("n1"))
	})
	must.Eq(t, 2, w.snap().Usage("n1").Live)
}

func TestAbortLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	before := dump(t, w.snap())
	txn := w.store.Begin(99)
	must.NoError(t, txn.UpsertNode(&cluster.Node{ID: "n2"}, w.now))
	txn.Abort()
	txn.Abort()
	txn.Commit()
	must.Eq(t, before, dump(t, w.snap()))

	w.nodes("n3") // the next writer does not wait
	must.Eq(t, "[n1 n3]", fmt.Sprint(nodeIDs(w.snap().Nodes())))
}

// An entry that changes nothing still moves the index, so that a reader that waits for the index
// does not wait forever.
func TestAnEmptyEntryChangesTheIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.write(func(*statestore.Txn) {})
	must.Eq(t, 2, w.snap().Index())
	must.Eq(t, 1, w.snap().TableIndex(statestore.TableNodes))
}

// Several goroutines may read a snapshot while the store changes.
func TestASnapshotIsReadByMany(t *testing.T) {
	t.Parallel()
	w := story(t)
	s := w.snap()
	want := dump(t, s)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { must.Eq(t, want, dump(t, s)) })
	}
	for range 20 {
		w.status("n3", cluster.NodeDown)
		w.status("n3", cluster.NodeReady)
	}
	wg.Wait()
	must.NotEq(t, want, dump(t, w.snap()))
}
