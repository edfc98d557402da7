package statestore_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func TestRegisteringANodeForTheFirstTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	node := &cluster.Node{ID: "n1", Name: "one", Attributes: map[string]string{"os": "linux"}}
	w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertNode(node, w.now)) })

	n := w.snap().Node("n1")
	must.Eq(t, cluster.NodeInitializing, n.Status)
	must.Eq(t, cluster.NodeEligible, n.SchedulingEligibility)
	must.Eq(t, cluster.DefaultNodePool, n.NodePool)
	must.Eq(t, w.now.UTC(), n.StatusChangedAt)
	must.Eq(t, w.now.Unix(), n.StatusUpdatedAt)
	must.Eq(t, 1, n.CreateIndex)
	must.Eq(t, 1, n.ModifyIndex)
	must.Eq(t, []cluster.NodeEvent{{Message: "Node registered", Subsystem: "Cluster", Timestamp: w.now.UTC()}}, n.Events)

	node.Attributes["os"] = "changed by the caller"
	must.Eq(t, "linux", n.Attributes["os"])
}

func TestRegisteringStartsNoDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.UpsertNode(&cluster.Node{
			ID:        "n1",
			Drain:     &cluster.Drain{ID: "d"},
			LastDrain: &cluster.DrainMetadata{},
			Events:    []cluster.NodeEvent{{Message: "made up"}},
		}, w.now))
	})
	must.False(t, w.snap().Node("n1").Draining())
	must.Nil(t, w.snap().Node("n1").LastDrain)
	must.Eq(t, []string{cluster.EventNodeRegistered}, w.messages("n1"))
}

func TestRegisteringAgainKeepsTheServersFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.drain("n1", "d1", cluster.DrainSpec{Deadline: time.Hour})
	before := w.snap().Node("n1")

	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.UpsertNode(&cluster.Node{
			ID: "n1", Name: "renamed", Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible,
		}, w.now))
	})
	n := w.snap().Node("n1")
	must.Eq(t, "renamed", n.Name)
	must.Eq(t, before.Drain, n.Drain)
	must.Eq(t, before.LastDrain, n.LastDrain)
	must.Eq(t, before.Events, n.Events)
	must.Eq(t, cluster.NodeIneligible, n.SchedulingEligibility)
	must.Eq(t, before.CreateIndex, n.CreateIndex)
	must.Eq(t, w.index, n.ModifyIndex)
	must.Eq(t, before.StatusChangedAt, n.StatusChangedAt, must.Sprint("the status is the same as before"))
	must.Eq(t, w.now.Unix(), n.StatusUpdatedAt)
}

func TestRegisteringWhileDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.status("n1", cluster.NodeDown)
	missed := w.index
	w.nodes("n1")

	n := w.snap().Node("n1")
	must.Eq(t, []string{"Node registered", "Node heartbeat missed", "Node re-registered"}, w.messages("n1"))
	must.Eq(t, w.index, n.Events[2].CreateIndex)
	must.Eq(t, missed, n.LastMissedHeartbeatIndex)
	must.Eq(t, w.now.UTC(), n.StatusChangedAt)
}

func TestBadRegistrationsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, n := range []*cluster.Node{nil, {}, {ID: "n1", Status: "odd"}, {ID: "n1", SchedulingEligibility: "odd"}} {
		w.write(func(x *statestore.Txn) { must.Error(t, x.UpsertNode(n, w.now)) })
	}
	must.SliceEmpty(t, nodeIDs(w.snap().Nodes()))
}

func TestHeartbeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	registered := w.snap().Node("n1").StatusChangedAt

	w.status("n1", cluster.NodeReady)
	must.Eq(t, registered, w.snap().Node("n1").StatusChangedAt, must.Sprint("nothing changed"))
	must.Eq(t, w.now.Unix(), w.snap().Node("n1").StatusUpdatedAt)

	w.status("n1", cluster.NodeDisconnected)
	must.Eq(t, w.index, w.snap().Node("n1").LastMissedHeartbeatIndex)
	must.Eq(t, w.now.UTC(), w.snap().Node("n1").StatusChangedAt)

	w.status("n1", cluster.NodeReady)
	must.Eq(t, 0, w.snap().Node("n1").LastMissedHeartbeatIndex)

	w.status("n1", cluster.NodeDown)
	w.status("n1", cluster.NodeReady)
	must.Eq(t, []string{
		"Node registered", "Node heartbeat missed", "Node heartbeat missed", "Node reregistered by heartbeat",
	}, w.messages("n1"))

	w.write(func(x *statestore.Txn) {
		must.ErrorIs(t, x.UpdateNodeStatus("n9", cluster.NodeReady, w.now), statestore.ErrNodeNotFound)
		must.Error(t, x.UpdateNodeStatus("n1", "odd", w.now))
	})
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	for range cluster.MaxNodeEvents {
		w.status("n1", cluster.NodeDown)
		w.status("n1", cluster.NodeReady)
	}
	events := w.snap().Node("n1").Events
	must.Len(t, cluster.MaxNodeEvents, events)
	must.Eq(t, w.index, events[cluster.MaxNodeEvents-1].CreateIndex)
}

