package statestore_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-memdb"
	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Allocations on deleted nodes do not change the counts of others. A transaction counts its own
// writes, also the first and the last allocation of a node.
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
	must.Eq(t, before, inUse(w.snap().WorkView()))
	w.write(func(x *statestore.Txn) {
		_, err := x.ApplyPlan(&cluster.Plan{At: w.now, Places: []*cluster.Allocation{place(web, "first", "n2"), place(web, "second", "n1")}})
		must.NoError(t, err)
		x.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: "on-n3", Node: "n3", ClientStatus: cluster.ClientComplete, At: w.now}}, time.Time{})
		must.Eq(t, []string{"n1 2 200", "n2 1 100", "n3 0 0", "n4 1 100"}, inUse(x.State().WorkView()))
		must.Eq(t, before, inUse(w.snap().WorkView()))
		must.Eq(t, []cluster.NodeID{"a", "n1", "n2", "n33", "n4", "z"}, slices.Collect(x.State().WorkView().OccupiedNodes()))
		must.Eq(t, []cluster.NodeID{"a", "n1", "n3", "n33", "n4", "z"}, slices.Collect(w.snap().WorkView().OccupiedNodes()))
		for n, u := range x.State().WorkView().NodesInUse() {
			must.Eq(t, x.State().Usage(n.ID), u)
		}
	})
	for n := range w.snap().WorkView().NodesInUse() {
		must.Eq(t, "n1", n.ID)
		break
	}
}

// accounts are the reads of accounts that snapshots and transactions share.
type accounts interface {
	Nodes() iter.Seq[*cluster.Node]
	NodesInUse() iter.Seq2[*cluster.Node, cluster.Usage]
	OccupiedNodes() iter.Seq[cluster.NodeID]
	Allocs() iter.Seq[*cluster.Allocation]
}

// recountAccounts counts the allocations themselves.
func recountAccounts(t must.T, s accounts) {
	t.Helper()
	want := map[cluster.NodeID]cluster.Usage{}
	for a := range s.Allocs() {
		if !a.ClientTerminal() {
			u := want[a.NodeID]
			want[a.NodeID] = cluster.Usage{Live: u.Live + 1, Resources: u.Resources.Plus(a.Resources)}
		}
	}
	var nodes []cluster.NodeID
	for n, u := range s.NodesInUse() {
		nodes = append(nodes, n.ID)
		must.Eq(t, want[n.ID], u, must.Sprintf("%q", n.ID))
	}
	must.Eq(t, nodeIDs(s.Nodes()), nodes)
	must.Eq(t, slices.Sorted(maps.Keys(want)), slices.Collect(s.OccupiedNodes()))
}

// Accounts are right within a transaction and after it, for any node id, with or without the node.
// Their watchers are notified.
func TestAccountsOfNodes_random(t *testing.T) {
	t.Parallel()
	ids := []cluster.NodeID{"\x00", "\x00\x01", "\x00\xff", "\x01", "a", "a\x00", "a\x00\x01", "a\x00\xff", "a\x01", "a\xff", "aa", "\xff", "\xff\xff"}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		web := w.job(serviceJob("web", 9))
		for entry := range 8 {
			ws := memdb.NewWatchSet()
			before := slices.Collect(statestore.Watching(w.snap(), ws).WorkView().OccupiedNodes())
			w.write(func(x *statestore.Txn) {
				for op := range rapid.IntRange(0, 6).Draw(t, "operations") {
					changeAccounts(t, w, x, web, rapid.SampledFrom(ids).Draw(t, "node"), fmt.Sprint("a", entry, "-", op))
					recountAccounts(t, x.State().WorkView())
				}
			})
			recountAccounts(t, w.snap().WorkView())
			if !slices.Equal(before, slices.Collect(w.snap().WorkView().OccupiedNodes())) {
				must.False(t, ws.Watch(time.After(time.Second)), must.Sprint("a watcher was not notified"))
			}
		}
	})
}

// changeAccounts makes or deletes the node, or places or ends an allocation on it.
func changeAccounts(t *rapid.T, w *world, x *statestore.Txn, web *cluster.Job, id cluster.NodeID, alloc string) {
	switch rapid.IntRange(0, 4).Draw(t, "operation") {
	case 0:
		must.NoError(t, x.UpsertNode(&cluster.Node{ID: id, Status: cluster.NodeReady}, w.now))
	case 1:
		x.DeleteNodes([]cluster.NodeID{id}, w.now)
	case 2:
		if all := slices.Collect(x.State().Allocs()); len(all) > 0 {
			a := rapid.SampledFrom(all).Draw(t, "ends")
			x.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientComplete, At: w.now}}, time.Time{})
		}
	default:
		_, err := x.ApplyPlan(&cluster.Plan{At: w.now, Places: []*cluster.Allocation{place(web, alloc, id)}})
		must.NoError(t, err)
	}
}
