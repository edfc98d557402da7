package httpapi_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// The reason of a drain and the rollout of a job that an unhealthy allocation holds up have what its client reports of
// it: the newest such event. Bug: both named the allocation alone.
func TestUnhealthy_because(t *testing.T) {
	t.Parallel()
	w := newFixture(t).atNoon().nodes(2)
	base := w.serve(httpapi.Options{}).URL
	job := w.job("web", cluster.JobService, 3)
	w.place(1, job, nodeID(1))
	next := job.Copy()
	next.TaskGroups[0].Tasks[0].Env = map[string]string{"VERSION": "2"}
	next = w.Job(next)
	w.place(2, next, nodeID(2))
	w.place(3, next, nodeID(2))
	event := func(after time.Duration, message string) cluster.TaskEvent {
		return cluster.TaskEvent{Type: "Alloc Unhealthy", Time: w.Now().Add(after), Message: message}
	}
	w.must(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{
		Alloc: allocID(2), Node: nodeID(2), ClientStatus: cluster.ClientRunning, Healthy: new(false), HealthyAt: w.Now(), At: w.Now(),
		TaskStates: &cluster.TaskStates{Tasks: []cluster.TaskState{
			{Name: "main", State: cluster.TaskRunning, Events: []cluster.TaskEvent{event(0, "older"), event(time.Second, `The check "up" fails: HTTP 503`), {Type: "Signaling", Time: w.Now().Add(2 * time.Second)}}},
			{Name: "side", State: cluster.TaskRunning, Events: []cluster.TaskEvent{event(0, "of another task")}},
		}},
	}}})
	w.drain(nodeID(1), cluster.DrainSpec{})

	rollout := askFor[wire.JobSummary](t, base+"/v1/job/web/summary").Rollouts["web"]
	must.EqOp(t, string(allocID(2)), rollout.UnhealthyAllocID)
	must.EqOp(t, `The check "up" fails: HTTP 503`, rollout.UnhealthyBecause)
	left := askFor[wire.NodeDrain](t, base+"/v1/node/"+string(nodeID(1))+"/drain").Allocs
	must.SliceLen(t, 1, left)
	must.StrContains(t, left[0].Cause, "is unhealthy")
	must.StrHasSuffix(t, `: The check "up" fails: HTTP 503`, left[0].Cause)

	w.report(2, cluster.ClientRunning) // it has recovered
	left = askFor[wire.NodeDrain](t, base+"/v1/node/"+string(nodeID(1))+"/drain").Allocs
	must.StrNotContains(t, left[0].Cause, "HTTP 503")
}
