package httpapi_test

import (
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// The calls of the reference's "alloc status": each field that it reads through is there.
func TestReferenceClient_AllocStatus(t *testing.T) {
	t.Parallel()
	w := newFixture(t).mixedNodes()
	job := w.job("web", cluster.JobService, 1).Copy()
	job.TaskGroups[0].Tasks[0].Resources.MemoryMB = 200
	w.place(1, w.Job(job), nodeID(1))
	client := w.client()

	a := result.Read(client.Allocations().Info(uuid('b', 1), nil)).OK(t)
	must.Eq(t, 6, a.Metrics.NodesInPool, must.Sprint("the ready nodes of the default pool"))
	must.Eq(t, 5, a.Metrics.NodesEvaluated)
	must.Eq(t, map[string]int{"dc1": 5, "dc2": 1}, a.Metrics.NodesAvailable)
	must.Eq(t, 1, a.Metrics.DimensionExhausted["memory"])
	must.Zero(t, a.Metrics.CoalescedFailures)
	must.Eq(t, 200, a.AllocatedResources.Tasks["main"].Memory.MemoryMB)
	must.Eq(t, "running", a.TaskStates["main"].State)
	must.Eq(t, "Tasks are running", a.ClientDescription)

	w.report(1, cluster.ClientFailed)
	a = result.Read(client.Allocations().Info(uuid('b', 1), nil)).OK(t)
	must.NotNil(t, a.Metrics)
	must.Zero(t, a.Metrics.NodesEvaluated, must.Sprint("an ended allocation needs no node"))
	must.Eq(t, "dead", a.TaskStates["main"].State)
	must.True(t, a.TaskStates["main"].Failed)
	must.Eq(t, "Failed tasks", a.ClientDescription)

	checks := result.Of(client.Allocations().Checks(uuid('b', 1), nil)).OK(t)
	must.MapEmpty(t, checks)
	services := result.Read(client.Allocations().Services(uuid('b', 1), nil)).OK(t)
	must.SliceEmpty(t, services)

	list := result.Read(client.Nodes().Allocations(string(nodeID(1)), nil)).OK(t)
	must.Eq(t, 200, list[0].AllocatedResources.Tasks["main"].Memory.MemoryMB)
	stubs := result.Read(client.Jobs().Allocations("web", true, nil)).OK(t)
	must.Eq(t, "dead", stubs[0].TaskStates["main"].State)
	must.Nil(t, stubs[0].RescheduleTracker)
}

// An allocation names the failed ones before it, also in lists. A migration ends the row.
func TestReferenceClient_RescheduleTracker(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2).atNoon()
	job := w.job("web", cluster.JobService, 1)
	var placed []*cluster.Allocation
	next := func() { placed = append(placed, w.schedule(job).Places...) }
	next()
	for range 2 {
		w.Report(cluster.ClientFailed, placed[len(placed)-1].ID)
		next()
	}
	must.Len(t, 3, placed)
	want := &api.RescheduleTracker{Events: []*api.RescheduleEvent{
		{RescheduleTime: noon.UnixNano(), PrevAllocID: string(placed[0].ID), PrevNodeID: string(placed[0].NodeID)},
		{RescheduleTime: noon.UnixNano(), PrevAllocID: string(placed[1].ID), PrevNodeID: string(placed[1].NodeID)},
	}}
	client := w.client()
	tracker := func(id cluster.AllocID) *api.RescheduleTracker {
		a := result.Read(client.Allocations().Info(string(id), nil)).OK(t)
		return a.RescheduleTracker
	}
	must.Nil(t, tracker(placed[0].ID))
	must.Eq(t, want, tracker(placed[2].ID))
	stubs := result.Read(client.Jobs().Allocations("web", true, nil)).OK(t)
	full := result.Read(client.Nodes().Allocations(string(placed[2].NodeID), nil)).OK(t)
	for _, a := range full {
		stubs = append(stubs, a.Stub())
	}
	checked := 0
	for _, stub := range stubs {
		if stub.ID == string(placed[2].ID) {
			must.Eq(t, want, stub.RescheduleTracker)
			checked++
		}
	}
	must.Eq(t, 2, checked)

	w.Drain(placed[2].NodeID, &cluster.DrainSpec{Deadline: -1})
	w.Mark(cluster.MarkForced, placed[2].ID)
	next()
	must.Len(t, 4, placed)
	must.Eq(t, placed[2].ID, placed[3].PreviousAllocation)
	must.Nil(t, tracker(placed[3].ID))
}

// Nodes without attributes have objects all the same, and nodes that are alike have one class.
func TestReferenceClient_nodeFields(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	bare := &cluster.Node{ID: nodeID(3), SecretID: "s", Name: "n3", Datacenter: "dc1", Status: cluster.NodeReady}
	w.must(&shims.NodeRegister{At: w.Now(), Node: bare})
	nodes := w.client().Nodes()
	n := result.Read(nodes.Info(string(nodeID(3)), nil)).OK(t)
	must.NotNil(t, n.Attributes)
	must.NotNil(t, n.Meta)
	must.NotNil(t, n.Links)
	class := func(n int) string {
		return askFor[wire.Node](t, w.serve(httpapi.Options{}).URL+"/v1/node/"+string(nodeID(n))).ComputedClass
	}
	must.StrHasPrefix(t, "v1:", class(1))
	must.Eq(t, class(1), class(2))
	must.NotEq(t, class(1), class(3))
}
