package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// withDeepJob is a cluster that an older release has left: allocation 1 is of a job that no client can read,
// allocation 2 of another one.
func withDeepJob(t testing.TB, levels int) *fixture {
	w := newFixture(t).nodes(1)
	w.place(1, deepJob(w, "deep", levels), nodeID(1))
	w.place(2, w.job("web", cluster.JobService, 1), nodeID(1))
	return w
}

// A state with a job that registrations refuse restores, persists and applies, and its client reads the
// other allocations. Before, the client refused the whole answer.
func TestDeepJob_node(t *testing.T) {
	t.Parallel()
	for _, levels := range []int{9_993, 9_994, 10_000} {
		w := withDeepJob(t, levels)
		w.restore()
		must.Len(t, 6*levels+1, w.State().Job(cluster.JobKey{Namespace: "default", ID: "deep"}).TaskGroups[0].Tasks[0].Config)
		w.place(3, deepJob(w, "deep", levels), nodeID(1)) // an entry of the log
		w.restore()
		h := w.handler(w.backend(), httpapi.Options{})

		changes := changesOf(t, h)
		must.Len(t, 1, changes.Allocs)
		must.Eq(t, allocID(2), changes.Allocs[0].ID)
		must.Eq(t, []cluster.AllocID{allocID(1), allocID(2), allocID(3)}, changes.Live)
		must.Len(t, 2, changes.Unreadable)
		must.Eq(t, allocID(1), changes.Unreadable[0].Alloc.ID)
		must.StrHasPrefix(t, `task "main": the config is nested `, changes.Unreadable[0].Reason)
		must.Eq(t, "deep", changes.Unreadable[0].Alloc.JobID)

		// A client of an older release decodes the whole answer. It reports an allocation as failed if the job
		// does not contain the group.
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", changesPath, nil))
		var whole wire.AllocChanges
		must.NoError(t, json.Unmarshal(rec.Body.Bytes(), &whole))
		old := result.Of(whole.Allocs[0].Allocation()).OK(t)
		must.NotNil(t, old.Job)
		must.Nil(t, old.Job.Group("web"))
	}
}

// A group without a deep config stays readable, and a job that clients can read is not changed.
func TestDeepJob_otherGroups(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	j := deepJob(w, "deep", 9_900)
	w.place(1, j, nodeID(1))
	deeper := j.Copy()
	deeper.TaskGroups = append(deeper.TaskGroups, &cluster.TaskGroup{Name: "other", Count: 1, Tasks: []*cluster.Task{
		{Name: "main", Driver: "mock", Config: json.RawMessage(nested(9_901))},
	}})
	w.place(2, w.Job(deeper), nodeID(1)) // in the first group
	changes := changesOf(t, w.handler(w.backend(), httpapi.Options{}))
	must.SliceEmpty(t, changes.Unreadable)
	must.Len(t, 2, changes.Allocs)
	for _, a := range changes.Allocs {
		must.Eq(t, nested(9_900), string(a.Job.Group("web").Tasks[0].Config))
	}
}

// The reference's client and the commands read everything else beside the deep job. Before, one such job
// stopped the lists of a node's allocations and the event stream.
func TestDeepJob_reads(t *testing.T) {
	t.Parallel()
	w := withDeepJob(t, 10_000)
	c := w.client()
	const left = "the config is nested 10000 levels deep, and clients read at most 9900"
	check := func(j *api.Job) {
		t.Helper()
		must.Eq(t, map[string]any{"left_out_of_the_answer": left}, j.TaskGroups[0].Tasks[0].Config)
	}

	allocs := result.Read(c.Nodes().Allocations(uuid('a', 1), nil)).OK(t)
	must.Len(t, 2, allocs)
	check(allocs[1].Job) // the client sorts the newest first
	a := result.Read(c.Allocations().Info(uuid('b', 1), nil)).OK(t)
	check(a.Job)
	job := result.Read(c.Jobs().Info("deep", nil)).OK(t)
	check(job)
	all, _, _, err := c.Jobs().Versions("deep", false, nil)
	must.NoError(t, err)
	check(all[0])
	jobs := result.Read(c.Jobs().ListOptions(nil, &api.QueryOptions{Filter: `ID == "deep"`})).OK(t)
	must.Len(t, 1, jobs)
	stubs := result.Read(c.Allocations().List(&api.QueryOptions{Filter: `JobID == "deep"`})).OK(t)
	must.Len(t, 1, stubs)
	events := w.subscribe(map[api.Topic][]string{api.TopicAll: {"*"}}, 1)
	for found := 0; found < 2; {
		got := <-events
		must.NoError(t, got.Err)
		for _, e := range got.Events {
			if e.Topic == api.TopicJob && e.Key == "deep" {
				j := result.Of(e.Job()).OK(t)
				check(j)
				found++
			}
			if e.Topic == api.TopicAllocation && e.Key == uuid('b', 1) {
				found++
			}
		}
	}

	// The job of an answer is not the job: to register it again would lose the config.
	_, _, err = c.Jobs().Register(job, nil)
	must.ErrorContains(t, err, `group "web", task "main": config comes from an answer that leaves out the real one: give the real one`)
	job.TaskGroups[0].Tasks[0].Config = map[string]any{"a": 1}
	plan := result.Read(c.Jobs().Plan(job, true, nil)).OK(t)
	must.Eq(t, "Edited", plan.Diff.Type)
	result.Read(c.Jobs().Register(job, nil)).OK(t)
}

