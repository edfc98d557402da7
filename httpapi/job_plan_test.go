package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// newJob returns a service job as the reference's client sends it. Each allocation needs mhz.
func newJob(count, mhz int) *api.Job {
	task := api.NewTask("main", "docker").Require(&api.Resources{CPU: &mhz, MemoryMB: new(100)})
	return api.NewServiceJob("web", "web", "global", 50).AddTaskGroup(api.NewTaskGroup("web", count).AddTask(task))
}

// A plan reports what the registration then does, and writes nothing.
func TestReferenceClient_JobPlan(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2) // each with room for four allocations of 1000 MHz
	jobs := w.client().Jobs()
	before := w.State().Index()

	plan, meta, err := jobs.PlanOpts(newJob(3, 1000), &api.PlanOptions{Diff: true}, nil)
	must.NoError(t, err)
	must.Zero(t, plan.JobModifyIndex)
	must.Eq(t, &api.DesiredUpdates{Place: 3}, plan.Annotations.DesiredTGUpdates["web"])
	must.MapEmpty(t, plan.FailedTGAllocs)
	must.SliceEmpty(t, plan.CreatedEvals)
	must.Eq(t, "Added", plan.Diff.Type)
	must.Eq(t, "Added", plan.Diff.TaskGroups[0].Tasks[0].Type)
	must.Eq(t, map[string]uint64{"create": 3}, plan.Diff.TaskGroups[0].Updates)
	must.Positive(t, meta.RequestTime)
	must.Eq(t, before, w.State().Index())
	must.Nil(t, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}))

	result.Read(jobs.Register(newJob(3, 1000), nil)).OK(t)
	job := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	must.Len(t, 3, w.schedule(job).Places)

	same := result.Read(jobs.Plan(newJob(3, 1000), true, nil)).OK(t)
	must.Eq(t, "None", same.Diff.Type)
	must.Eq(t, "None", same.Diff.TaskGroups[0].Type)
	must.Eq(t, &api.DesiredUpdates{Ignore: 3}, same.Annotations.DesiredTGUpdates["web"])

	more := result.Read(jobs.Plan(newJob(10, 1000), true, nil)).OK(t)
	must.Eq(t, job.JobModifyIndex, more.JobModifyIndex)
	must.Eq(t, &api.DesiredUpdates{Ignore: 3, Place: 7}, more.Annotations.DesiredTGUpdates["web"])
	must.Eq(t, "Edited", more.Diff.Type)
	must.SliceEmpty(t, more.Diff.Fields)
	must.Eq(t, []*api.FieldDiff{{Type: "Edited", Name: "Count", Old: "3", New: "10"}}, more.Diff.TaskGroups[0].Fields)
	must.Eq(t, "None", more.Diff.TaskGroups[0].Tasks[0].Type)
	short := more.FailedTGAllocs["web"]
	must.Eq(t, 1, short.CoalescedFailures, must.Sprint("two of ten fit nowhere"))
	must.Eq(t, map[string]int{"cpu": 2}, short.DimensionExhausted, must.Sprint("after the placements of the plan"))
	must.SliceLen(t, 1, more.CreatedEvals)
	must.Eq(t, "blocked", more.CreatedEvals[0].Status)
	registered := w.Job(withCount(job, 10))
	planned := w.schedule(registered)
	must.Len(t, 5, planned.Places)
	must.Eq(t, 2, planned.Eval.Queued["web"])

	fewer := result.Read(jobs.Plan(newJob(2, 1000), false, nil)).OK(t)
	must.Eq(t, &api.DesiredUpdates{Ignore: 2, Stop: 6}, fewer.Annotations.DesiredTGUpdates["web"])
	must.Nil(t, fewer.Diff)

	_, _, err = jobs.Plan(&api.Job{ID: new("web")}, true, nil)
	must.ErrorContains(t, err, "400")
}

func withCount(j *cluster.Job, count int) *cluster.Job {
	j = j.Copy()
	j.TaskGroups[0].Count = count
	return j
}

// Marked, ended and lost allocations are counted by what becomes of them, also of a group that the
// job no longer has.
func TestJobPlan_updates(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	job := clustertest.Job("web", cluster.JobService, 4)
	old := job.TaskGroups[0].Copy()
	job.TaskGroups[0].Name, old.Name, old.Count = "web", "old", 1
	job.TaskGroups = append(job.TaskGroups, old)
	job = w.Job(job)
	for n := 1; n <= 4; n++ {
		w.place(n, job, nodeID(1+n%2)) // 2 and 4 on node 1, 1 and 3 on node 2
	}
	gone := clustertest.Alloc(job, allocID(5), nodeID(3), w.Now())
	gone.TaskGroup = "old"
	w.Plan(job, nil, gone)
	w.Drain(nodeID(1), &cluster.DrainSpec{Deadline: -1})
	w.Mark(cluster.MarkForced, allocID(2))
	w.report(1, cluster.ClientFailed)
	w.must(&shims.NodeUpdateStatus{At: w.Now(), Node: nodeID(2), Status: cluster.NodeDown})

	plan := result.Read(w.client().Jobs().Plan(newJob(4, 100), true, nil)).OK(t)
	must.Eq(t, map[string]*api.DesiredUpdates{
		"web": {Ignore: 1, Migrate: 1, RescheduleNow: 1, Stop: 1, Place: 1}, // 4; 2; 1; 3 is lost
		"old": {Stop: 1},
	}, plan.Annotations.DesiredTGUpdates)
	must.Eq(t, "Deleted", plan.Diff.TaskGroups[0].Type)
	must.Eq(t, map[string]uint64{"destroy": 1}, plan.Diff.TaskGroups[0].Updates)
}

