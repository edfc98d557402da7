package statestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// For a write that concerns no subscriber the feed allocates no memory and reads no row, for any
// number of changed rows.
func TestFeed_unconcernedChangesCostNothing(t *testing.T) {
	w, s := feedWorld(t)
	reports := make([]cluster.AllocReport, 200)
	db := w.snap().Job(serviceJob("db", 9).Key())
	for i := range reports {
		id := fmt.Sprint("more", i)
		w.place(db, "n2", nil, id)
		reports[i] = cluster.AllocReport{Alloc: cluster.AllocID(id), Node: "n2", ClientStatus: cluster.ClientRunning, ClientDescription: "up"}
	}
	w.write(func(x *statestore.Txn) { x.UpdateAllocsFromClient(reports, time.Time{}) })
	must.Eq(t, nothing, s.changes())
	must.Eq(t, 0, testing.AllocsPerRun(100, w.store.Hook(s.feed, []cluster.NodeID{"n2"}, []cluster.JobKey{db.Key()}, "more1", "more2", "d2")))
	must.Eq(t, nothing, s.changes())
	ids := make([]cluster.AllocID, len(reports))
	for i, r := range reports {
		ids[i] = r.Alloc
	}
	must.Eq(t, 0, testing.AllocsPerRun(100, w.store.Hook(s.feed, nil, nil, ids...)))
	must.Eq(t, nothing, s.changes())
}

// A node with allocations that no subscriber follows goes down and becomes ready again. The write
// has counted the allocations, and a feed does not read them.
func TestFeed_reconnectingNodesCostNothing(t *testing.T) {
	w, s := feedWorld(t)
	for i := range 30 {
		j := w.job(serviceJob(fmt.Sprint("other", i), 2))
		w.place(j, "n3", nil, fmt.Sprint("one of ", i), fmt.Sprint("another of ", i))
	}
	goAndCome := func() {
		w.status("n3", cluster.NodeDown)
		w.status("n3", cluster.NodeReady)
	}
	with := testing.AllocsPerRun(100, goAndCome)
	must.Eq(t, nothing, s.changes())
	s.feed.Close()
	must.Eq(t, testing.AllocsPerRun(100, goAndCome), with)
}
