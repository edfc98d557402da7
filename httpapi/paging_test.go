package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

func decode[T any](t testing.TB, a answer) (v T) {
	t.Helper()
	must.Eq(t, 200, a.code, must.Sprint(a.body))
	must.Eq(t, "application/json", a.header.Get("Content-Type"))
	must.NoError(t, json.Unmarshal([]byte(a.body), &v))
	return v
}

type ided struct{ ID string }

// pages reads all pages of a list, and returns the ids of each.
func pages(t testing.TB, base string) (all [][]string) {
	t.Helper()
	for token, first := "", true; first || token != ""; first = false {
		a := request(t, "GET", base+"&next_token="+url.QueryEscape(token), "")
		var ids []string
		for _, row := range decode[[]ided](t, a) {
			ids = append(ids, row.ID)
		}
		all = append(all, ids)
		token = a.header.Get("X-Nomad-NextToken")
		must.LessEq(t, 100, len(all))
	}
	return all
}

func TestPages_nodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(5)
	url := w.serve(httpapi.Options{}).URL + "/v1/nodes"
	ids := func(ns ...int) (ids []string) {
		for _, n := range ns {
			ids = append(ids, uuid('a', n))
		}
		return ids
	}
	must.Eq(t, [][]string{ids(1, 2, 3, 4, 5)}, pages(t, url+"?x"))
	must.Eq(t, [][]string{ids(1, 2), ids(3, 4), ids(5)}, pages(t, url+"?per_page=2"))
	must.Eq(t, [][]string{ids(1, 2, 3, 4, 5)}, pages(t, url+"?per_page=5"), must.Sprint("a last page that is full has no next"))
	must.Eq(t, [][]string{ids(5, 4), ids(3, 2), ids(1)}, pages(t, url+"?per_page=2&reverse=true"))
	must.Eq(t, uuid('a', 2), request(t, "GET", url+"?per_page=1", "").header.Get("X-Nomad-NextToken"))
	must.Eq(t, [][]string{ids(2), ids(3)}, pages(t, url+"?per_page=1&filter="+escape(`Name matches "n[23]"`)))
	must.Eq(t, [][]string{ids(3)}, pages(t, url+"?prefix=a000000&filter="+escape(`Name == "n3"`)))

	// The first row of a page may be deleted before the page is read.
	token := request(t, "GET", url+"?per_page=2", "").header.Get("X-Nomad-NextToken")
	w.must(&shims.NodeDeregister{At: w.Now(), Nodes: []cluster.NodeID{cluster.NodeID(token)}})
	rest := decode[[]ided](t, request(t, "GET", url+"?next_token="+token, ""))
	must.Eq(t, uuid('a', 4), rest[0].ID)
}

func escape(text string) string { return url.QueryEscape(text) }

// A filter reads the full node, not only the fields of the list.
func TestFilter_nodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(4)
	w.drain(nodeID(2), cluster.DrainSpec{Deadline: time.Hour})
	w.must(&shims.NodeUpdateEligibility{At: w.Now(), Node: nodeID(3), Eligibility: cluster.NodeIneligible})
	url := w.serve(httpapi.Options{}).URL + "/v1/nodes?filter="
	for expression, want := range map[string][]string{
		`Status=="ready"`: {"n1", "n2", "n3", "n4"},
		`Drain == true`:   {"n2"},
		`Attributes["os.name"]=="debian" and Drain == true`:  {"n2"},
		`Attributes["os.name"]!="debian"`:                    {},
		`Attributes["no.such"]=="x"`:                         {},
		`"os.name" in Attributes`:                            {"n1", "n2", "n3", "n4"},
		`SchedulingEligibility == ineligible`:                {"n2", "n3"},
		`DrainStrategy.Deadline == 3600000000000`:            {"n2"},
		`Name matches "n[34]"`:                               {"n3", "n4"},
		`NodeResources.Cpu.CpuShares == 4000`:                {"n1", "n2", "n3", "n4"},
		`LastDrain.Status != "draining"`:                     {"n1", "n3", "n4"},
		`LastDrain.StartedAt matches "^[0-9]"`:               {"n2"},
		`DrainStrategy.StartedAt == ""`:                      {},
		`LastDrain.Status == "draining"`:                     {"n2"},
		`SchedulingEligibility == eligible or Drain == true`: {"n1", "n2", "n4"},
	} {
		a := request(t, "GET", url+escape(expression), "")
		must.Eq(t, 200, a.code, must.Sprint(expression, a.body))
		names := []string{}
		for _, stub := range decode[[]wire.NodeListStub](t, a) {
			names = append(names, stub.Name)
		}
		must.Eq(t, want, names, must.Sprint(expression))
	}
}

