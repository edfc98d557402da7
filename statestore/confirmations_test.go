package statestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// stopAfter is the time after which the node itself stops an allocation of lostWorld, with its margin.
const stopAfter = 10*time.Minute + 5*time.Second + cluster.StopMarginOfNode

// lostWorld is a state in which the node n1 is down and drains. Its three allocations are lost.
func lostWorld(t *testing.T, after time.Duration) *world {
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfConfirmation) })
	w.nodes("n1")
	w.place(w.job(lostJob(after)), "n1", nil, "a", "b", "c")
	w.status("n1", cluster.NodeDown)
	w.lose("a", "b", "c")
	w.drain("n1", "d1", cluster.DrainSpec{})
	return w
}

func lostJob(after time.Duration) *cluster.Job {
	return &cluster.Job{Namespace: "default", ID: "web", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: 3, Disconnect: cluster.DisconnectStrategy{StopOnClientAfter: after}, Tasks: []*cluster.Task{{Name: "t", KillTimeout: 5 * time.Second}},
	}}}
}

// lose applies a plan that gives up allocations as lost.
func (w *world) lose(ids ...cluster.AllocID) {
	p := &cluster.Plan{}
	for _, id := range ids {
		p.Stops = append(p.Stops, cluster.PlanStop{Alloc: id, Lost: true})
	}
	w.plan(p)
}

// end ends the drain of n1 and returns its record.
func (w *world) end() *cluster.Drain {
	d := w.snap().Node("n1").Drain
	w.write(func(x *statestore.Txn) {
		ended, refused := rules.RecheckCompletions(x.State().DrainView(), &rules.Completions{At: w.now, Completions: []rules.Completion{
			{Node: "n1", Drain: d.ID, Revision: d.Revision},
		}})
		must.SliceEmpty(w.t, refused)
		x.CompleteDrains(w.now, ended)
	})
	return w.snap().DrainRecord(d.ID)
}

func (w *world) unconfirmed(id cluster.DrainID) *cluster.UnconfirmedAllocs {
	return w.snap().DrainRecord(id).Unconfirmed
}

// Bug: a drain whose client was frozen ended complete, and the tasks still ran.
func TestUnconfirmed_UntilTheClientReports(t *testing.T) {
	t.Parallel()
	w := lostWorld(t, 0)
	record := w.end()
	must.Eq(t, cluster.OutcomeUnconfirmed, record.Outcome)
	must.Eq(t, &cluster.UnconfirmedAllocs{Count: 3, Allocs: []cluster.AllocID{"a", "b", "c"}}, record.Unconfirmed)
	events := w.snap().Node("n1").Events
	must.Eq(t, map[string]string{cluster.EventDetailUnconfirmed: "3"}, events[len(events)-1].Details)
	must.EqOp(t, cluster.DrainStatusComplete, w.snap().Node("n1").LastDrain.Status)

	w.status("n1", cluster.NodeReady)
	w.report(cluster.ClientComplete, "b")
	must.Eq(t, &cluster.UnconfirmedAllocs{Count: 2, Allocs: []cluster.AllocID{"a", "c"}}, w.unconfirmed("d1"))
	w.report(cluster.ClientComplete, "b")
	must.Eq(t, 2, w.unconfirmed("d1").Count, must.Sprint("a repeated report"))
	w.report(cluster.ClientComplete, "a")
	w.report(cluster.ClientComplete, "c")
	reported := w.now.Add(-time.Second) // the entry is a second later
	must.Eq(t, &cluster.UnconfirmedAllocs{ConfirmedAt: reported.UTC()}, w.unconfirmed("d1"))
	must.Eq(t, cluster.OutcomeUnconfirmed, w.snap().DrainRecord("d1").Outcome, must.Sprint("the outcome never changes"))
}

// A record counts only what was lost when it ended.
func TestUnconfirmed_OfTwoDrains(t *testing.T) {
	t.Parallel()
	w := lostWorld(t, 0)
	w.end()
	w.status("n1", cluster.NodeReady)
	w.place(w.snap().Job(lostJob(0).Key()), "n1", nil, "d")
	w.status("n1", cluster.NodeDown)
	w.lose("d")
	w.drain("n1", "d2", cluster.DrainSpec{})
	must.Eq(t, 4, w.end().Unconfirmed.Count)
	must.Eq(t, 3, w.unconfirmed("d1").Count)

	w.report(cluster.ClientComplete, "d")
	must.Eq(t, 3, w.unconfirmed("d1").Count)
	must.Eq(t, 3, w.unconfirmed("d2").Count)
	w.report(cluster.ClientComplete, "a")
	must.Eq(t, 2, w.unconfirmed("d1").Count)
	must.Eq(t, 2, w.unconfirmed("d2").Count)
}

