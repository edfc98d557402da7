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
