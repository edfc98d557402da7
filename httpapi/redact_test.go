package httpapi_test

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A caller that may only read sees no environment and no driver configuration: not in an answer, not
// by a filter, not in an event.
func TestRedaction(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	w := newFixture(t).nodes(1)
	j := w.job("web", cluster.JobService, 1).Copy()
	j.TaskGroups[0].Tasks[0].Env = map[string]string{"PASSWORD": secret}
	j.TaskGroups[0].Tasks[0].Config = json.RawMessage(`{"args":["` + secret + `"]}`)
	j = w.Job(j)
	w.place(1, j, nodeID(1))
	w.place(2, w.job("plain", cluster.JobService, 1), nodeID(1))
	base := w.serveAs(guarded(w), httpapi.Options{}).URL
	get := func(path, token string) string {
		a := request(t, "GET", base+path, "", "X-Nomad-Token", token)
		must.Eq(t, 200, a.code, must.Sprint(path, a.body))
		return a.body
	}
	for _, path := range []string{
		"/v1/job/web", "/v1/job/web/versions", "/v1/allocation/" + uuid('b', 1), "/v1/node/" + string(nodeID(1)) + "/allocations",
	} {
		shown, hidden := get(path, "writer-token"), get(path, "reader-token")
		must.Eq(t, 2, strings.Count(shown, secret), must.Sprint(path))
		must.StrNotContains(t, hidden, secret, must.Sprint(path))
		must.StrContains(t, hidden, `"PASSWORD":"[redacted]"`, must.Sprint(path))
		must.StrContains(t, hidden, `"Config":{"args":"[redacted]"}`, must.Sprint(path))
	}
	must.Eq(t, 2, strings.Count(get("/v1/node/"+string(nodeID(1))+"/allocations", secretOf(nodeID(1))), secret), must.Sprint("the node runs the task"))

	probe := "?filter=" + url.QueryEscape(`any TaskGroups as g { g.Name == "web" }`)
	must.StrContains(t, get("/v1/jobs"+probe, "reader-token"), `"web"`)
	for _, path := range []string{"/v1/allocations", "/v1/node/" + string(nodeID(1)) + "/allocations"} {
		probe := "?filter=" + url.QueryEscape(`Job.TaskGroups.0.Tasks.0.Env.PASSWORD == "`+secret+`"`)
		if a := request(t, "GET", base+path+probe, "", "X-Nomad-Token", "reader-token"); a.code == 200 {
			must.Eq(t, "[]", a.body, must.Sprint(path))
		}
	}
	must.Eq(t, secret, w.State().Job(j.Key()).TaskGroups[0].Tasks[0].Env["PASSWORD"], must.Sprint("the state stays"))
}

// Each method of a state that returns jobs, allocations or drains must hide their secrets: see redactedState.
func TestRedaction_EveryMethodIsKnown(t *testing.T) {
	t.Parallel()
	var found []string
	for m := range reflect.TypeFor[httpapi.State]().Methods() {
		for i := range m.Type.NumOut() {
			if out := m.Type.Out(i).String(); strings.Contains(out, "cluster.Job") || strings.Contains(out, "cluster.Alloc") || strings.Contains(out, "cluster.Drain") {
				found = append(found, m.Name)
			}
		}
	}
	slices.Sort(found)
	must.Eq(t, []string{"Alloc", "Allocs", "AllocsByJob", "AllocsByNode", "DrainRecord", "Draining", "Drains", "DrainsByNode", "Job", "Jobs", "Story"}, found)
}

// A client's report of volumes may contain an error of a plugin and the command of a process. A caller
// that may only read sees the volumes and their paths without these texts: of an allocation, of a reason, in
// the record of a drain and in lists, after the drain's end too.
func TestRedaction_volumes(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	w := newFixture(t).nodes(1)
	pluginNode(w, 1, allocID(9))
	w.must(&shims.VolumeRegister{At: w.Now(), Volume: &cluster.Volume{ID: "data", ExternalID: "x", Plugin: "disks", Capabilities: []cluster.VolumeCapability{{
		Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem,
	}}}})
	j := w.job("web", cluster.JobService, 1).Copy()
	j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: cluster.VolumeCapability{
		Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem,
	}}}
	w.place(1, w.Job(j), nodeID(1))
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: -1})
	w.mark(1, cluster.MarkForced)
	w.stop(1)
	held := &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{
		Namespace: "default", Volume: "data", Alloc: allocID(1), Path: "/mnt/data", Reason: "busy: process 7 (mysql -p" + secret + ")", Since: w.Now(),
	}}}
	report := func(s cluster.ClientStatus) {
		w.must(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: allocID(1), Node: nodeID(1), ClientStatus: s, VolumeHolds: held, At: w.Now()}}})
	}
	base := w.serveAs(guarded(w), httpapi.Options{}).URL
	hides := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			shown, hidden := request(t, "GET", base+path, "", "X-Nomad-Token", "writer-token"), request(t, "GET", base+path, "", "X-Nomad-Token", "reader-token")
			must.StrContains(t, shown.body, secret, must.Sprint(path))
			must.StrNotContains(t, hidden.body, secret, must.Sprint(path))
			must.StrContains(t, hidden.body, "/mnt/data", must.Sprint(path))
		}
	}
	node := "/v1/node/" + string(nodeID(1))
	report(cluster.ClientRunning)
	hides("/v1/allocation/"+string(allocID(1)), node+"/allocations", node+"/drain")
	report(cluster.ClientComplete)
	w.end(nodeID(1))
	must.StrContains(t, request(t, "GET", base+node+"/drain", "", "X-Nomad-Token", "reader-token").body, `"VolumesLeft":{"Volumes":[{"Namespace":"default","Volume":"data"`)
	hides("/v1/allocation/"+string(allocID(1)), node+"/drain", "/v1/drains")
	events := w.State().Node(nodeID(1)).Events
	must.Eq(t, "default/data of allocation "+string(allocID(1)), events[len(events)-1].Details["volumes_left"])
	must.StrContains(t, held.Volumes[0].Reason, secret, must.Sprint("the state stays"))
}

// A caller without the right to write does not see why the data of an allocation waits or was given up.
func TestRedaction_data(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	w := newFixture(t).nodes(2)
	moving(w, 1, nodeID(1), nodeID(2))
	keepsData(w, 1)
	reportMoves(w, 2, cluster.ClientPending, &cluster.DataMove{State: cluster.DataGivenUp, Peer: allocID(1), Why: "the disk of " + secret + " is full", Bytes: 7}, nil)
	base := w.serveAs(guarded(w), httpapi.Options{}).URL
	for _, path := range []string{
		"/v1/allocation/" + string(allocID(1)), "/v1/allocation/" + string(allocID(2)), "/v1/node/" + string(nodeID(1)) + "/allocations",
		"/v1/job/db1/allocations?filter=JobID+%3D%3D+db1", "/v1/allocations",
	} {
		shown, hidden := request(t, "GET", base+path, "", "X-Nomad-Token", "writer-token"), request(t, "GET", base+path, "", "X-Nomad-Token", "reader-token")
		must.Eq(t, strings.Contains(path, "/v1/allocation/") || strings.Contains(path, "/v1/node/"), strings.Contains(shown.body, secret), must.Sprint(path))
		must.StrNotContains(t, hidden.body, secret, must.Sprint(path))
		must.Eq(t, strings.Contains(shown.body, `"Bytes":7`), strings.Contains(hidden.body, `"Bytes":7`), must.Sprint(path))
	}
	must.StrContains(t, w.State().Alloc(allocID(2)).DataIn.Why, secret, must.Sprint("the state stays"))
}
