package httpapi_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// failedStates are the states of the tasks of an allocation whose task "main" did not start.
func failedStates(why string, at time.Time) *cluster.TaskStates {
	return &cluster.TaskStates{Tasks: []cluster.TaskState{
		{Name: "main", State: cluster.TaskDead, Failed: true, Events: []cluster.TaskEvent{
			{Type: "Received", Time: at, Message: "The client has received the task"},
			{Type: "Terminated", Time: at.Add(time.Second), Message: "Exit Code: 1"},
			{Type: "Driver Failure", Time: at.Add(2 * time.Second), Message: why},
			{Type: "Not Restarting", Time: at.Add(3 * time.Second), Message: "The error cannot be recovered from"},
		}},
		{Name: "side", State: cluster.TaskDead, Events: []cluster.TaskEvent{{Type: "Terminated", Time: at.Add(9 * time.Second), Message: "Exit Code: 143"}}},
	}}
}

// spend lets the allocations of the job fail until the scheduler replaces none any more. The state of the n-th
// failure is states(n).
func spend(w *fixture, j *cluster.Job, states func(n int) *cluster.TaskStates) {
	w.Helper()
	n := 0
	for plan := w.schedule(j); len(plan.Places) > 0; plan = w.schedule(j) {
		for _, a := range plan.Places {
			n++
			w.must(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{
				Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientFailed, ClientDescription: "Failed tasks", TaskStates: states(n), At: w.Now(),
			}}})
		}
	}
}

func givenUp(t *testing.T, base, job string, headers ...string) map[string]wire.GroupGivenUp {
	t.Helper()
	var sum wire.JobSummary
	a := request(t, "GET", base+"/v1/job/"+job+"/summary", "", headers...)
	must.Eq(t, 200, a.code, must.Sprint(a.body))
	must.NoError(t, json.Unmarshal([]byte(a.body), &sum))
	return sum.GivenUp
}

// The summary of a job whose allocations have failed too often in a row reports that, with the last failure,
// until its tasks change.
func TestJobSummary_givenUp(t *testing.T) {
	t.Parallel()
	w := newFixture(t).atNoon().nodes(2)
	w.must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	base := w.serveAs(guarded(w), httpapi.Options{}).URL
	writer, reader := []string{"X-Nomad-Token", "writer-token"}, []string{"X-Nomad-Token", "reader-token"}
	job := w.job("web", cluster.JobService, 2).Copy()
	side := *job.TaskGroups[0].Tasks[0]
	side.Name = "side"
	job.TaskGroups[0].Tasks = append(job.TaskGroups[0].Tasks, &side)
	job = w.Job(job)
	must.MapEmpty(t, givenUp(t, base, "web", writer...))
	spend(w, job, func(n int) *cluster.TaskStates {
		if n <= 20 {
			must.MapEmpty(t, givenUp(t, base, "web", writer...), must.Sprint(n))
		}
		return failedStates("unknown key hush", noon.Add(time.Duration(n)*time.Minute))
	})
	golden(t, "job-given-up.json", request(t, "GET", base+"/v1/job/web/summary?pretty", "", writer...))
	group := givenUp(t, base, "web", writer...)["web"]
	must.Eq(t, 2, group.Slots)
	must.Eq(t, 2*(cluster.MaxReschedules+1), group.Failed)
	must.Eq(t, cluster.MaxReschedules, group.Replaced)
	must.Eq(t, "main Driver Failure unknown key hush", group.Task+" "+group.Event+" "+group.Message)
	must.Eq(t, noon.Add(22*time.Minute+2*time.Second), group.At.Time)
	hidden := givenUp(t, base, "web", reader...)["web"]
	must.Eq(t, "main Driver Failure [redacted]", hidden.Task+" "+hidden.Event+" "+hidden.Message)

	same := job.Copy()
	same.Priority = 70
	w.schedule(w.Job(same))
	must.MapLen(t, 1, givenUp(t, base, "web", writer...), must.Sprint("the tasks are as before"))
	other := job.Copy()
	other.TaskGroups[0].Tasks[0].Env = map[string]string{"KEY": "right"}
	must.Len(t, 2, w.schedule(w.Job(other)).Places)
	must.MapEmpty(t, givenUp(t, base, "web", writer...))
}

// If a client reports no states of tasks, the answer has the client's description of the allocation. Without
// a planner the answer names no group.
func TestJobSummary_givenUpWithoutStates(t *testing.T) {
	t.Parallel()
	w := newFixture(t).atNoon().nodes(1)
	spend(w, w.job("web", cluster.JobService, 1), func(int) *cluster.TaskStates { return nil })
	group := givenUp(t, w.serve(httpapi.Options{}).URL, "web")["web"]
	must.Eq(t, wire.GroupGivenUp{Slots: 1, Failed: 11, Replaced: 10, AllocID: group.AllocID, NodeID: string(nodeID(1)), Message: "Failed tasks"}, group)

	b := w.backend()
	b.Planner = nil
	must.MapEmpty(t, givenUp(t, w.serveAs(b, httpapi.Options{}).URL, "web"))
}
