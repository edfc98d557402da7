package httpapi_test

import (
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// While the servers of a cluster are upgraded, a registration keeps LostAfter, and its answer has a warning
// about the rest of the block.
func TestReferenceClient_DisconnectBeforeItsVersion(t *testing.T) {
	t.Parallel()
	w := newOldFixture(t)
	w.must(&shims.RaiseClusterVersion{Version: cluster.VersionOfConfirmation - 1})
	w.serve(httpapi.Options{})
	g := api.NewTaskGroup("g", 1).AddTask(api.NewTask("t", "raw_exec"))
	g.Disconnect = &api.DisconnectStrategy{LostAfter: new(time.Hour), Replace: new(false), Reconcile: new("keep_replacement")}
	answer := result.Read(w.client().Jobs().Register(api.NewServiceJob("web", "web", "global", 50).AddTaskGroup(g), nil)).OK(t)
	must.Eq(t, "the cluster has version 7 until all its servers are upgraded: Replace and Reconcile of Disconnect have no effect yet; register the job again after the upgrade", answer.Warnings)
	kept := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	must.Eq(t, cluster.DisconnectStrategy{LostAfter: time.Hour}, kept.TaskGroups[0].Disconnect)
}

// A stop_on_client_after that is shorter than a client waits for its next heartbeat is kept, with a warning. Bug:
// nothing stated that it cannot be obeyed.
func TestReferenceClient_ShortStopOnClientAfter(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.serve(httpapi.Options{})
	jobs := w.client().Jobs()
	g := api.NewTaskGroup("g", 1).AddTask(api.NewTask("t", "raw_exec"))
	for after, want := range map[time.Duration]string{
		5 * time.Second: `group "g" has a stop_on_client_after of 5s: its tasks stop when the next heartbeat of the node is overdue, ` +
			`which takes up to 20s, and longer with more than 500 nodes`,
		20 * time.Second: "",
	} {
		g.Disconnect = &api.DisconnectStrategy{StopOnClientAfter: &after}
		job := api.NewServiceJob("web", "web", "global", 50).AddTaskGroup(g)
		must.Eq(t, want, result.Read(jobs.Validate(job, nil)).OK(t).Warnings)
		must.Eq(t, want, result.Read(jobs.Plan(job, false, nil)).OK(t).Warnings)
		must.Eq(t, want, result.Read(jobs.Register(job, nil)).OK(t).Warnings)
	}
}
