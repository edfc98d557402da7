package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// answers returns the URL of a server whose answers are the values, by path.
func answers(t *testing.T, bodies map[string]any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, known := bodies[r.URL.Path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("X-Nomad-Index", "7")
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// failingCalls are calls of controllers that fail: two have failed, and one has no controller.
func failingCalls() []wire.ControllerCall {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local) // the output is the same in every zone
	return []wire.ControllerCall{
		{Call: "attach", Namespace: "default", Volume: "data", PluginID: "disks", NodeID: "7c6b3110-0001", Failures: 3, ControllerNodeID: "e1d90000-0002",
			LastError: "the client answers 500: ControllerPublishVolume: Internal:\nthe pool is busy", LastAt: wire.NewTime(at), NextAt: wire.NewTime(at.Add(4 * time.Second)), InFlight: true},
		{Call: "detach", Namespace: "team", Volume: "logs", PluginID: "disks", NodeID: "7c6b3110-0001", Failures: 1, ControllerNodeID: "7c6b3110-0001",
			LastError: "the node has no session with a server", LastAt: wire.NewTime(at), NextAt: wire.NewTime(at.Add(time.Second))},
		{Call: "detach", Namespace: "default", Volume: "web", PluginID: "nfs", NodeID: "7c6b3110-0001", NoController: true},
	}
}

// Each command whose subject waits for a controller shows the calls that fail.
func TestFailingControllerCalls(t *testing.T) {
	t.Parallel()
	const node, alloc = "7c6b3110-0001", "0a1b2c3d-0003"
	job := wire.NewJob(&cluster.Job{ID: "web", Namespace: "default", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{Name: "web", Count: 1}}}, "global")
	job.Status = new("running")
	url := answers(t, map[string]any{
		"/v1/volumes":         []wire.VolumeListStub{{ID: "data"}},
		"/v1/volume/csi/data": wire.Volume{ID: "data", Namespace: "default", ControllerCalls: failingCalls()},
		"/v1/allocations":     []wire.AllocationListStub{{ID: alloc}},
		"/v1/allocation/" + alloc: wire.Allocation{
			ID: alloc, Namespace: "default", JobID: "web", TaskGroup: "web", DesiredStatus: "run", ClientStatus: "pending", ControllerCalls: failingCalls(),
		},
		"/v1/jobs":                    []wire.JobListStub{{ID: "web"}},
		"/v1/job/web":                 job,
		"/v1/job/web/summary":         wire.JobSummary{JobID: "web", Summary: map[string]wire.GroupSummary{"web": {Starting: 1}}, ControllerCalls: failingCalls()},
		"/v1/job/web/evaluations":     []wire.Evaluation{},
		"/v1/job/web/allocations":     []wire.AllocationListStub{},
		"/v1/nodes":                   []wire.NodeListStub{{ID: node}},
		"/v1/node/" + node:            wire.Node{ID: node},
		"/v1/node/" + node + "/drain": wire.NodeDrain{NodeID: node, State: wire.StateNone, ControllerCalls: failingCalls()},
	})
	var all strings.Builder
	for _, line := range []string{"volume status data", "alloc status " + alloc, "job status web", "node explain " + node, "node explain -verbose " + node} {
		code, out, errs := commandAt(t.Context(), url, "", line)
		must.Zero(t, code, must.Sprint(line, ": ", errs))
		if _, calls, found := strings.Cut(out, "\nFailing Controller Calls\n"); found {
			table, _, _ := strings.Cut(calls, "\n\n")
			all.WriteString("$ nodedrain " + line + "\n" + strings.TrimRight(table, "\n") + "\n")
		}
	}
	clitest.Golden(t, "failing_controller_calls.golden", all.String())
}
