package statestore_test

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func TestTheLastDrainsOfANodeAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2")
	w.drain("n2", "other", cluster.DrainSpec{})
	w.complete("n2", cluster.OutcomeComplete, 0)
	for i := range cluster.MaxDrainRecordsPerNode + 3 {
		w.drain("n1", cluster.DrainID(fmt.Sprintf("d%02d", i)), cluster.DrainSpec{})
		w.request(cluster.DrainUpdate{Node: "n1"})
	}
	kept := recordIDs(w.snap().DrainsByNode("n1"))
	must.Len(t, cluster.MaxDrainRecordsPerNode, kept)
	must.Eq(t, "d03", kept[0])
	must.Eq(t, "d12", kept[cluster.MaxDrainRecordsPerNode-1])
	must.Nil(t, w.snap().DrainRecord("d02"))
	must.Len(t, cluster.MaxDrainRecordsPerNode+1, recordIDs(w.snap().Drains()))
	recount(t, w.snap())
}

func TestRecordsOutliveTheirNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.write(func(x *statestore.Txn) { x.DeleteNodes([]cluster.NodeID{"n1"}, w.now) })
	w.nodes("n1")
	w.drain("n1", "d2", cluster.DrainSpec{})
	w.complete("n1", cluster.OutcomeComplete, 0)
	must.Eq(t, []cluster.DrainID{"d1", "d2"}, recordIDs(w.snap().DrainsByNode("n1")))
}

// All drains that end in one entry are equally old. The record with the lower id is deleted first.
//
//race:skip one goroutine
func TestTheRecordsKeptInAllAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const batch = 1_000
	end := func(round int) {
		var endings []rules.Ending
		w.write(func(x *statestore.Txn) {
			for i := range batch {
				n, d := cluster.NodeID(fmt.Sprintf("n%d-%04d", round, i)), cluster.DrainID(fmt.Sprintf("d%02d-%04d", round, i))
				must.NoError(t, x.UpsertNode(&cluster.Node{ID: n}, w.now))
				_, err := x.UpdateNodeDrain(cluster.DrainUpdate{Node: n, Drain: d, Spec: &cluster.DrainSpec{}, At: w.now})
				must.NoError(t, err)
				endings = append(endings, rules.Ending{Completion: rules.Completion{Node: n, Drain: d}, Outcome: cluster.OutcomeComplete})
			}
		})
		w.write(func(x *statestore.Txn) { x.CompleteDrains(w.now, endings) })
	}
	rounds := cluster.MaxDrainRecords / batch
	for round := range rounds {
		end(round)
	}
	must.Len(t, cluster.MaxDrainRecords, recordIDs(w.snap().Drains()))
	w.nodes("last")
	w.drain("last", "last", cluster.DrainSpec{})
	w.complete("last", cluster.OutcomeComplete, 0)
	kept := recordIDs(w.snap().Drains())
	must.Len(t, cluster.MaxDrainRecords, kept)
	must.Eq(t, "d00-0001", kept[0])
	must.Eq(t, "last", kept[cluster.MaxDrainRecords-1])
}