// A filter with an unknown field is refused, and the answer names the known ones. It once matched nothing where the
// object with the field was missing, or where the first half of the expression had decided.
func TestFilter_unknownField(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	url := w.serve(httpapi.Options{}).URL + "/v1/nodes?filter="
	for expression, want := range map[string]string{
		`Statsu == "ready"`:                      `the field "Statsu" is unknown; known are ID, `,
		`Status == "down" and Statsu == "ready"`: `the field "Statsu" is unknown; known are ID, `,
		`LastDrain.Outcome == "complete"`:        `the field "LastDrain.Outcome" is unknown; known are AccessorID, Meta, StartedAt, Status, UpdatedAt`,
		`not (NodeResources.Cpu.Shares == 1)`:    `the field "NodeResources.Cpu.Shares" is unknown; known are `,
		`any Event as e { e.Message == "x" }`:    `the field "Event" is unknown; known are ID, `,
	} {
		a := request(t, "GET", url+escape(expression), "")
		must.Eq(t, 400, a.code, must.Sprint(expression))
		must.StrContains(t, a.body, want)
	}
	for _, expression := range []string{`Meta.rak == "r1"`, `any Events as e { e.Message == "x" }`, `Status == "x" or LastDrain.StartedAt == ""`} {
		must.Eq(t, 200, request(t, "GET", url+escape(expression), "").code, must.Sprint(expression))
	}
}

// Jobs of every namespace, with ids that have slashes in them.
func TestPages_jobs(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	url := w.serve(httpapi.Options{}).URL
	for _, namespace := range []string{"b", "a", "a/b"} {
		for _, id := range []string{"x", "w/y", "z"} {
			body := fmt.Sprintf(`{"Job":{"ID":%q,"Namespace":%q,"TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]}}`, id, namespace)
			must.Eq(t, 200, request(t, "PUT", url+"/v1/jobs", body).code)
		}
	}
	want := []string{"w/y", "x", "z"}
	must.Eq(t, [][]string{{}}, asLists(pages(t, url+"/v1/jobs?x")), must.Sprint("none in the default namespace"))
	must.Eq(t, [][]string{want}, pages(t, url+"/v1/jobs?namespace=a/b"))
	must.Eq(t, [][]string{{"w/y"}}, pages(t, url+"/v1/jobs?namespace=b&prefix=w/"))
	must.Eq(t, slices.Concat(want, want, want), slices.Concat(pages(t, url+"/v1/jobs?namespace=*&per_page=2")...))
	reversed := slices.Concat(pages(t, url+"/v1/jobs?namespace=*&per_page=2&reverse")...)
	slices.Reverse(reversed)
	must.Eq(t, slices.Concat(want, want, want), reversed)
	must.Eq(t, [][]string{{"w/y"}, {"w/y"}, {"w/y"}}, pages(t, url+"/v1/jobs?namespace=*&per_page=1&filter="+escape(`ID == "w/y" and Type == service and Status == pending`)))

	job := decode[wire.Job](t, request(t, "GET", url+"/v1/job/w%2Fy?namespace=a%2Fb", ""))
	must.Eq(t, "a/b", *job.Namespace)
	names := decode[[]wire.Namespace](t, request(t, "GET", url+"/v1/namespaces", ""))
	must.Eq(t, []string{"a", "a/b", "b", "default"}, []string{names[0].Name, names[1].Name, names[2].Name, names[3].Name})
	must.Eq(t, 200, request(t, "DELETE", url+"/v1/job/w%2Fy?namespace=b", "").code)
	must.True(t, w.State().Job(cluster.JobKey{Namespace: "b", ID: "w/y"}).Stop)
	must.Eq(t, 501, request(t, "GET", url+"/v1/job/w/y?namespace=b", "").code)
}