// With stop_on_client_after the node itself stops an allocation that it cannot report.
func TestUnconfirmed_UntilTheNodeHasStoppedIt(t *testing.T) {
	t.Parallel()
	w := lostWorld(t, 10*time.Minute)
	away := w.snap().Node("n1").AwaySince
	must.True(t, away.Equal(w.snap().Alloc("a").AwaySince))
	w.end()

	w.now = away.Add(stopAfter - 2*time.Second)
	w.write(func(x *statestore.Txn) { x.ConfirmStops("n1", w.now) })
	must.Eq(t, 3, w.unconfirmed("d1").Count)
	w.write(func(x *statestore.Txn) { x.ConfirmStops("n1", w.now) })
	must.Eq(t, 0, w.unconfirmed("d1").Count)
	must.True(t, w.now.Equal(w.unconfirmed("d1").ConfirmedAt))

	w.drain("n1", "d2", cluster.DrainSpec{})
	must.Eq(t, cluster.OutcomeComplete, w.end().Outcome)
}

// The time counts from the loss of contact, also if the node is disconnected first. It begins again
// with each absence, because a client that was back has not stopped its tasks.
func TestUnconfirmed_SinceTheNodeIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfConfirmation) })
	w.nodes("n1")
	w.place(w.job(lostJob(10*time.Minute)), "n1", nil, "a")
	w.status("n1", cluster.NodeDisconnected)
	away := w.now
	w.status("n1", cluster.NodeDown)
	w.lose("a")
	must.True(t, away.Equal(w.snap().Node("n1").AwaySince))
	must.True(t, away.Equal(w.snap().Alloc("a").AwaySince))

	w.status("n1", cluster.NodeReady)
	must.True(t, w.snap().Node("n1").AwaySince.IsZero())
	w.now = away.Add(stopAfter)
	w.write(func(x *statestore.Txn) { x.ConfirmStops("n1", w.now) })
	must.True(t, w.snap().Alloc("a").Unconfirmed(), must.Sprint("the client is back and has not reported the end"))
	w.status("n1", cluster.NodeDown)
	w.write(func(x *statestore.Txn) { x.ConfirmStops("n1", w.now) })
	must.True(t, w.snap().Alloc("a").Unconfirmed())
	w.now = w.now.Add(stopAfter)
	w.write(func(x *statestore.Txn) { x.ConfirmStops("n1", w.now) })
	must.False(t, w.snap().Alloc("a").Unconfirmed())
}

func TestConfirmDrain(t *testing.T) {
	t.Parallel()
	w := lostWorld(t, 0)
	confirm := func(id cluster.DrainID) (count int, err error) {
		w.write(func(x *statestore.Txn) { count, err = x.ConfirmDrain(id, "ann", w.now) })
		return count, err
	}
	_, err := confirm("d1")
	must.ErrorIs(t, err, statestore.ErrDrainRuns)
	_, err = confirm("d9")
	must.ErrorIs(t, err, statestore.ErrDrainNotFound)

	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(lostJob(0).Key(), false)) })
	must.Eq(t, 3, w.end().Unconfirmed.Count)
	w.drain("n1", "d2", cluster.DrainSpec{})
	w.end()
	count, err := confirm("d1")
	must.NoError(t, err)
	must.Eq(t, 3, count)
	must.Eq(t, &cluster.UnconfirmedAllocs{ConfirmedAt: w.now.UTC(), ConfirmedBy: "ann"}, w.unconfirmed("d1"))
	must.Eq(t, 0, w.unconfirmed("d2").Count)
	must.Eq(t, "", w.unconfirmed("d2").ConfirmedBy)
	count, err = confirm("d1")
	must.NoError(t, err)
	must.Zero(t, count)
}

// Lost allocations of a purged job stay, so also a drain after the purge counts them. A purge deleted
// them, and the next drain was complete.
func TestUnconfirmed_AfterAPurge(t *testing.T) {
	t.Parallel()
	w := lostWorld(t, 0)
	w.write(func(x *statestore.Txn) { must.NoError(t, statestore.PurgeJob(x, lostJob(0).Key(), w.now)) })
	must.Nil(t, w.snap().Job(lostJob(0).Key()))
	for _, id := range []cluster.DrainID{"d1", "d2"} {
		record := w.end()
		must.Eq(t, id, record.ID)
		must.Eq(t, cluster.OutcomeUnconfirmed, record.Outcome)
		must.Zero(t, record.PurgedRunning)
		must.Eq(t, 3, record.Unconfirmed.Count)
		if id == "d1" {
			w.drain("n1", "d2", cluster.DrainSpec{})
		}
	}
	w.write(func(x *statestore.Txn) {
		_, err := x.ConfirmDrain("d1", "ann", w.now)
		must.NoError(t, err)
	})
	must.Zero(t, w.unconfirmed("d1").Count)
	w.write(func(x *statestore.Txn) { must.NoError(t, statestore.PurgeJob(x, lostJob(0).Key(), w.now)) })
	must.Nil(t, w.snap().Alloc("a"))
	w.write(func(x *statestore.Txn) {
		must.ErrorIs(t, statestore.PurgeJob(x, lostJob(0).Key(), w.now), statestore.ErrJobNotFound)
	})
}

