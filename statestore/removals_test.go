package statestore_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// A deleted allocation is a removal if its client may still run it, or keeps its data. A client has ended an
// allocation that it reported as complete or failed.
func TestRemovedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	collect := func(ids ...cluster.AllocID) { w.write(func(x *statestore.Txn) { x.DeleteAllocs(ids) }) }
	purge := func(id cluster.JobID) {
		w.write(func(x *statestore.Txn) {
			must.NoError(t, x.DeleteJob(cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: id}, true))
		})
	}
	web := w.job(serviceJob("web", 5))
	w.place(web, "n1", nil, "done", "failed", "ended", "lost", "runs")
	w.report(cluster.ClientComplete, "done", "ended")
	w.report(cluster.ClientFailed, "failed")
	w.plan(&cluster.Plan{Stops: []cluster.PlanStop{{Alloc: "lost", Lost: true, Description: "gone"}}})
	collect("done", "failed", "runs")
	must.NotNil(t, w.snap().Alloc("runs"))
	must.Eq(t, 0, w.snap().RemovedAt(), must.Sprint("the clients have ended them"))

	before := w.snap()
	collect("lost")
	must.Eq(t, w.index, w.snap().RemovedAt())
	must.Eq(t, w.index, before.RemovedAt(), must.Sprint("an older snapshot shows it too"))

	w.report(cluster.ClientRunning, "runs")
	must.Less(t, w.index, w.snap().RemovedAt())
	purge("web")
	must.Eq(t, w.index, w.snap().RemovedAt())

	batch := w.job(job("batch", cluster.JobBatch, 1))
	w.place(batch, "n1", nil, "over")
	w.report(cluster.ClientComplete, "over")
	last := w.snap().RemovedAt()
	purge("batch")
	must.Eq(t, last, w.snap().RemovedAt(), must.Sprint("a purge of ended allocations is no removal"))

	moving := w.job(serviceJob("moving", 1))
	w.place(moving, "n1", nil, "kept")
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfData) })
	w.data("kept", "n1", cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataKept})
	purge("moving")
	must.Greater(t, last, w.snap().RemovedAt(), must.Sprint("the client must delete the data"))
	last = w.snap().RemovedAt()

	w.job(serviceJob("other", 1))
	w.write(func(x *statestore.Txn) {
		x.DeleteAllocs(nil)
		x.Abort()
	})
	must.Eq(t, last, w.snap().RemovedAt())
}

// A restored store contains only the deletions after its snapshot.
func TestHistoryFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.place(w.job(serviceJob("web", 1)), "n1", nil, "a")
	must.Eq(t, 0, w.snap().HistoryFrom())
	at := w.index
	w.store = restored(t, w.snap())
	must.Eq(t, at, w.snap().HistoryFrom())
	must.Eq(t, 0, w.snap().RemovedAt())
	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.DeleteJob(cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "web"}, true))
	})
	must.Eq(t, at, w.snap().HistoryFrom())
	must.Eq(t, w.index, w.snap().RemovedAt())
}
