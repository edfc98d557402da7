package statestore_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// What is on nodes that are gone confuses nobody, and a transaction counts what it has
// written, be it the first or the last of a node.
func TestNodesInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2", "n3", "n4")
	web := w.job(serviceJob("web", 9))
	for _, id := range []cluster.NodeID{"a", "n1", "n3", "n33", "n4", "z"} {
		w.place(web, id, nil, "on-"+string(id))
	}
	inUse := func(x interface {
		NodesInUse() iter.Seq2[*cluster.Node, cluster.Usage]
	}) (live []string) {
		for n, u := range x.NodesInUse() {
			live = append(live, fmt.Sprint(n.ID, " ", u.Live, " ", u.Resources.CPU))
		}
		return live
	}
	before := []string{"n1 1 100", "n2 0 0", "n3 1 100", "n4 1 100"}
	must.Eq(t, before, inUse(w.snap()))
	w.write(func(x *statestore.Txn) {
		_, err := x.ApplyPlan(&cluster.Plan{At: w.now, Places: []*cluster.Allocation{place(web, "first", "n2"), place(web, "second", "n1")}})
		must.NoError(t, err)
		x.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: "on-n3", Node: "n3", ClientStatus: cluster.ClientComplete, At: w.now}})
		must.Eq(t, []string{"n1 2 200", "n2 1 100", "n3 0 0", "n4 1 100"}, inUse(x))
		must.Eq(t, before, inUse(w.snap()))
		must.Eq(t, []cluster.NodeID{"a", "n1", "n2", "n33", "n4", "z"}, slices.Collect(x.OccupiedNodes()))
		must.Eq(t, []cluster.NodeID{"a", "n1", "n3", "n33", "n4", "z"}, slices.Collect(w.snap().OccupiedNodes()))
		for n, u := range x.NodesInUse() {
			must.Eq(t, x.Usage(n.ID), u)
		}
	})
	for n := range w.snap().NodesInUse() {
		must.Eq(t, "n1", n.ID)
		break
	}
}
