package statestore_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// dataWorld is a state in which "old" has ended on n1 and its client keeps its data. "first" replaces it and
// never got the data, "next" replaces "first". "other" is no part of this chain.
func dataWorld(t *testing.T) *world {
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfData) })
	w.nodes("n1", "n2", "n3")
	j := w.job(lostJob(0))
	w.place(j, "n1", nil, "old")
	w.place(j, "n2", func(a *cluster.Allocation) { a.PreviousAllocation = "old" }, "first")
	w.place(j, "n3", func(a *cluster.Allocation) { a.PreviousAllocation = "first" }, "next")
	w.place(j, "n3", nil, "other")
	w.data("old", "n1", cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataKept})
	return w
}

// data applies a report with moves of data.
func (w *world) data(id cluster.AllocID, n cluster.NodeID, s cluster.ClientStatus, in, out *cluster.DataMove) {
	w.write(func(x *statestore.Txn) {
		x.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: id, Node: n, ClientStatus: s, DataIn: in, DataOut: out, At: w.now}}, w.now)
	})
}

func TestUpdateAllocsFromClient_aMoveEndsOnBothRows(t *testing.T) {
	t.Parallel()
	w := dataWorld(t)
	must.True(t, w.snap().Alloc("old").DataOut.Kept())
	w.data("next", "n3", cluster.ClientPending, &cluster.DataMove{State: cluster.DataCopying, Peer: "old", Bytes: 5, StartedAt: w.now}, nil)
	must.True(t, w.snap().Alloc("next").DataIn.Pending())
	must.True(t, w.snap().Alloc("old").DataOut.Kept())

	before, started := w.snap().Alloc("old"), w.now
	w.now = w.now.Add(time.Minute)
	w.data("next", "n3", cluster.ClientPending, &cluster.DataMove{State: cluster.DataCopied, Peer: "old", Bytes: 9, Skipped: 1, StartedAt: started}, nil)
	old, next := w.snap().Alloc("old"), w.snap().Alloc("next")
	must.Eq(t, &cluster.DataMove{State: cluster.DataCopied, Peer: "old", Bytes: 9, Skipped: 1, StartedAt: started.UTC(), EndedAt: w.now.UTC()}, next.DataIn)
	must.Eq(t, &cluster.DataMove{State: cluster.DataCopied, Peer: "next", Bytes: 9, Skipped: 1, StartedAt: started.UTC(), EndedAt: w.now.UTC()}, old.DataOut)
	// The client of the old node watches this index.
	must.Greater(t, before.AllocModifyIndex, old.AllocModifyIndex)
	must.Eq(t, before.ModifyTime, old.ModifyTime)

	// An end stays, and a repeated report writes nothing.
	index := w.snap().Index()
	w.data("next", "n3", cluster.ClientPending, &cluster.DataMove{State: cluster.DataGivenUp, Peer: "old"}, nil)
	must.Eq(t, cluster.DataCopied, w.snap().Alloc("next").DataIn.State)
	must.Eq(t, old.ModifyIndex, w.snap().Alloc("old").ModifyIndex)
	must.Greater(t, index, w.snap().Index())
}

func TestUpdateAllocsFromClient_whoseDataMayEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to   cluster.AllocID
		node cluster.NodeID
		peer cluster.AllocID
		want cluster.DataState
	}{
		"the replacement of a replacement without data": {"next", "n3", "old", cluster.DataGivenUp},
		"the replacement":                   {"first", "n2", "old", cluster.DataGivenUp},
		"another allocation":                {"other", "n3", "old", cluster.DataKept},
		"a client of another node":          {"next", "n2", "old", cluster.DataKept},
		"an allocation that does not exist": {"next", "n3", "none", cluster.DataKept},
		"itself":                            {"old", "n1", "old", cluster.DataKept},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := dataWorld(t)
			w.data(c.to, c.node, cluster.ClientPending, &cluster.DataMove{State: cluster.DataGivenUp, Peer: c.peer, Why: "no progress"}, nil)
			must.Eq(t, c.want, w.snap().Alloc("old").DataOut.State)
		})
	}
	t.Run("after the first replacement got the data", func(t *testing.T) {
		t.Parallel()
		w := dataWorld(t)
		w.data("first", "n2", cluster.ClientPending, &cluster.DataMove{State: cluster.DataCopied, Peer: "old"}, nil)
		w.data("next", "n3", cluster.ClientPending, &cluster.DataMove{State: cluster.DataGivenUp, Peer: "old"}, nil)
		must.Eq(t, cluster.DataCopied, w.snap().Alloc("old").DataOut.State)
	})
}

// The servers give up the data of a lost allocation. Bug: a client that came back reported that it keeps the data, and
// deleted it when it had read that the allocation is lost. For the servers it kept the data for ever.
func TestUpdateAllocsFromClient_dataOfALostAllocation(t *testing.T) {
	t.Parallel()
	w := dataWorld(t)
	w.lose("first")
	lost := w.snap().Alloc("first")
	for range 2 { // a report comes twice
		w.data("first", "n2", cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataKept})
		got := w.snap().Alloc("first")
		must.Eq(t, cluster.ClientComplete, got.ClientStatus)
		must.Eq(t, cluster.DataGivenUp, got.DataOut.State)
		must.Eq(t, "the allocation was lost", got.DataOut.Why)
		must.Greater(t, lost.AllocModifyIndex, got.AllocModifyIndex, must.Sprint("its client gets the row"))
	}
}

// The client of the old node gives the data up when no replacement waits for it. Bug: it did after an hour, although a
// replacement waited for its turn.
func TestUpdateAllocsFromClient_theOldClientGivesTheDataUp(t *testing.T) {
	t.Parallel()
	w := dataWorld(t)
	w.data("old", "n1", cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataCopied})
	must.True(t, w.snap().Alloc("old").DataOut.Kept())
	giveUp := func() {
		w.data("old", "n1", cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataGivenUp, Why: "no replacement came for 1h"})
	}
	w.data("first", "n2", cluster.ClientPending, &cluster.DataMove{State: cluster.DataWaiting, Peer: "old"}, nil)
	giveUp()
	must.True(t, w.snap().Alloc("old").DataOut.Kept(), must.Sprint("first waits"))
	w.data("next", "n3", cluster.ClientPending, nil, nil)
	w.data("first", "n2", cluster.ClientFailed, nil, nil)
	giveUp()
	must.True(t, w.snap().Alloc("old").DataOut.Kept(), must.Sprint("the client of next has not reported"))
	before := w.snap().Alloc("old").AllocModifyIndex
	w.data("next", "n3", cluster.ClientFailed, nil, nil)
	giveUp()
	must.Greater(t, before, w.snap().Alloc("old").AllocModifyIndex, must.Sprint("the client of the old node watches this index"))
	must.Eq(t, &cluster.DataMove{State: cluster.DataGivenUp, Why: "no replacement came for 1h", EndedAt: w.now.UTC()}, w.snap().Alloc("old").DataOut)
	w.data("old", "n1", cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataKept})
	must.Eq(t, cluster.DataGivenUp, w.snap().Alloc("old").DataOut.State)
}
