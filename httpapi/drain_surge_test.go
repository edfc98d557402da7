package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Each answer with the strategy of a drain has its max_surge. The report has what holds for each group.
func TestDrain_maxSurge(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	service := func(id cluster.JobID, edit func(g *cluster.TaskGroup)) *cluster.Job {
		j := clustertest.Job(id, cluster.JobService, 1)
		j.Datacenters = []string{"dc1"}
		edit(j.TaskGroups[0])
		return w.Job(j)
	}
	w.place(1, service("web", func(*cluster.TaskGroup) {}), nodeID(1))
	w.place(2, service("api", func(g *cluster.TaskGroup) { g.Migrate.MaxSurge = 3 }), nodeID(1))
	w.place(3, service("db", func(g *cluster.TaskGroup) { g.EphemeralDisk.Migrate = true }), nodeID(1))
	w.place(4, w.job("sum", cluster.JobBatch, 1), nodeID(1))
	url := w.serve(httpapi.Options{}).URL
	drain := url + "/v1/node/" + uuid('a', 1) + "/drain"
	report := func() *wire.NodeDrain {
		r := decode[wire.NodeDrain](t, request(t, "GET", drain, ""))
		return &r
	}
	surges := func() (all map[string]string) {
		all = map[string]string{}
		for _, a := range report().Allocs {
			all[a.JobID] = fmt.Sprint(a.MaxSurge, a.StopsFirst)
		}
		return all
	}
	must.Eq(t, 200, request(t, "PUT", drain, `{"DrainSpec":{"Deadline":3600000000000,"MaxSurge":2}}`).code)
	must.Eq(t, map[string]string{"web": "2", "api": "3", "db": "0its ephemeral disk migrates", "sum": "0"}, surges())
	id := report().Drain.ID
	must.Eq(t, 2, w.State().Node(nodeID(1)).Drain.Strategy.MaxSurge)
	must.Eq(t, 2, report().Drain.Strategy.MaxSurge)
	must.Eq(t, 2, decode[wire.Node](t, request(t, "GET", url+"/v1/node/"+uuid('a', 1), "")).DrainStrategy.MaxSurge)
	must.Eq(t, 2, decode[wire.DrainList](t, request(t, "GET", url+"/v1/drains", "")).Active[0].Drain.Strategy.MaxSurge)

	must.Eq(t, 200, request(t, "PUT", drain, `{"DrainSpec":{"Deadline":0}}`).code)
	must.Zero(t, report().Drain.Strategy.MaxSurge)
	must.Eq(t, map[string]string{"web": "0", "api": "3", "db": "0", "sum": "0"}, surges())
	must.Eq(t, 200, request(t, "PUT", drain, `{"DrainSpec":{"Deadline":0,"MaxSurge":5}}`).code)
	must.Eq(t, 200, request(t, "PUT", drain, `{"MarkEligible":true}`).code)
	must.Eq(t, 5, report().Drain.Strategy.MaxSurge)
	story := decode[wire.DrainStory](t, request(t, "GET", url+"/v1/drain/"+id, ""))
	must.Eq(t, 5, story.Drain.Strategy.MaxSurge)
	must.Eq(t, []int{2, 0, 5}, []int{story.Journal.Events[0].Strategy.MaxSurge, story.Journal.Events[1].Strategy.MaxSurge, story.Journal.Events[2].Strategy.MaxSurge})
	must.StrContains(t, story.Journal.Events[2].Text, "changed the drain: no deadline, max_surge 5")
}

// A max_surge outside its range is refused, and a plan with any before the cluster version that has it.
func TestDrain_maxSurgeRefused(t *testing.T) {
	t.Parallel()
	w, old := newFixture(t).nodes(1), newOldFixture(t).nodes(1)
	url, oldURL := w.serve(httpapi.Options{}).URL, old.serve(httpapi.Options{}).URL
	drain, body := "/v1/node/"+uuid('a', 1)+"/drain", `{"Nodes":["`+uuid('a', 1)+`"],"DrainSpec":{"MaxSurge":%d}}`
	for _, path := range []string{drain, planPath} {
		for _, n := range []int{-1, 1_000_001} {
			a := request(t, "PUT", url+path, fmt.Sprintf(body, n))
			must.Eq(t, fmt.Sprintf("400 MaxSurge must be from 0 to 1000000 but found %d", n), fmt.Sprint(a.code, " ", a.body))
		}
		must.Eq(t, 200, request(t, "PUT", url+path, fmt.Sprintf(body, 1_000_000)).code)
	}
	a := request(t, "PUT", oldURL+planPath, fmt.Sprintf(body, 1))
	must.Eq(t, "503 the cluster has version 1 until all its servers are upgraded, and MaxSurge of a drain needs version 9: upgrade the servers, then request the plan",
		fmt.Sprint(a.code, " ", a.body))
}

// The plan of a drain has its max_surge, and names the groups that stop first.
func TestDrainPlan_maxSurge(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	db := clustertest.Job("db", cluster.JobService, 1)
	db.Datacenters, db.TaskGroups[0].EphemeralDisk = []string{"dc1"}, cluster.EphemeralDisk{Migrate: true}
	w.place(1, w.Job(db), nodeID(1))
	base := w.serve(httpapi.Options{}).URL
	for surge, want := range map[int]string{0: "", 1: "its ephemeral disk migrates"} {
		a := request(t, "PUT", base+planPath, fmt.Sprintf(`{"Nodes":[%q],"DrainSpec":{"MaxSurge":%d}}`, nodeID(1), surge))
		must.Eq(t, 200, a.code, must.Sprint(a.body))
		var plan struct {
			Sentence string
			Groups   []struct{ StopsFirst string }
		}
		must.NoError(t, json.Unmarshal([]byte(a.body), &plan))
		must.Eq(t, want, plan.Groups[0].StopsFirst)
		if surge > 0 {
			must.StrContains(t, plan.Sentence, "; db stops before its replacement starts; ")
		}
	}
}

// An allocation has the request of a drain for its replacement.
func TestAllocation_surge(t *testing.T) {
	t.Parallel()
	w := newFixture(t).atNoon().nodes(2)
	web := w.job("web", cluster.JobService, 1)
	w.place(1, web, nodeID(1))
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: time.Hour, MaxSurge: 1})
	a := w.State().Alloc(allocID(1))
	mark := clustertest.Mark(w.State().Node(nodeID(1)), a, cluster.MarkPaced)
	mark.Surge = true
	w.must(&shims.AllocUpdateDesiredTransition{Marks: rules.Marks{
		At: w.Now(), Marks: []rules.Mark{mark}, Evals: []*cluster.Evaluation{w.eval(web, cluster.TriggerNodeDrain, "")},
	}})
	url := w.serve(httpapi.Options{}).URL
	d := decode[wire.Allocation](t, request(t, "GET", url+"/v1/allocation/"+uuid('b', 1), "")).DesiredTransition
	must.NotNil(t, d)
	must.Eq(t, &wire.DesiredTransition{SurgeDrainID: "d1", SurgeAt: wire.NewTime(noon)}, d)
	list := decode[[]wire.AllocationListStub](t, request(t, "GET", url+"/v1/allocations", ""))
	must.Eq(t, d, list[0].DesiredTransition)
	must.False(t, list[0].Standby)
}
