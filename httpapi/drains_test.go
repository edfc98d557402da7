package httpapi_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

var rewrite = flag.Bool("rewrite", false, "write down what answers come to; read the diff")

// golden compares an answer with a file.
func golden(t *testing.T, name string, a answer) {
	t.Helper()
	must.Eq(t, 200, a.code, must.Sprint(a.body))
	file := filepath.Join("testdata", "golden", name)
	if *rewrite {
		must.NoError(t, os.WriteFile(file, []byte(a.body), 0o644))
	}
	want := result.Of(os.ReadFile(file)).OK(t)
	must.Eq(t, string(want), a.body)
}

// The drain of a node from its start to its record, as an operator's tool reads it.
func TestDrain_golden(t *testing.T) {
	t.Parallel()
	w := newFixture(t).atNoon().nodes(3)
	url := w.serve(httpapi.Options{}).URL
	web, sum := w.job("web", cluster.JobService, 2), w.job("sum", cluster.JobBatch, 1)
	w.place(1, web, nodeID(1))
	w.place(2, web, nodeID(2))
	w.place(3, sum, nodeID(1))
	drain := "/v1/node/" + uuid('a', 1) + "/drain"

	golden(t, "drain-none.json", request(t, "GET", url+drain+"?pretty", ""))
	golden(t, "drain-start.json", request(t, "PUT", url+drain+"?pretty&idempotency_token=monday", `{"DrainSpec":{"Deadline":3600000000000},"MarkEligible":true,"Meta":{"message":"kernel"}}`))
	golden(t, "drain-repeated.json", request(t, "PUT", url+drain+"?pretty&idempotency_token=monday", `{"DrainSpec":{"Deadline":3600000000000}}`))
	w.mark(1, cluster.MarkPaced)
	golden(t, "drain-running.json", request(t, "GET", url+drain+"?pretty", ""))
	golden(t, "drain-node.json", request(t, "GET", url+"/v1/node/"+uuid('a', 1)+"?pretty", ""))
	golden(t, "drain-allocations.json", request(t, "GET", url+"/v1/node/"+uuid('a', 1)+"/allocations?pretty", ""))
	golden(t, "drains-running.json", request(t, "GET", url+"/v1/drains?pretty", ""))
	golden(t, "drain-disable.json", request(t, "PUT", url+drain+"?pretty", `{"MarkEligible":true}`))
	golden(t, "drain-cancelled.json", request(t, "GET", url+drain+"?pretty", ""))
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: -1})
	w.must(&shims.NodeDeregister{At: w.Now(), Nodes: []cluster.NodeID{nodeID(1)}})
	golden(t, "drain-of-a-node-that-is-gone.json", request(t, "GET", url+drain+"?pretty", ""))
	golden(t, "drains-ended.json", request(t, "GET", url+"/v1/drains?pretty", ""))
	golden(t, "jobs.json", request(t, "GET", url+"/v1/jobs?pretty", ""))
	golden(t, "job.json", request(t, "GET", url+"/v1/job/web?pretty", ""))
	golden(t, "allocations.json", request(t, "GET", url+"/v1/allocations?pretty", ""))
	golden(t, "evaluations.json", request(t, "GET", url+"/v1/evaluations?pretty", ""))
	golden(t, "agent.json", request(t, "GET", url+"/v1/agent/self?pretty", ""))
	golden(t, "members.json", request(t, "GET", url+"/v1/agent/members?pretty", ""))
	golden(t, "raft.json", request(t, "GET", url+"/v1/operator/raft/configuration?pretty", ""))
}

// The answer to a cancelled drain lists the allocations that still stop.
func TestDrain_disabledTooLate(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	web := w.job("web", cluster.JobService, 2)
	w.place(1, web, nodeID(1))
	w.place(2, web, nodeID(1))
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: -1})
	w.mark(1, cluster.MarkForced)
	w.mark(2, cluster.MarkForced)
	w.stop(1)
	done := decode[wire.DrainResponse](t, request(t, "PUT", w.serve(httpapi.Options{}).URL+"/v1/node/"+uuid('a', 1)+"/drain", `{}`))
	must.Eq(t, 1, done.Withdrawn)
	must.Eq(t, []string{uuid('b', 1)}, done.StillStopping)
	must.Eq(t, []wire.MovedAllocs{{Namespace: "default", JobID: "web", Allocs: 1}}, done.Moved)
	must.Eq(t, "d1", done.DrainID)
}