// tryPlace places the n-th allocation on the first node, and reports whether the FSM accepts the plan.
func tryPlace(w *fixture, n int, j *cluster.Job) bool {
	eval := clustertest.Eval(j, cluster.EvalID(uuid('c', n)), w.Now())
	w.must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{eval.Copy()}})
	eval.Status = cluster.EvalComplete
	a := clustertest.Alloc(j, allocID(n), nodeID(1), w.Now())
	a.EvalID = eval.ID
	applied, is := w.Apply(&shims.ApplyPlan{Plan: cluster.Plan{At: w.Now(), Eval: eval, SnapshotIndex: w.Index, Places: []*cluster.Allocation{a}}}).(shims.PlanApplied)
	return is && len(applied.Refused)+len(applied.Dropped) == 0
}

// A registration that is accepted gives allocations that their client can read. No registration hides the
// other allocations.
func FuzzRegistrationToClient(f *testing.F) {
	for _, body := range largest() {
		if len(body) < 100_000 {
			f.Add([]byte(body))
		}
	}
	for _, levels := range []int{64, 65, 9_993, 9_994, 10_001} {
		f.Add([]byte(jobBody("", "", `"Config":`+nested(levels)+`,`)))
	}
	for _, samples := range [][2]string{
		{``, `"Config":{"a":1e999,"a":[{}],"\ud800":"\u0000"},"Env":{"` + "\xff" + `":"v"},`},
		{`"Meta":{"a":"` + "\xff" + `"},"Constraints":[{"LTarget":"${node.class}","Operand":"set_contains_any","RTarget":"a,,b"}],`, `"Config":{"left_out_of_the_answer":"x"},`},
		{`"Volumes":{"v":{"Type":"csi","Source":"s","AccessMode":"single-node-writer","AttachmentMode":"file-system","MountOptions":{"MountFlags":["ro"]}}},`,
			`"VolumeMounts":[{"Volume":"v","Destination":"/d"}],"Resources":{"Devices":[{"Name":"gpu","Count":2,"Constraints":[{"LTarget":"${device.attr.memory}","Operand":">=","RTarget":"2 GiB"}],"Affinities":[{"LTarget":"${device.model}","RTarget":"x","Weight":-50}]}]},`},
		{`"RestartPolicy":{"Attempts":0,"Mode":"fail"},"EphemeralDisk":{"Sticky":true},"Disconnect":{"LostAfter":5},`,
			`"LogConfig":{"MaxFiles":1},"KillSignal":"SIGINT","Lifecycle":null,"Leader":true,"CSIPluginConfig":{"ID":"p","Type":"node","MountDir":"/csi"},`},
	} {
		f.Add([]byte(jobBody("", samples[0], samples[1])))
	}
	var current atomic.Pointer[http.Handler]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*current.Load()).ServeHTTP(w, r) }))
	defer s.Close()
	c := result.Of(client.New(client.Config{Address: s.URL})).OK(f)
	defer c.Close()
	f.Fuzz(func(t *testing.T, body []byte) {
		w := withDeepJob(t, 9_994)
		h := http.Handler(w.handler(w.backend(), httpapi.Options{}))
		current.Store(&h)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("PUT", "/v1/jobs", strings.NewReader(string(body))))
		if rec.Code != http.StatusOK {
			return // nothing has changed: see FuzzBody
		}
		var job *cluster.Job
		for j := range w.State().Jobs() {
			if j.JobModifyIndex == w.State().Index() {
				job = j
			}
		}
		must.NotNil(t, job)
		entry := result.Of(shims.Encode(&shims.JobRegister{Job: job})).OK(t)
		must.LessEq(t, shims.MaxRequestEntry, len(entry))
		placed := tryPlace(w, 3, job)
		w.restore()
		changes := result.Of(c.NodeSide(nodeID(1)).Changes(t.Context(), client.Since{}, 0)).OK(t)
		read := map[cluster.AllocID]*cluster.Allocation{}
		for _, a := range changes.Allocs {
			read[a.ID] = a
		}
		must.NotNil(t, read[allocID(2)])
		must.Len(t, 1, changes.Unreadable)
		must.Eq(t, allocID(1), changes.Unreadable[0].Alloc.ID)
		if placed {
			must.NotNil(t, read[allocID(3)])
			must.Eq(t, w.State().Alloc(allocID(3)).Job, read[allocID(3)].Job)
		}
	})
}
