package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Bug: Replace and Reconcile were dropped without a warning. What the servers do not have as the reference
// does is in a warning, and what they keep comes back.
func TestDisconnect_Reconcile(t *testing.T) {
	t.Parallel()
	for choice, want := range map[string]struct {
		kept bool
		back string
	}{
		"":                 {back: "keep_original"},
		"keep_original":    {back: "keep_original"},
		"keep_replacement": {kept: true, back: "keep_replacement"},
		"best_score":       {back: "keep_original"},
		"longest_running":  {back: "keep_original"},
	} {
		g := api.NewTaskGroup("g", 1)
		g.Disconnect = &api.DisconnectStrategy{LostAfter: new(time.Hour), Replace: new(false), Reconcile: new(choice)}
		var w wire.Job
		must.NoError(t, json.Unmarshal(encode(t, api.NewServiceJob("j", "j", "global", 50).AddTaskGroup(g)), &w))
		j, err := w.Job()
		must.NoError(t, err)
		must.Eq(t, cluster.DisconnectStrategy{LostAfter: time.Hour, NoReplace: true, KeepReplacement: want.kept}, j.TaskGroups[0].Disconnect)
		var back api.Job
		must.NoError(t, json.Unmarshal(encode(t, wire.NewJob(j, "global")), &back))
		must.Eq(t, &api.DisconnectStrategy{LostAfter: new(time.Hour), Replace: new(false), Reconcile: new(want.back)}, back.TaskGroups[0].Disconnect)
	}
}