func asLists(all [][]string) [][]string {
	for i := range all {
		if all[i] == nil {
			all[i] = []string{}
		}
	}
	return all
}

// Allocations and evaluations, narrowed in every way there is.
func TestPages_allocsAndEvals(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	web, sum := w.job("web", cluster.JobService, 2), w.job("sum", cluster.JobBatch, 2)
	w.place(1, web, nodeID(1))
	w.place(2, web, nodeID(2))
	w.place(3, sum, nodeID(1))
	w.report(3, cluster.ClientFailed)
	var failure string // of the evaluation that the report has called for
	for e := range w.State().EvalsByJob(sum.Key()) {
		if e.Open() {
			failure = string(e.ID)
		}
	}
	sorted := func(ids ...string) []string { return slices.Sorted(slices.Values(ids)) }
	url := w.serve(httpapi.Options{}).URL
	for path, want := range map[string][]string{
		"/v1/allocations?x":                                                              {uuid('b', 1), uuid('b', 2), uuid('b', 3)},
		"/v1/allocations?per_page=2":                                                     {uuid('b', 1), uuid('b', 2), uuid('b', 3)},
		"/v1/allocations?reverse":                                                        {uuid('b', 3), uuid('b', 2), uuid('b', 1)},
		"/v1/allocations?namespace=x":                                                    nil,
		"/v1/allocations?namespace=*":                                                    {uuid('b', 1), uuid('b', 2), uuid('b', 3)},
		"/v1/allocations?prefix=b0001":                                                   nil,
		"/v1/allocations?prefix=" + uuid('b', 2):                                         {uuid('b', 2)},
		"/v1/allocations?filter=" + escape("ClientStatus == failed"):                     {uuid('b', 3)},
		"/v1/allocations?filter=" + escape("Job.Type == service"):                        {uuid('b', 1), uuid('b', 2)},
		"/v1/node/" + uuid('a', 1) + "/allocations?x":                                    {uuid('b', 1), uuid('b', 3)},
		"/v1/node/" + uuid('a', 1) + "/allocations?filter=" + escape("JobID==web"):       {uuid('b', 1)},
		"/v1/job/web/allocations?x":                                                      {uuid('b', 1), uuid('b', 2)},
		"/v1/job/web/allocations?namespace=x":                                            nil,
		"/v1/evaluation/" + uuid('c', 2) + "/allocations?x":                              {uuid('b', 2)},
		"/v1/evaluation/" + uuid('c', 9) + "/allocations?x":                              nil, // Bug: it was 404.
		"/v1/evaluations?x":                                                              sorted(uuid('c', 1), uuid('c', 2), uuid('c', 3), failure),
		"/v1/evaluations?job=sum":                                                        sorted(uuid('c', 3), failure),
		"/v1/evaluations?status=pending":                                                 {failure},
		"/v1/evaluations?status=blocked":                                                 nil,
		"/v1/evaluations?per_page=1&filter=" + escape("Status==complete and JobID==web"): {uuid('c', 1), uuid('c', 2)},
		"/v1/job/web/evaluations?x":                                                      {uuid('c', 1), uuid('c', 2)},
	} {
		must.Eq(t, want, slices.Concat(pages(t, url+path)...), must.Sprint(path))
	}
	a := decode[wire.Allocation](t, request(t, "GET", url+"/v1/allocation/"+uuid('b', 3), ""))
	must.Eq(t, "failed", a.ClientStatus)
	must.Eq(t, "batch", *a.Job.Type)
	e := decode[wire.Evaluation](t, request(t, "GET", url+"/v1/evaluation/"+uuid('c', 3), ""))
	must.Eq(t, "sum", e.JobID)
}