// A repeated request gets the answer of the first: a monitor that starts there reads what happened
// since, and does not wait.
func TestDrain_repeated(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	url := w.serve(httpapi.Options{}).URL + "/v1/node/" + uuid('a', 1)
	const body, key = `{"DrainSpec":{}}`, "/drain?idempotency_token=k"
	first := request(t, "PUT", url+key, body)
	again := request(t, "PUT", url+key, body)
	must.Eq(t, first.index(t), again.index(t))
	w.end(nodeID(1))
	late := request(t, "PUT", url+key, body)
	must.Eq(t, first.index(t), late.index(t))
	must.True(t, decode[wire.DrainResponse](t, late).Repeated)
	must.False(t, w.State().Node(nodeID(1)).Draining())
	must.Greater(t, late.index(t), w.State().Node(nodeID(1)).ModifyIndex)
}

// The body's NodeID is ignored.
func TestNode_thePathWins(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	url := w.serve(httpapi.Options{}).URL + "/v1/node/" + uuid('a', 1)
	must.Eq(t, 200, request(t, "PUT", url+"/eligibility", `{"NodeID":"`+uuid('a', 2)+`","Eligibility":"ineligible"}`).code)
	must.Eq(t, 200, request(t, "POST", url+"/drain", `{"NodeID":"`+uuid('a', 2)+`","DrainSpec":{}}`).code)
	must.Eq(t, cluster.NodeEligible, w.State().Node(nodeID(2)).SchedulingEligibility)
	must.False(t, w.State().Node(nodeID(2)).Draining())
	must.True(t, w.State().Node(nodeID(1)).Draining())
}

// A request for the present eligibility needs no entry, and its index is zero.
func TestEligibility_unchanged(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	before := w.State().Index()
	got := request(t, "PUT", w.serve(httpapi.Options{}).URL+"/v1/node/"+uuid('a', 1)+"/eligibility", `{"Eligibility":"eligible"}`)
	must.Eq(t, `{"EvalCreateIndex":0,"EvalIDs":null,"Index":0,"NodeModifyIndex":0}`, got.body)
	must.Eq(t, 0, got.index(t))
	must.Eq(t, before, w.State().Index())
}

// Pages hold running drains and records of ended ones.
func TestDrains_pages(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(5)
	for n := 1; n <= 5; n++ {
		w.drain(nodeID(n), cluster.DrainSpec{})
		if n > 2 {
			w.end(nodeID(n))
		}
	}
	url := w.serve(httpapi.Options{}).URL + "/v1/drains?x"
	walk := func(query string) (got []string) {
		for token, first := "", true; first || token != ""; first = false {
			a := request(t, "GET", url+query+"&next_token="+token, "")
			list := decode[wire.DrainList](t, a)
			for _, d := range list.Active {
				must.NotNil(t, d.Progress)
				got = append(got, d.Drain.ID)
			}
			for _, d := range list.Recent {
				got = append(got, d.ID)
			}
			token = a.header.Get("X-Nomad-NextToken")
		}
		return got
	}
	all := []string{"d1", "d2", "d5", "d4", "d3"}
	must.Eq(t, all, walk(""))
	for size := 1; size <= 5; size++ {
		must.Eq(t, all, walk(fmt.Sprint("&per_page=", size)))
	}
	must.Eq(t, []string{"d3", "d4", "d5", "d2", "d1"}, walk("&per_page=1&reverse"))
	must.Eq(t, []string{"d5", "d4", "d3"}, walk("&filter="+escape("Outcome == complete")))
	must.Eq(t, []string{"d2", "d5"}, walk("&per_page=1&filter="+escape(`NodeName == "n2" or NodeName == "n5"`)))
	must.Eq(t, []string{"d4", "d3"}, walk("&next_token=end."+fmt.Sprint(w.State().DrainRecord("d4").EndIndex)+".d4"))
	must.Eq(t, all, walk("&next_token=nonsense"))
}

// A server that does not lead answers stale reads from its state.
func TestDrain_stale(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	w.drain(nodeID(1), cluster.DrainSpec{})
	w.follows = true
	url := w.serve(httpapi.Options{}).URL
	one := decode[wire.NodeDrain](t, request(t, "GET", url+"/v1/node/"+uuid('a', 1)+"/drain?stale", ""))
	must.Eq(t, wire.StateDraining, one.State)
	must.Nil(t, one.Progress)
	must.SliceEmpty(t, one.Allocs)
	list := decode[wire.DrainList](t, request(t, "GET", url+"/v1/drains?stale", ""))
	must.Len(t, 1, list.Active)
	must.Nil(t, list.Active[0].Progress)
}

// lateExplainer explains a drain that ended after the state was read.
type lateExplainer struct {
	explainer
	end func()
}

func (l *lateExplainer) Explain(id cluster.NodeID) (rules.Report, error) {
	if l.end != nil {
		l.end()
		l.end = nil
	}
	return l.explainer.Explain(id)
}