// Every record has the count, also that of a cancelled drain and of a deleted node.
func TestUnconfirmed_OfEachOutcome(t *testing.T) {
	t.Parallel()
	w := lostWorld(t, 0)
	w.request(cluster.DrainUpdate{Node: "n1"})
	must.Eq(t, cluster.OutcomeCancelled, w.snap().DrainRecord("d1").Outcome)
	must.Eq(t, 3, w.unconfirmed("d1").Count)
	w.drain("n1", "d2", cluster.DrainSpec{})
	w.write(func(x *statestore.Txn) { must.SliceEmpty(t, x.DeleteNodes([]cluster.NodeID{"n1"}, w.now)) })
	must.Eq(t, cluster.OutcomeNodeGone, w.snap().DrainRecord("d2").Outcome)
	must.Eq(t, 3, w.unconfirmed("d2").Count)
}

// A record names few of many allocations.
func TestUnconfirmed_NamesAreBounded(t *testing.T) {
	t.Parallel()
	w := lostWorld(t, 0)
	var ids []string
	var lost []cluster.AllocID
	for i := range 30 {
		ids = append(ids, fmt.Sprintf("x%02d", i))
		lost = append(lost, cluster.AllocID(ids[i]))
	}
	w.place(w.snap().Job(lostJob(0).Key()), "n1", nil, ids...)
	w.lose(lost...)
	u := w.end().Unconfirmed
	must.Eq(t, 33, u.Count)
	must.Len(t, cluster.MaxUnconfirmedNames, u.Allocs)
}

// Servers of an older cluster version write records as before.
func TestUnconfirmed_NotBelowItsVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfConfirmation - 1) })
	w.nodes("n1")
	w.place(w.job(lostJob(10*time.Minute)), "n1", nil, "a", "b")
	w.status("n1", cluster.NodeDown)
	w.lose("a")
	must.True(t, w.snap().Node("n1").AwaySince.IsZero())
	must.True(t, w.snap().Alloc("a").AwaySince.IsZero())
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.request(cluster.DrainUpdate{Node: "n1"})
	must.Nil(t, w.unconfirmed("d1"))

	// After the upgrade, the wait of the node begins with the change of its status.
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfConfirmation) })
	w.lose("b")
	must.True(t, w.snap().Node("n1").StatusChangedAt.Equal(w.snap().Alloc("b").AwaySince))
}

// Bug: after the deletion of a node that had been back, time confirmed from its first absence.
func TestUnconfirmed_DeletedAfterItWasBack(t *testing.T) {
	t.Parallel()
	for name, downAgain := range map[string]bool{"the node is reachable": false, "the node is away again": true} {
		w := lostWorld(t, 10*time.Minute)
		first := w.snap().Node("n1").AwaySince
		w.end()
		w.now = first.Add(time.Minute)
		w.status("n1", cluster.NodeReady)
		w.now = first.Add(9 * time.Minute)
		last := w.now.Add(time.Second) // of the next entry
		if downAgain {
			w.status("n1", cluster.NodeDown)
			last = w.snap().Node("n1").AwaySince
		}
		w.write(func(x *statestore.Txn) { must.SliceEmpty(t, x.DeleteNodes([]cluster.NodeID{"n1"}, w.now)) })
		must.Eq(t, last, w.snap().Alloc("a").AwaySince, must.Sprint(name))

		w.now = first.Add(stopAfter)
		w.write(func(x *statestore.Txn) { x.ConfirmStops("n1", w.now) })
		must.Eq(t, 3, w.unconfirmed("d1").Count, must.Sprint(name))
		w.now = last.Add(stopAfter)
		w.write(func(x *statestore.Txn) { x.ConfirmStops("n1", w.now) })
		must.Eq(t, 0, w.unconfirmed("d1").Count, must.Sprint(name))
	}
}

// The event of the end of a drain names its outcome from a cluster version on. Older servers write the message of
// the compatible API.
func TestEndOfADrain_EventNamesTheOutcome(t *testing.T) {
	t.Parallel()
	for version, suffixes := range map[cluster.Version][2]string{
		cluster.VersionOfConfirmation: {},
		cluster.VersionOfData:         {", outcome: unconfirmed; 3 unconfirmed allocations", ", outcome: cancelled; 3 unconfirmed allocations"},
	} {
		w := lostWorld(t, 0)
		w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(version) })
		last := func() string {
			events := w.snap().Node("n1").Events
			return events[len(events)-1].Message
		}
		w.end()
		must.Eq(t, "Node drain complete"+suffixes[0], last())
		w.drain("n1", "d2", cluster.DrainSpec{})
		w.request(cluster.DrainUpdate{Node: "n1"})
		must.Eq(t, "Node drain disabled"+suffixes[1], last())
		w.status("n1", cluster.NodeReady)
		for _, id := range []cluster.AllocID{"a", "b", "c"} {
			w.report(cluster.ClientComplete, id)
		}
		w.drain("n1", "d3", cluster.DrainSpec{})
		w.end()
		must.Eq(t, "Node drain complete", last())
		must.Eq(t, cluster.DrainStatusComplete, w.snap().Node("n1").LastDrain.Status)
	}
}
