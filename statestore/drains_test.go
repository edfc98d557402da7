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

func TestStartingADrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	done := w.request(cluster.DrainUpdate{
		Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: true},
		MarkEligible: true, Key: "k1", Meta: map[string]string{"why": "kernel"}, UpdatedBy: "ann",
	})
	must.Eq(t, cluster.DrainResult{Drain: "d1"}, done)
	n := w.snap().Node("n1")
	at := w.now.UTC()
	must.Eq(t, &cluster.Drain{
		ID: "d1", NodeID: "n1", NodeName: "name of n1", Revision: 2,
		Strategy: cluster.DrainStrategy{
			DrainSpec:     cluster.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: true},
			ForceDeadline: at.Add(time.Hour),
			StartedAt:     at,
		},
		UpdatedAt: at, Keys: []string{"k1"}, Meta: map[string]string{"why": "kernel"}, UpdatedBy: "ann", CreateIndex: 2,
	}, n.Drain)
	must.Eq(t, &cluster.DrainMetadata{
		StartedAt: seconds(at), UpdatedAt: seconds(at), Status: cluster.DrainStatusDraining,
		AccessorID: "ann", Meta: map[string]string{"why": "kernel"},
	}, n.LastDrain)
	must.Eq(t, cluster.NodeIneligible, n.SchedulingEligibility, must.Sprint("MarkEligible is only for a cancel"))
	must.Eq(t, at.Unix(), n.StatusUpdatedAt)
	must.Eq(t, 2, n.ModifyIndex)
	must.Eq(t, []string{"Node registered", "Node drain strategy set"}, w.messages("n1"))
	must.Eq(t, []cluster.NodeID{"n1"}, nodeIDs(w.snap().DrainView().DrainingNodes()))
	must.Eq(t, n, statestore.NodeInDrain(w.snap(), "d1"))
}

func TestUpdatingADrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.request(cluster.DrainUpdate{
		Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{Deadline: time.Hour}, Key: "k1", Meta: map[string]string{"a": "1"}, UpdatedBy: "ann",
	})
	started := w.now.UTC()
	steps := []struct {
		name     string
		update   cluster.DrainUpdate
		deadline func(at time.Time) time.Time
		meta     map[string]string
		by       string
		keys     []string
	}{
		{"a deadline counts from its request", cluster.DrainUpdate{Spec: &cluster.DrainSpec{Deadline: time.Minute}},
			func(at time.Time) time.Time { return at.Add(time.Minute) }, map[string]string{"a": "1"}, "ann", []string{"k1"}},
		{"none", cluster.DrainUpdate{Spec: &cluster.DrainSpec{}, Meta: map[string]string{"b": "2"}, Key: "k2"},
			func(time.Time) time.Time { return time.Time{} }, map[string]string{"b": "2"}, "ann", []string{"k1", "k2"}},
		{"force", cluster.DrainUpdate{Spec: &cluster.DrainSpec{Deadline: -time.Second}, Meta: map[string]string{}, UpdatedBy: "bob"},
			func(time.Time) time.Time { return time.Time{} }, map[string]string{"b": "2"}, "bob", []string{"k1", "k2"}},
	}
	for _, s := range steps {
		s.update.Node, s.update.Drain = "n1", "not used"
		must.Eq(t, cluster.DrainResult{Drain: "d1"}, w.request(s.update), must.Sprint(s.name))
		n := w.snap().Node("n1")
		must.Eq(t, cluster.DrainStrategy{DrainSpec: *s.update.Spec, ForceDeadline: s.deadline(w.now.UTC()), StartedAt: started}, n.Drain.Strategy, must.Sprint(s.name))
		must.Eq(t, cluster.Revision(w.index), n.Drain.Revision)
		must.Eq(t, w.now.UTC(), n.Drain.UpdatedAt)
		must.Eq(t, 2, n.Drain.CreateIndex)
		must.Eq(t, s.keys, n.Drain.Keys, must.Sprint(s.name))
		must.Eq(t, s.meta, n.Drain.Meta, must.Sprint(s.name))
		must.Eq(t, &cluster.DrainMetadata{
			StartedAt: seconds(started), UpdatedAt: seconds(w.now), Status: cluster.DrainStatusDraining, AccessorID: s.by, Meta: s.meta,
		}, n.LastDrain, must.Sprint(s.name))
	}
	must.Eq(t, "Node drain strategy updated", w.messages("n1")[4])
}