// A drain that ends while it is explained is reported as ended.
func TestDrain_endsMeanwhile(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	index := w.drain(nodeID(1), cluster.DrainSpec{})
	b := w.backend()
	b.Drains = &lateExplainer{explainer: explainer{w}, end: func() { w.end(nodeID(1)) }}
	got := request(t, "GET", w.serveAs(b, httpapi.Options{}).URL+at("/v1/node/"+uuid('a', 1)+"/drain", index-1), "")
	one := decode[wire.NodeDrain](t, got)
	must.Eq(t, wire.StateEnded, one.State)
	must.Eq(t, "complete", one.Drain.Outcome)
	must.Eq(t, w.State().Index(), got.index(t))
}

// Every field of a report goes over the wire.
func TestDrainAllocs_haveEveryField(t *testing.T) {
	t.Parallel()
	report := rules.AllocExplanation{
		Alloc: "a1", Group: cluster.GroupKey{Job: cluster.JobKey{Namespace: "n", ID: "j"}, Name: "g"}, Stage: cluster.StagePlugins,
		Reason: rules.ReasonWaitingForRoom, Since: rules.Since{At: noon, Observed: true}, Detail: "why", Due: noon.Add(time.Hour),
		Eval: &cluster.Evaluation{ID: "e1", Status: cluster.EvalBlocked}, Outstanding: []cluster.AllocID{"a2"},
		Culprit: &rules.Culprit{Alloc: "a2", Node: "n2", NodeName: "two", State: rules.CulpritUnhealthy, Since: noon, More: 1}, Missing: 2,
		Attempts: 3, LastError: errors.New("no quorum"), Healthy: 9, Count: 10, MaxParallel: 1,
	}
	b := result.Of(json.Marshal(wire.NewDrainAllocs("n1", []rules.AllocExplanation{report})[0])).OK(t)
	must.Eq(t, `{"ID":"a1","Namespace":"n","JobID":"j","TaskGroup":"g","Stage":"storage plugins","Reason":"waiting for room","Detail":"why",`+
		`"Since":"2026-11-20T12:00:00.123456789Z","SinceSeen":true,"Due":"2026-11-20T13:00:00.123456789Z","EvalID":"e1","EvalStatus":"blocked",`+
		`"Cause":"alloc a2 on two is unhealthy since 2026-11-20T12:00:00Z, and 1 more; the group lacks 2 allocations",`+
		`"Culprit":{"AllocID":"a2","NodeID":"n2","NodeName":"two","State":"is unhealthy","Since":"2026-11-20T12:00:00.123456789Z","More":1},"Missing":2,`+
		`"See":"nodedrain alloc status a2","Outstanding":["a2"],"Attempts":3,"LastError":"no quorum","Healthy":9,"Count":10,"MaxParallel":1}`, string(b))
}

// Each reason names the command that shows more about its cause.
func TestDrainAllocs_see(t *testing.T) {
	t.Parallel()
	group := cluster.GroupKey{Job: cluster.JobKey{Namespace: "ops", ID: "web"}, Name: "g"}
	held := &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{Namespace: "default", Volume: "data"}}}
	for want, r := range map[string]rules.AllocExplanation{
		"":                          {Reason: rules.ReasonWritePending},
		"nodedrain server members":  {Reason: rules.ReasonWritePending, Attempts: 1},
		"nodedrain alloc status a1": {Reason: rules.ReasonStopping},
		"nodedrain alloc status a2": {Reason: rules.ReasonBelowBudget, Culprit: &rules.Culprit{Alloc: "a2"}, Missing: 1},
		"nodedrain job status -namespace ops web": {Reason: rules.ReasonBelowBudget, Missing: 1},
		"nodedrain node status n1":                {Reason: rules.ReasonDisconnected},
		"nodedrain volume status data":            {Reason: rules.ReasonHeldForVolumes, Held: held},
		"nodedrain eval status e1":                {Reason: rules.ReasonWaitingForReplacement, Eval: &cluster.Evaluation{ID: "e1"}},
	} {
		r.Alloc, r.Group = "a1", group
		must.Eq(t, want, wire.NewDrainAllocs("n1", []rules.AllocExplanation{r})[0].See)
	}
}

// The progress of a drain has what was placed on its node since it began, and why the leader cannot write.
// The answer left both out.
func TestDrainProgress_placedAndStalled(t *testing.T) {
	t.Parallel()
	status := rules.Status{
		Drain: &cluster.Drain{NodeID: "n1"}, Placed: 3, Stalled: "no answer",
		NewestPlaced: &cluster.Allocation{ID: "a9", Namespace: "default", JobID: "web", TaskGroup: "g"},
	}
	p := wire.NewDrainProgress(&status)
	must.Eq(t, 3, p.Placed)
	must.Eq(t, "no answer", p.Stalled)
	must.Eq(t, wire.DrainPlacement{AllocID: "a9", Namespace: "default", JobID: "web", TaskGroup: "g"}, *p.NewestPlaced)
}
