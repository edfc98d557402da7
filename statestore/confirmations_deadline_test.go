package statestore_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// silentWorld is a state in which the forced drain of a disconnected node has ended. Of its three
// allocations, a is lost, and b and c are unknown.
func silentWorld(t *testing.T, version cluster.Version) *world {
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(version) })
	w.nodes("n1")
	w.place(w.job(lostJob(10*time.Minute)), "n1", nil, "a", "b", "c")
	w.status("n1", cluster.NodeDisconnected)
	w.lose("a")
	w.plan(&cluster.Plan{Stops: []cluster.PlanStop{{Alloc: "b", Unknown: true}, {Alloc: "c", Unknown: true}}})
	w.drain("n1", "d1", cluster.DrainSpec{Deadline: -1})
	w.mark(cluster.MarkForced, "b", "c")
	return w
}

// Bug: the record of a drain by force or by deadline counted what no client could report as still
// stopping only. That number never falls, and an operator could not confirm the drain.
func TestUnconfirmed_StillStopping(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		play func(w *world)
		want []int // the count after each step
	}{
		"the node returns": {func(w *world) {
			w.status("n1", cluster.NodeReady)
			w.report(cluster.ClientRunning, "b")
			w.report(cluster.ClientFailed, "b")
			w.report(cluster.ClientComplete, "a", "c")
		}, []int{3, 3, 2, 0}},
		"time passes": {func(w *world) {
			w.status("n1", cluster.NodeDown)
			w.lose("b", "c")
			w.now = w.now.Add(stopAfter)
			w.write(func(x *statestore.Txn) { x.ConfirmStops("n1", w.now) })
		}, []int{3, 3, 0}},
		"time does not confirm what is not lost": {func(w *world) {
			w.now = w.now.Add(stopAfter)
			w.write(func(x *statestore.Txn) { x.ConfirmStops("n1", w.now) })
		}, []int{2}},
		"the node is deleted, and its drain confirmed": {func(w *world) {
			w.write(func(x *statestore.Txn) { must.SliceEmpty(w.t, x.DeleteNodes([]cluster.NodeID{"n1"}, w.now)) })
			w.confirm("d1")
		}, []int{3, 0}},
		"one entry reports first that they run and then that they have ended": {func(w *world) {
			var reports []cluster.AllocReport
			for _, status := range []cluster.ClientStatus{cluster.ClientRunning, cluster.ClientComplete} {
				for _, id := range []cluster.AllocID{"b", "c"} {
					reports = append(reports, cluster.AllocReport{Alloc: id, Node: "n1", ClientStatus: status, At: w.now})
				}
			}
			w.reports(reports...)
		}, []int{1}},
		"another allocation of the node ends": {func(w *world) {
			w.place(w.snap().Job(lostJob(0).Key()), "n1", nil, "later")
			w.report(cluster.ClientComplete, "later")
		}, []int{3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := silentWorld(t, cluster.VersionOfConfirmation)
			record := w.end()
			must.Eq(t, cluster.OutcomeForced, record.Outcome)
			must.Eq(t, 2, record.StillStopping)
			must.Eq(t, &cluster.UnconfirmedAllocs{Count: 3, Allocs: []cluster.AllocID{"a", "b", "c"}}, record.Unconfirmed)
			var counts []int
			w.each = func() { counts = append(counts, w.unconfirmed("d1").Count) }
			test.play(w)
			must.Eq(t, test.want, counts)
			last := w.snap().DrainRecord("d1")
			must.Eq(t, cluster.OutcomeForced, last.Outcome)
			must.Eq(t, 2, last.StillStopping, must.Sprint("the number at the end of the drain never changes"))
			must.Eq(t, last.CountUnconfirmed() == 0, !last.Unconfirmed.ConfirmedAt.IsZero())
		})
	}
}

// An operator confirms the drain. What is not lost stays as it is: a later drain counts it again.
func TestConfirmDrain_StillStopping(t *testing.T) {
	t.Parallel()
	w := silentWorld(t, cluster.VersionOfConfirmation)
	w.end()
	must.Eq(t, 3, w.confirm("d1"))
	must.Eq(t, &cluster.UnconfirmedAllocs{ConfirmedAt: w.now.UTC(), ConfirmedBy: "ann"}, w.unconfirmed("d1"))
	must.False(t, w.snap().Alloc("a").ConfirmedAt.IsZero())
	must.True(t, w.snap().Alloc("b").ConfirmedAt.IsZero())
	w.status("n1", cluster.NodeDown)
	w.lose("b", "c")
	w.drain("n1", "d2", cluster.DrainSpec{})
	record := w.end()
	must.Eq(t, cluster.OutcomeUnconfirmed, record.Outcome)
	must.Eq(t, []cluster.AllocID{"b", "c"}, record.Unconfirmed.Allocs)
}

// A cancelled drain counts what it cannot call back, and a deleted node all that had to leave.
func TestUnconfirmed_StillStoppingAtOtherEnds(t *testing.T) {
	t.Parallel()
	w := silentWorld(t, cluster.VersionOfConfirmation)
	w.stop("b")
	w.request(cluster.DrainUpdate{Node: "n1"})
	must.Eq(t, []cluster.AllocID{"a", "b"}, w.unconfirmed("d1").Allocs, must.Sprint("the mark of c is withdrawn"))
	w.drain("n1", "d2", cluster.DrainSpec{})
	w.write(func(x *statestore.Txn) { must.SliceEmpty(t, x.DeleteNodes([]cluster.NodeID{"n1"}, w.now)) })
	must.Eq(t, cluster.OutcomeNodeGone, w.snap().DrainRecord("d2").Outcome)
	must.Eq(t, []cluster.AllocID{"a", "b", "c"}, w.unconfirmed("d2").Allocs)
	w.report(cluster.ClientComplete, "c")
	must.Eq(t, 2, w.unconfirmed("d1").Count, must.Sprint("c did not have to leave"))
	w.report(cluster.ClientComplete, "b")
	must.Eq(t, 1, w.unconfirmed("d1").Count)
	must.Eq(t, 1, w.unconfirmed("d2").Count)
}

// Servers of an older cluster version write no count, and the records stay without one.
func TestUnconfirmed_StillStoppingNotBelowItsVersion(t *testing.T) {
	t.Parallel()
	w := silentWorld(t, cluster.VersionOfConfirmation-1)
	w.end()
	must.Nil(t, w.unconfirmed("d1"))
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfConfirmation) })
	w.report(cluster.ClientComplete, "b")
	must.Nil(t, w.unconfirmed("d1"))
	must.Zero(t, w.confirm("d1"))
}

// confirm confirms a drain and returns how many allocations its record counted.
func (w *world) confirm(id cluster.DrainID) (count int) {
	w.write(func(x *statestore.Txn) {
		var err error
		count, err = x.ConfirmDrain(id, "ann", w.now)
		must.NoError(w.t, err)
	})
	return count
}