// With ?all the list holds allocations of an earlier job of the same name.
func TestJobAllocations_all(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	old := w.job("web", cluster.JobService, 1)
	w.place(1, old, nodeID(1))
	url := w.serve(httpapi.Options{}).URL + "/v1/job/web/allocations"
	must.Len(t, 1, decode[[]ided](t, request(t, "GET", url, "")))
	w.job("web", cluster.JobService, 2)
	must.Len(t, 1, decode[[]ided](t, request(t, "GET", url, "")), must.Sprint("another version is the same job"))
	must.Len(t, 1, decode[[]ided](t, request(t, "GET", url+"?all=true", "")))
}

func TestPretty(t *testing.T) {
	t.Parallel()
	odd := newFixture(t).serve(httpapi.Options{Region: "<R&D>"}).URL
	must.Eq(t, `["<R&D>"]`, request(t, "GET", odd+"/v1/regions", "").body, must.Sprint("nothing is escaped for HTML"))
	url := newFixture(t).serve(httpapi.Options{}).URL
	must.Eq(t, `["global"]`, request(t, "GET", url+"/v1/regions", "").body)
	must.Eq(t, `["global"]`, request(t, "GET", url+"/v1/regions?pretty=0", "").body)
	must.Eq(t, "[\n    \"global\"\n]\n", request(t, "GET", url+"/v1/regions?pretty", "").body)
	must.Eq(t, "[\n    \"global\"\n]\n", request(t, "GET", url+"/v1/regions?pretty=false", "").body)
}

// A search returns at most twenty ids of each kind, for the completion of shells.
func TestSearch(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(25)
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	url := w.serve(httpapi.Options{}).URL + "/v1/search"
	all := decode[wire.SearchResponse](t, request(t, "POST", url, `{"Prefix":""}`))
	must.Len(t, 20, all.Matches["nodes"])
	must.Eq(t, map[string]bool{"nodes": true, "jobs": false, "allocs": false, "evals": false, "plugins": false, "volumes": false}, all.Truncations)
	must.Eq(t, []string{"web"}, all.Matches["jobs"])
	must.Eq(t, []string{uuid('b', 1)}, all.Matches["allocs"])
	must.Eq(t, []string{uuid('c', 1)}, all.Matches["evals"])

	a := request(t, "PUT", url+"?stale", `{"Prefix":"a0000019","Context":"nodes"}`)
	one := decode[wire.SearchResponse](t, a)
	must.Eq(t, map[string][]string{"nodes": {uuid('a', 25)}}, one.Matches)
	must.Eq(t, one.Index, a.index(t))
	other := decode[wire.SearchResponse](t, request(t, "POST", url+"?namespace=other", `{"Prefix":"we","Context":"jobs"}`))
	must.Eq(t, map[string][]string{"jobs": {}}, other.Matches)
}

// A job's status and counts follow its allocations and evaluations.
func TestJobSummary(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	client := w.client()
	status := func() string {
		j := result.Read(client.Jobs().Info("web", nil)).OK(t)
		return *j.Status
	}
	web := w.job("web", cluster.JobService, 3)
	must.Eq(t, "pending", status(), must.Sprint("it was not evaluated"))
	w.place(1, web, nodeID(1))
	w.place(2, web, nodeID(1))
	w.report(2, cluster.ClientFailed)
	must.Eq(t, "running", status())
	e := w.eval(web, cluster.TriggerQueuedAllocs, "")
	e.Status, e.Queued = cluster.EvalBlocked, map[string]int{"web": 2}
	w.must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{e}})
	summary, meta, err := client.Jobs().Summary("web", nil)
	must.NoError(t, err)
	must.Eq(t, map[string]api.TaskGroupSummary{"web": {Queued: 2, Failed: 1, Running: 1}}, summary.Summary)
	must.Eq(t, w.State().Index(), meta.LastIndex)
	w.report(1, cluster.ClientComplete)
	must.Eq(t, "pending", status(), must.Sprint("evaluations are open"))
	for open := range w.State().WorkView().OpenEvals(web.Key()) {
		done := open.Copy()
		done.Status = cluster.EvalComplete
		w.must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{done}})
	}
	must.Eq(t, "dead", status())
	w.job("logs", cluster.JobSystem, 1)
	logs := result.Read(client.Jobs().Info("logs", nil)).OK(t)
	must.Eq(t, "running", *logs.Status, must.Sprint("it waits for nodes"))
}
