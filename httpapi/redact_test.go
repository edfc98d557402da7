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
	b := w.backend()
	b.Access = everyToken()
	base := w.serveAs(b, httpapi.Options{}).URL
	get := func(path, token string) string {
		a := ask(t, "GET", base+path, "", "X-Nomad-Token", token)
		must.Eq(t, 200, a.code, must.Sprint(path, a.body))
		return a.body
	}
	for _, path := range []string{
		"/v1/job/web", "/v1/job/web/versions", "/v1/allocation/" + uuid('b', 1), "/v1/node/" + string(nodeID(1)) + "/allocations",
	} {
		seen, hidden := get(path, "writer-token"), get(path, "reader-token")
		must.Eq(t, 2, strings.Count(seen, secret), must.Sprint(path))
		must.StrNotContains(t, hidden, secret, must.Sprint(path))
		must.StrContains(t, hidden, `"PASSWORD":"[redacted]"`, must.Sprint(path))
		must.StrContains(t, hidden, `"Config":{"args":"[redacted]"}`, must.Sprint(path))
	}
	must.Eq(t, 2, strings.Count(get("/v1/node/"+string(nodeID(1))+"/allocations", secretOf(nodeID(1))), secret), must.Sprint("the node runs the task"))

	probe := "?filter=" + url.QueryEscape(`any TaskGroups as g { g.Name == "web" }`)
	must.StrContains(t, get("/v1/jobs"+probe, "reader-token"), `"web"`)
	for _, path := range []string{"/v1/allocations", "/v1/node/" + string(nodeID(1)) + "/allocations"} {
		probe := "?filter=" + url.QueryEscape(`Job.TaskGroups.0.Tasks.0.Env.PASSWORD == "`+secret+`"`)
		if a := ask(t, "GET", base+path+probe, "", "X-Nomad-Token", "reader-token"); a.code == 200 {
			must.Eq(t, "[]", a.body, must.Sprint(path))
		}
	}
	must.Eq(t, secret, w.State().Job(j.Key()).TaskGroups[0].Tasks[0].Env["PASSWORD"], must.Sprint("the state stays"))
}

// Each method of a state that returns jobs or allocations must hide their secrets: see redactedState.
func TestRedaction_EveryMethodIsKnown(t *testing.T) {
	t.Parallel()
	var found []string
	for m := range reflect.TypeFor[httpapi.State]().Methods() {
		for i := range m.Type.NumOut() {
			if out := m.Type.Out(i).String(); strings.Contains(out, "cluster.Job") || strings.Contains(out, "cluster.Alloc") {
				found = append(found, m.Name)
			}
		}
	}
	slices.Sort(found)
	must.Eq(t, []string{"Alloc", "Allocs", "AllocsByJob", "AllocsByNode", "Job", "Jobs"}, found)
}