// An allocation that has failed, and whose replacement waits for the delay of its policy, counts as rescheduled later.
// Of a job with other tasks it is replaced at once, and counts as rescheduled now. Bug: the first one counted nowhere.
func TestJobPlan_rescheduledLater(t *testing.T) {
	t.Parallel()
	w := newFixture(t).atNoon().nodes(2)
	w.must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	jobs := w.client().Jobs()
	result.Read(jobs.Register(newJob(2, 100), nil)).OK(t)
	key := cluster.JobKey{Namespace: "default", ID: "web"}
	failed := w.schedule(w.State().Job(key)).Places[0]
	w.must(&shims.AllocClientUpdate{At: w.Now(), Reports: []cluster.AllocReport{clustertest.Report(failed, cluster.ClientFailed, w.Now())}})

	same := result.Read(jobs.Plan(newJob(2, 100), true, nil)).OK(t)
	must.Eq(t, &api.DesiredUpdates{Ignore: 1, RescheduleLater: 1}, same.Annotations.DesiredTGUpdates["web"])
	must.Eq(t, map[string]uint64{"ignore": 1, "reschedule later": 1}, same.Diff.TaskGroups[0].Updates)
	must.Eq(t, &api.DesiredUpdates{Ignore: 1}, result.Read(jobs.Plan(newJob(1, 100), false, nil)).OK(t).Annotations.DesiredTGUpdates["web"])

	changed := newJob(2, 100)
	changed.TaskGroups[0].Tasks[0].Env = map[string]string{"a": "b"}
	other := result.Read(jobs.Plan(changed, false, nil)).OK(t).Annotations.DesiredTGUpdates["web"]
	must.EqOp(t, uint64(1), other.RescheduleNow)
	must.EqOp(t, uint64(0), other.RescheduleLater)
}

// A server without a planner answers 501.
func TestJobPlan_absent(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	b := w.backend()
	b.Planner = nil
	a := request(t, http.MethodPut, w.serveAs(b, httpapi.Options{}).URL+"/v1/job/web/plan", `{"Job": {"ID": "web"}}`)
	must.Eq(t, http.StatusNotImplemented, a.code, must.Sprint(a.body))
}

// A difference shows each field of a task that a client needs.
func TestJobPlan_driverFields(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	jobs := w.client().Jobs()
	result.Read(jobs.Register(newJob(1, 100), nil)).OK(t)
	next := newJob(1, 100).Constrain(api.NewConstraint("${meta.rack}", "=", "r1"))
	task := next.TaskGroups[0].Tasks[0]
	task.Driver, task.Leader, task.KillSignal = "raw_exec", true, "SIGTERM"
	task.Env = map[string]string{"PORT": "80"}
	task.SetConfig("command", "/bin/sleep")
	task.Lifecycle = nil
	task.RestartPolicy = &api.RestartPolicy{Attempts: new(9)}
	plan := result.Read(jobs.Plan(next, true, nil)).OK(t)
	must.Eq(t, "Edited", plan.Diff.Type)
	must.Eq(t, "Constraint", plan.Diff.Objects[0].Name)
	must.Eq(t, "Added", plan.Diff.Objects[0].Type)
	var fields []string
	diff := plan.Diff.TaskGroups[0].Tasks[0]
	for _, f := range diff.Fields {
		fields = append(fields, f.Type+" "+f.Name+" "+f.Old+" "+f.New)
	}
	must.Eq(t, []string{
		"Edited Driver docker raw_exec", "Added KillSignal  SIGTERM", "Edited Leader false true",
		`Added Config[command]  "/bin/sleep"`, "Added Env[PORT]  80",
	}, fields)
	must.Eq(t, "RestartPolicy", diff.Objects[0].Name)

	next.TaskGroups[0].Tasks[0].RestartPolicy.Delay = new(time.Hour)
	_, _, err := jobs.Plan(next, true, nil)
	must.ErrorContains(t, err, "RestartPolicy: 9 attempts with a delay of 1h0m0s do not fit into an interval of 30m0s")
}