func TestEligibility(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	set := func(e cluster.Eligibility) (err error) {
		w.write(func(x *statestore.Txn) { err = x.UpdateNodeEligibility("n1", e, w.now) })
		return err
	}
	must.NoError(t, set(cluster.NodeIneligible))
	n := w.snap().Node("n1")
	must.Eq(t, cluster.NodeIneligible, n.SchedulingEligibility)
	must.Eq(t, w.index, n.ModifyIndex)
	must.Eq(t, w.now.Unix(), n.StatusUpdatedAt)

	must.NoError(t, set(cluster.NodeIneligible))
	must.Eq(t, n.ModifyIndex, w.snap().Node("n1").ModifyIndex, must.Sprint("it was ineligible already"))

	must.NoError(t, set(cluster.NodeEligible))
	must.Eq(t, []string{
		"Node registered", "Node marked as ineligible for scheduling", "Node marked as eligible for scheduling",
	}, w.messages("n1"))

	must.EqError(t, set("maybe"), `invalid scheduling eligibility "maybe"`)
	w.write(func(x *statestore.Txn) {
		must.ErrorIs(t, x.UpdateNodeEligibility("n9", cluster.NodeEligible, w.now), statestore.ErrNodeNotFound)
	})
}

func TestADrainingNodeCannotBeMadeEligible(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.write(func(x *statestore.Txn) {
		err := x.UpdateNodeEligibility("n1", cluster.NodeEligible, w.now)
		must.ErrorIs(t, err, statestore.ErrNodeDraining)
		must.EqError(t, err, "can not set node's scheduling eligibility to eligible while it is draining")
		must.NoError(t, x.UpdateNodeEligibility("n1", cluster.NodeIneligible, w.now))
	})
}

func TestOneMissingNodeDoesNotFailABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2", "n3")
	w.write(func(x *statestore.Txn) {
		missing := x.DeleteNodes([]cluster.NodeID{"n1", "n8", "n1", "n3", "n9"}, w.now)
		must.Eq(t, []cluster.NodeID{"n8", "n9"}, missing)
	})
	must.Eq(t, []cluster.NodeID{"n2"}, nodeIDs(w.snap().Nodes()))
}

func TestDeletingANodeEndsItsDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web, sys := w.job(serviceJob("web", 3)), w.job(job("sys", cluster.JobSystem, 1))
	w.place(web, "n1", nil, "w1", "w2", "w3")
	w.place(sys, "n1", nil, "s1")
	w.drain("n1", "d1", cluster.DrainSpec{IgnoreSystemJobs: true})
	w.mark(cluster.MarkPaced, "w1", "w2")
	w.report(cluster.ClientComplete, "w1")

	w.write(func(x *statestore.Txn) { must.SliceEmpty(t, x.DeleteNodes([]cluster.NodeID{"n1"}, w.now)) })
	must.Nil(t, w.snap().Node("n1"))
	must.SliceEmpty(t, nodeIDs(w.snap().DrainView().DrainingNodes()))
	d := w.snap().DrainRecord("d1")
	must.Eq(t, cluster.OutcomeNodeGone, d.Outcome)
	must.Eq(t, w.now.UTC(), d.EndedAt)
	must.Eq(t, w.index, d.EndIndex)
	must.Eq(t, 2, d.StillStopping, must.Sprint("w2 and w3: s1 did not have to leave"))
	must.Eq(t, 2, d.Marked[cluster.MarkPaced])
	must.Eq(t, "name of n1", d.NodeName)
	must.Len(t, 4, allocIDs(w.snap().AllocsByNode("n1")), must.Sprint("its allocations stay, and the scheduler marks them as lost"))
}
