package statestore_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// registers writes a registration of n1. Without a report of unlisted allocations it is nil.
func (w *world) registers(u *cluster.UnlistedAllocs) {
	w.write(func(x *statestore.Txn) {
		n := &cluster.Node{ID: "n1", Status: cluster.NodeReady, Unlisted: u}
		if before := x.State().Node("n1"); before != nil {
			n.SecretID, n.Status = before.SecretID, before.Status
		}
		must.NoError(w.t, x.UpsertNode(n, w.now))
	})
}

func unlisted(ids ...cluster.AllocID) *cluster.UnlistedAllocs { return cluster.NewUnlistedAllocs(ids) }

func unlistedWorld(t *testing.T) *world {
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfConfirmation) })
	w.nodes("n1")
	return w
}

// Bug: a saved state was restored, or the node was purged and its ended allocations were collected. The
// client ran allocations of which the servers had no row, and a drain was complete.
func TestUnlisted_UntilTheClientReportsFewer(t *testing.T) {
	t.Parallel()
	w := unlistedWorld(t)
	w.registers(unlisted("x", "y"))
	w.drain("n1", "d1", cluster.DrainSpec{IgnoreSystemJobs: true})
	record := w.end()
	must.Eq(t, cluster.OutcomeUnconfirmed, record.Outcome)
	must.Eq(t, &cluster.UnconfirmedAllocs{Count: 2, Unlisted: unlisted("x", "y")}, record.Unconfirmed)

	w.registers(nil)
	must.Eq(t, 2, w.unconfirmed("d1").Count, must.Sprint("an older client does not report them"))
	must.Eq(t, unlisted("x", "y"), w.snap().Node("n1").Unlisted)
	w.registers(unlisted("y", "z"))
	must.Eq(t, &cluster.UnconfirmedAllocs{Count: 1, Unlisted: unlisted("y")}, w.unconfirmed("d1"))
	w.write(func(x *statestore.Txn) { must.SliceEmpty(t, x.DeleteNodes([]cluster.NodeID{"n1"}, w.now)) })
	must.Eq(t, 1, w.unconfirmed("d1").Count)
	w.registers(unlisted())
	must.Eq(t, &cluster.UnconfirmedAllocs{ConfirmedAt: w.now.UTC()}, w.unconfirmed("d1"))
	must.Eq(t, cluster.OutcomeUnconfirmed, w.snap().DrainRecord("d1").Outcome, must.Sprint("the outcome never changes"))

	w.drain("n1", "d2", cluster.DrainSpec{})
	must.Eq(t, cluster.OutcomeComplete, w.end().Outcome)
}

// A client that has just started reports all that it runs. A lost allocation with a row counts once, and
// its own report confirms its end.
func TestUnlisted_WithARow(t *testing.T) {
	t.Parallel()
	w := lostWorld(t, 0)
	w.registers(unlisted("a", "old"))
	must.Eq(t, &cluster.UnconfirmedAllocs{Count: 4, Allocs: []cluster.AllocID{"a", "b", "c"}, Unlisted: unlisted("old")}, w.end().Unconfirmed)
	w.registers(unlisted("old"))
	must.Eq(t, 4, w.unconfirmed("d1").Count)
}

// An operator confirms a drain of a node without contact: its later drains do not count the unlisted
// allocations of its last registration. A client in contact reports what it runs.
func TestUnlisted_ConfirmedByAnOperator(t *testing.T) {
	t.Parallel()
	for status, left := range map[cluster.NodeStatus]*cluster.UnlistedAllocs{cluster.NodeDown: unlisted(), cluster.NodeReady: unlisted("x")} {
		w := unlistedWorld(t)
		w.registers(unlisted("x"))
		w.status("n1", status)
		w.drain("n1", "d1", cluster.DrainSpec{})
		w.end()
		w.drain("n1", "d2", cluster.DrainSpec{})
		must.Eq(t, 1, w.end().Unconfirmed.Count)
		w.write(func(x *statestore.Txn) {
			_, err := x.ConfirmDrain("d2", "ann", w.now)
			must.NoError(t, err)
		})
		must.Eq(t, &cluster.UnconfirmedAllocs{ConfirmedAt: w.now.UTC(), ConfirmedBy: "ann"}, w.unconfirmed("d2"))
		must.True(t, left.Equal(w.snap().Node("n1").Unlisted), must.Sprint(status))
		must.Eq(t, left.Len(), w.unconfirmed("d1").Count, must.Sprint(status))
	}
}

// The record of another drain that counts the same allocations names the confirmation, from its cluster version
// on. Bug: it seemed to be confirmed by clients or by time.
func TestConfirmDrain_OtherRecords(t *testing.T) {
	t.Parallel()
	for _, version := range []cluster.Version{cluster.VersionOfConfirmation, cluster.VersionOfData} {
		w := lostWorld(t, 0)
		w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(version) })
		w.registers(unlisted("x"))
		w.end()
		w.place(w.snap().Job(lostJob(0).Key()), "n1", nil, "d")
		w.lose("d")
		for _, id := range []cluster.DrainID{"d2", "d3"} {
			w.drain("n1", id, cluster.DrainSpec{})
			w.end()
		}
		named := func(id cluster.DrainID, allocs int) *cluster.OtherConfirmation {
			if version < cluster.VersionOfData {
				return nil
			}
			return &cluster.OtherConfirmation{Drain: id, By: "ann", At: w.now.UTC(), Allocs: allocs}
		}
		confirm := func(id cluster.DrainID) {
			w.write(func(x *statestore.Txn) {
				_, err := x.ConfirmDrain(id, "ann", w.now)
				must.NoError(t, err)
			})
		}
		confirm("d1")
		must.Eq(t, &cluster.UnconfirmedAllocs{ConfirmedAt: w.now.UTC(), ConfirmedBy: "ann"}, w.unconfirmed("d1"))
		must.Eq(t, &cluster.UnconfirmedAllocs{Count: 1, Allocs: []cluster.AllocID{"d"}, Other: named("d1", 4)}, w.unconfirmed("d2"))
		w.write(func(*statestore.Txn) {}) // a second later
		confirm("d2")
		must.Eq(t, &cluster.UnconfirmedAllocs{ConfirmedAt: w.now.UTC(), Other: named("d2", 5)}, w.unconfirmed("d3"))
		must.Eq(t, 0, w.unconfirmed("d2").Count)
		must.Eq(t, "ann", w.unconfirmed("d2").ConfirmedBy)
		must.Eq(t, version >= cluster.VersionOfData, w.unconfirmed("d2").Other != nil, must.Sprint("the first confirmation stays"))
	}
}
