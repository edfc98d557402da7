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

// A restored store contains only the deletions after its snapshot. Without a history, a reader from before
// the snapshot must read everything again.
func TestInHistory_ofARestoredStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.place(w.job(serviceJob("web", 1)), "n1", nil, "a")
	must.True(t, w.snap().InHistory(0, 0))
	at := w.index
	w.store = restored(t, w.snap())
	from := func() {
		must.False(t, w.snap().InHistory(at-1, 0))
		must.True(t, w.snap().InHistory(at, 0))
		must.True(t, w.snap().InHistory(at+10, 0), must.Sprint("this server may be behind"))
	}
	from()
	must.Eq(t, 0, w.snap().RemovedAt())
	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.DeleteJob(cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "web"}, true))
	})
	from()
	must.Eq(t, w.index, w.snap().RemovedAt())
}

// The history of a state depends on every entry, from cluster version 9 on. A snapshot keeps it.
func TestHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entry := func(data string) *statestore.Snapshot {
		w.write(func(x *statestore.Txn) { statestore.Extend(x, []byte(data)) })
		return w.snap()
	}
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfHistory - 1) })
	must.Zero(t, entry("a").History())
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfHistory) })
	must.Zero(t, w.snap().History())
	begin := w.snap()
	first, second := entry("a"), entry("a")
	must.Eq(t, []uint64{644055391246469405, 3615932876638243150}, []uint64{first.History(), second.History()}, must.Sprint("all builds compute the same"))
	must.NotEq(t, first.History(), second.History(), must.Sprint("the same entry again"))

	copied, index := w.store, w.index
	for name, c := range map[string]struct {
		index   uint64
		entries []string
		equal   bool
	}{
		"the same entries": {begin.Index(), []string{"a", "a"}, true},
		"another entry":    {begin.Index(), []string{"b", "a"}, false},
		"another index":    {begin.Index() - 1, []string{"a", "a"}, false},
	} {
		w.store, w.index = restored(t, begin), c.index
		var last *statestore.Snapshot
		for _, data := range c.entries {
			last = entry(data)
		}
		must.EqOp(t, c.equal, last.History() == second.History(), must.Sprint(name))
	}

	w.store, w.index = copied, index
	r := restored(t, w.snap())
	must.Eq(t, second.History(), r.Snapshot().History())
	r.Advance(1000, 0)
	must.NotEq(t, second.History(), r.Snapshot().History(), must.Sprint("an operator restored the state"))
}

// A store has the states that it had since its snapshot. Its snapshots show the newest ones, too.
func TestInHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfHistory) })
	var states []*statestore.Snapshot
	for range 3 {
		w.write(func(x *statestore.Txn) { statestore.Extend(x, nil) })
		w.index++ // raft has an entry of its own
		states = append(states, w.snap())
	}
	has := func(s, of *statestore.Snapshot) bool { return s.InHistory(of.Index(), of.History()) }
	for _, s := range states {
		must.True(t, has(w.snap(), s))
		must.True(t, has(states[0], s))
		must.False(t, w.snap().InHistory(s.Index(), s.History()+1))
		must.False(t, w.snap().InHistory(s.Index()+1, s.History()))
	}
	w.write(func(x *statestore.Txn) {
		statestore.Extend(x, nil)
		x.Abort()
	})
	must.Eq(t, states[2].Index(), w.snap().Index())

	r := restored(t, states[1])
	must.False(t, has(r.Snapshot(), states[0]))
	must.True(t, has(r.Snapshot(), states[1]))
	must.False(t, has(r.Snapshot(), states[2]))
}

// A long history forgets its older half. A reader from then reads everything again.
func TestInHistory_long(t *testing.T) {
	t.Parallel()
	s := statestore.New()
	s.AddMoments(1, 2*statestore.MaxMoments-1)
	state := s.Snapshot()
	must.True(t, state.InHistory(1, 1))
	must.True(t, state.InHistory(0, 0))
	const next = 2 * statestore.MaxMoments
	s.AddMoments(next, 1)
	for index, known := range map[uint64]bool{1: false, next - statestore.MaxMoments - 1: false, next - statestore.MaxMoments: true, next: true} {
		must.EqOp(t, known, state.InHistory(index, index))
		must.EqOp(t, known, state.InHistory(index, 0))
	}
}