func TestADrainNeedsANewID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2")
	start := func(n cluster.NodeID, d cluster.DrainID) (err error) {
		w.write(func(x *statestore.Txn) {
			_, err = x.UpdateNodeDrain(cluster.DrainUpdate{Node: n, Drain: d, Spec: &cluster.DrainSpec{}, At: w.now})
		})
		return err
	}
	must.ErrorContains(t, start("n1", ""), "without an id")
	must.NoError(t, start("n1", "d1"))
	must.ErrorContains(t, start("n2", "d1"), "is taken")
	w.complete("n1", cluster.OutcomeComplete, 0)
	must.ErrorContains(t, start("n2", "d1"), "is taken")
	must.ErrorIs(t, start("n9", "d9"), statestore.ErrNodeNotFound)
	must.SliceEmpty(t, nodeIDs(w.snap().DrainView().DrainingNodes()))
}

func TestARepeatedRequestChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2")
	start := cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{Deadline: time.Hour}, Key: "start"}
	cancel := cluster.DrainUpdate{Node: "n1", Key: "cancel", MarkEligible: true}
	w.request(start)
	again := func(u cluster.DrainUpdate, d cluster.DrainID) {
		t.Helper()
		before := w.snap().Node(u.Node)
		must.Eq(t, cluster.DrainResult{Drain: d, Repeated: true}, w.request(u))
		must.Eq(t, before, w.snap().Node(u.Node))
	}
	again(start, "d1")
	must.False(t, w.request(cancel).Repeated)
	again(start, "d1")
	again(cancel, "d1")
	w.drain("n1", "d2", cluster.DrainSpec{})
	again(cancel, "d1")
	again(start, "d1")

	other := start
	other.Node, other.Drain = "n2", "d3"
	must.False(t, w.request(other).Repeated, must.Sprint("a key counts only for its node"))

	// A key is kept as long as the record of its drain exists.
	w.complete("n1", cluster.OutcomeComplete, 0)
	for i := range cluster.MaxDrainRecordsPerNode {
		w.drain("n1", cluster.DrainID(fmt.Sprint("later", i)), cluster.DrainSpec{})
		w.complete("n1", cluster.OutcomeComplete, 0)
	}
	start.Drain = "d4"
	must.False(t, w.request(start).Repeated)
}

func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	for i := range cluster.MaxDrainKeys + 2 {
		w.request(cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}, Key: fmt.Sprint("k", i)})
	}
	keys := w.snap().Node("n1").Drain.Keys
	must.Len(t, cluster.MaxDrainKeys, keys)
	must.Eq(t, "k2", keys[0])
}

func TestCancellingADrainWithdrawsItsMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2")
	web, etl := w.job(serviceJob("web", 9)), w.job(job("etl", cluster.JobBatch, 9))
	byHand := func(a *cluster.Allocation) { a.DesiredTransition = cluster.DesiredTransition{Migrate: true} }
	rescheduled := func(a *cluster.Allocation) {
		a.DesiredTransition = cluster.DesiredTransition{Reschedule: true, NoShutdownDelay: true}
	}
	w.place(web, "n1", nil, "ended", "quiet", "stopped", "stopping")
	w.place(web, "n1", byHand, "by hand")
	w.place(web, "n1", rescheduled, "marked")
	w.place(etl, "n1", nil, "batch")
	w.place(web, "n2", nil, "elsewhere")
	w.drain("n1", "d1", cluster.DrainSpec{Deadline: -1})
	w.drain("n2", "d2", cluster.DrainSpec{})
	w.mark(cluster.MarkPaced, "ended", "stopped", "stopping", "elsewhere")
	w.mark(cluster.MarkForced, "marked", "batch")
	w.stop("stopped", "stopping")
	w.report(cluster.ClientComplete, "stopped", "ended")

	done := w.request(cluster.DrainUpdate{Node: "n1", UpdatedBy: "eve", Meta: map[string]string{"why": "not today"}})
	moved := []cluster.MovedAllocs{{Job: web.Key(), Allocs: 3}}
	must.Eq(t, cluster.DrainResult{Drain: "d1", Withdrawn: 2, Stopping: []cluster.AllocID{"stopping"}, Moved: moved}, done)

	for _, id := range []cluster.AllocID{"marked", "batch"} {
		a := w.snap().Alloc(id)
		must.False(t, a.Marked(), must.Sprint(id))
		must.Eq(t, w.index, a.ModifyIndex)
		must.Eq(t, w.index, a.AllocModifyIndex)
		must.Eq(t, w.now.UTC(), a.ModifyTime)
	}
	must.Eq(t, cluster.DesiredTransition{Reschedule: true, NoShutdownDelay: true}, w.snap().Alloc("marked").DesiredTransition)
	must.Eq(t, cluster.DesiredTransition{}, w.snap().Alloc("batch").DesiredTransition)
	must.True(t, w.snap().Alloc("by hand").Marked())
	must.True(t, w.snap().Alloc("elsewhere").MarkedBy("d2"))
	must.Eq(t, []cluster.AllocID{"ended", "stopped", "stopping"}, allocIDs(w.snap().DrainView().DrainAllocs("d1")))

	n := w.snap().Node("n1")
	must.Nil(t, n.Drain)
	must.Eq(t, cluster.NodeIneligible, n.SchedulingEligibility)
	must.Eq(t, cluster.DrainStatusCanceled, n.LastDrain.Status)
	must.Eq(t, seconds(w.now), n.LastDrain.UpdatedAt)
	must.Eq(t, "eve", n.LastDrain.AccessorID)
	must.Eq(t, "Node drain disabled", w.messages("n1")[2])

	d := w.snap().DrainRecord("d1")
	must.Eq(t, cluster.OutcomeCancelled, d.Outcome)
	must.Eq(t, w.now.UTC(), d.EndedAt)
	must.Eq(t, w.index, d.EndIndex)
	must.Eq(t, 1, d.StillStopping)
	must.Eq(t, 3, d.Marked[cluster.MarkPaced])
	must.Eq(t, 2, d.Marked[cluster.MarkForced])
	must.Eq(t, "eve", d.UpdatedBy)
	must.Eq(t, map[string]string{"why": "not today"}, d.Meta)
	must.Eq(t, cluster.Revision(d.CreateIndex), d.Revision, must.Sprint("a cancel does not change the revision"))
	must.Eq(t, d.Strategy.StartedAt, d.UpdatedAt)
}

func TestEligibilityAfterACancelFollowsTheRequest(t *testing.T) {
	t.Parallel()
	for _, eligible := range []bool{false, true} {
		w := newWorld(t)
		w.nodes("n1")
		w.drain("n1", "d1", cluster.DrainSpec{})
		w.request(cluster.DrainUpdate{Node: "n1", MarkEligible: eligible})
		must.Eq(t, eligible, w.snap().Node("n1").Ready())
	}
}

func TestEndingADrainThatDoesNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.complete("n1", cluster.OutcomeComplete, 0)
	before := w.snap().Node("n1")

	must.Eq(t, cluster.DrainResult{}, w.request(cluster.DrainUpdate{Node: "n1", Meta: map[string]string{"a": "b"}}))
	n := w.snap().Node("n1")
	must.Eq(t, before.Events, n.Events)
	must.Eq(t, before.LastDrain, n.LastDrain)
	must.Eq(t, w.index, n.ModifyIndex)
	must.Eq(t, w.index, w.snap().TableIndex(statestore.TableNodes))
	must.Eq(t, w.now.Unix(), n.StatusUpdatedAt)
	must.Eq(t, cluster.NodeIneligible, n.SchedulingEligibility)

	w.request(cluster.DrainUpdate{Node: "n1", MarkEligible: true})
	must.Eq(t, cluster.NodeEligible, w.snap().Node("n1").SchedulingEligibility)
	must.Eq(t, before.LastDrain, w.snap().Node("n1").LastDrain)
	must.Len(t, 1, recordIDs(w.snap().Drains()))
}

func TestCompletingADrain(t *testing.T) {
	t.Parallel()
	for outcome, late := range map[cluster.Outcome]bool{
		cluster.OutcomeComplete: false, cluster.OutcomeDeadlineReached: true, cluster.OutcomeForced: true,
	} {
		w := newWorld(t)
		w.nodes("n1")
		w.request(cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}, MarkEligible: true, UpdatedBy: "ann"})
		w.complete("n1", outcome, 3)

		n := w.snap().Node("n1")
		must.Nil(t, n.Drain)
		must.Eq(t, cluster.NodeIneligible, n.SchedulingEligibility, must.Sprint("completion never makes a node eligible"))
		must.Eq(t, cluster.DrainStatusComplete, n.LastDrain.Status)
		must.Eq(t, "ann", n.LastDrain.AccessorID)
		must.Eq(t, seconds(w.now), n.LastDrain.UpdatedAt)
		must.Eq(t, w.now.Unix(), n.StatusUpdatedAt)
		last := n.Events[len(n.Events)-1]
		must.Eq(t, "Node drain complete", last.Message)
		if late {
			must.Eq(t, map[string]string{"deadline_reached": "true"}, last.Details)
		} else {
			must.Nil(t, last.Details)
		}
		d := w.snap().DrainRecord("d1")
		must.Eq(t, outcome, d.Outcome)
		must.Eq(t, 3, d.StillStopping)
		must.Eq(t, w.now.UTC(), d.EndedAt)
		must.Eq(t, w.index, d.EndIndex)
	}
}

func TestACompletionEndsNoOtherDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2", "n3")
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.drain("n2", "d2", cluster.DrainSpec{})
	ending := func(n cluster.NodeID, d cluster.DrainID) rules.Ending {
		return rules.Ending{Completion: rules.Completion{Node: n, Drain: d}, Outcome: cluster.OutcomeComplete}
	}
	w.write(func(x *statestore.Txn) {
		x.CompleteDrains(w.now, []rules.Ending{
			ending("gone", "d1"), ending("n1", "of old"), ending("n3", ""), ending("n2", "d2"), ending("n2", "d2"),
		})
	})
	must.True(t, w.snap().Node("n1").Draining())
	must.Eq(t, []cluster.NodeID{"n1"}, nodeIDs(w.snap().DrainView().DrainingNodes()))
	must.Eq(t, []cluster.DrainID{"d2"}, recordIDs(w.snap().Drains()))
	must.Eq(t, []string{"Node registered"}, w.messages("n3"))
}

// A cancel with Undo restores the eligibility that the node had when the drain began.
func TestCancellingADrain_undo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version  cluster.Version
		eligible cluster.Eligibility // before the drain
		after    cluster.Eligibility
	}{
		"eligible":         {cluster.VersionOfPauses, cluster.NodeEligible, cluster.NodeEligible},
		"ineligible":       {cluster.VersionOfPauses, cluster.NodeIneligible, cluster.NodeIneligible},
		"an older cluster": {cluster.VersionOfPauses - 1, cluster.NodeEligible, cluster.NodeIneligible},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.nodes("n1")
			w.write(func(x *statestore.Txn) {
				x.RaiseClusterVersion(c.version)
				must.NoError(t, x.UpdateNodeEligibility("n1", c.eligible, w.now))
			})
			w.drain("n1", "d1", cluster.DrainSpec{})
			w.drain("n1", "", cluster.DrainSpec{Deadline: time.Hour})
			w.request(cluster.DrainUpdate{Node: "n1", Undo: true})
			must.Eq(t, c.after, w.snap().Node("n1").SchedulingEligibility)
			must.Eq(t, cluster.OutcomeCancelled, w.snap().DrainRecord("d1").Outcome)
			w.request(cluster.DrainUpdate{Node: "n1", Undo: true})
			must.Eq(t, c.after, w.snap().Node("n1").SchedulingEligibility, must.Sprint("no drain is there to undo"))
		})
	}
}
