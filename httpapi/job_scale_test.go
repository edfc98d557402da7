package httpapi_test

import (
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// "job scale" reads the counts of the groups, and then registers the job with another one. Bug: both were
// answered 501.
func TestReferenceClient_Scale(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	jobs := w.client().Jobs()
	scale := func(id, group string, count *int, isError bool) (*api.JobRegisterResponse, error) {
		answer, _, err := jobs.Scale(id, group, count, "submitted by a test", isError, map[string]any{"a": 1}, nil)
		return answer, err
	}
	_, err := scale("web", "web", new(2), false)
	must.ErrorContains(t, err, "404 (job not found)")
	_, _, err = jobs.ScaleStatus("web", nil)
	must.ErrorContains(t, err, "404 (job not found)")

	job := w.job("web", cluster.JobService, 2)
	w.place(1, job, nodeID(1))
	w.place(2, job, nodeID(2))
	w.report(2, cluster.ClientFailed)
	status := result.Read(jobs.ScaleStatus("web", nil)).OK(t)
	must.Eq(t, api.JobScaleStatusResponse{
		JobID: "web", Namespace: "default", JobCreateIndex: job.CreateIndex, JobModifyIndex: job.JobModifyIndex,
		TaskGroups: map[string]api.TaskGroupScaleStatus{"web": {Desired: 2, Placed: 1, Running: 1, Healthy: 1, Events: []api.ScalingEvent{}}},
	}, *status)

	answer := result.Of(scale("web", "web", new(3), false)).OK(t)
	registered := w.State().Job(job.Key())
	must.Eq(t, 3, registered.Group("web").Count)
	must.Eq(t, 1, registered.Version)
	must.Eq(t, registered.JobModifyIndex, answer.JobModifyIndex)
	e := result.Read(w.client().Evaluations().Info(answer.EvalID, nil)).OK(t)
	must.Eq(t, "web", e.JobID)

	again := result.Of(scale("web", "web", new(3), false)).OK(t)
	must.Eq(t, answer.JobModifyIndex, again.JobModifyIndex, must.Sprint("the count has not changed"))
	event := result.Of(scale("web", "web", nil, true)).OK(t)
	must.StrContains(t, event.Warnings, "nothing has changed")
	for _, test := range []struct {
		group   string
		count   *int
		isError bool
		want    string
	}{
		{"", new(1), false, "400 (missing task group name"},
		{"none", new(1), false, `400 (task group "none" specified for scaling does not exist`},
		{"web", new(1), true, "400 (scaling action should not contain count if error is true)"},
		{"web", new(-1), false, "400 (the count of a group is 0 to 1000000, not -1)"},
		{"web", new(2_000_000), false, "400 (the count of a group is 0 to 1000000, not 2000000)"},
	} {
		_, err := scale("web", test.group, test.count, test.isError)
		must.ErrorContains(t, err, test.want)
	}
	request := &api.ScalingRequest{Count: new(int64(1)), Target: map[string]string{"Group": "web"}, JobModifyIndex: job.JobModifyIndex}
	_, _, err = jobs.ScaleWithRequest("web", request, nil)
	must.ErrorContains(t, err, "409 (Enforcing job modify index")
	request.JobModifyIndex = registered.JobModifyIndex
	result.Read(jobs.ScaleWithRequest("web", request, nil)).OK(t)
	must.Eq(t, 1, w.State().Job(job.Key()).Group("web").Count)

	result.Read(jobs.Deregister("web", false, nil)).OK(t)
	_, err = scale("web", "web", new(2), false)
	must.ErrorContains(t, err, `400 (job "web" is stopped`)
	w.job("logs", cluster.JobSystem, 1)
	_, err = scale("logs", "logs", new(2), false)
	must.ErrorContains(t, err, "Count of a system job must be 0 or 1")
}

// "job revert" registers the work of an older version. Bug: it was answered 501.
func TestReferenceClient_Revert(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	jobs := w.client().Jobs()
	revert := func(id string, version uint64, prior *uint64) (*api.JobRegisterResponse, error) {
		answer, _, err := jobs.Revert(id, version, prior, nil, "", "")
		return answer, err
	}
	_, err := revert("web", 0, nil)
	must.ErrorContains(t, err, "404 (job not found)")
	first := w.job("web", cluster.JobService, 1)
	w.place(1, first, nodeID(1))
	for range 2 { // no allocation has the second version
		next := w.State().Job(first.Key()).Copy()
		next.TaskGroups[0].Count++
		w.Job(next)
	}
	for _, test := range []struct {
		version uint64
		prior   *uint64
		want    string
	}{
		{0, new(uint64(1)), "409 (Current job has version 2; enforcing version 1)"},
		{2, nil, "400 (can't revert to current version"},
		{1, nil, `404 (job "web" has no version 1 any more: the servers keep the current version and those of allocations (2, 0)`},
	} {
		_, err := revert("web", test.version, test.prior)
		must.ErrorContains(t, err, test.want)
	}
	result.Read(jobs.Deregister("web", false, nil)).OK(t)
	answer := result.Of(revert("web", 0, new(uint64(2)))).OK(t)
	registered := w.State().Job(first.Key())
	must.Eq(t, 3, registered.Version)
	must.Eq(t, 1, registered.Group("web").Count)
	must.False(t, registered.Stop)
	must.Eq(t, registered.JobModifyIndex, answer.JobModifyIndex)
	must.NotEq(t, "", answer.EvalID)
}

// "job run -eval-priority" and "job stop -eval-priority" order the evaluation alone. Bug: both were ignored.
func TestReferenceClient_EvalPriority(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	jobs := w.client().Jobs()
	evalOf := func(id string) *api.Evaluation { return result.Read(w.client().Evaluations().Info(id, nil)).OK(t) }
	for _, priority := range []int{90, 90, 0} { // the second one changes nothing of the job
		answer := result.Read(jobs.RegisterOpts(newJob(1, 100), &api.RegisterOptions{EvalPriority: priority}, nil)).OK(t)
		must.Eq(t, "", answer.Warnings)
		want := priority
		if priority == 0 {
			want = 50
		}
		must.Eq(t, want, evalOf(answer.EvalID).Priority)
	}
	must.Eq(t, 50, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).Priority)
	for _, purge := range []bool{false, true} {
		id := result.Read(jobs.DeregisterOpts("web", &api.DeregisterOptions{Purge: purge, EvalPriority: 10}, nil)).OK(t)
		must.Eq(t, 10, evalOf(id).Priority)
	}
	_, _, err := jobs.DeregisterOpts("web", &api.DeregisterOptions{NoShutdownDelay: true}, nil)
	must.ErrorContains(t, err, "400 (no_shutdown_delay is not supported: the tasks get the shutdown delays of their job)")
	for _, priority := range []int{-1, 101} {
		_, _, err := jobs.RegisterOpts(newJob(1, 100), &api.RegisterOptions{EvalPriority: priority}, nil)
		must.ErrorContains(t, err, "400 (the priority of an evaluation is 1 to 100")
		_, _, err = jobs.DeregisterOpts("web", &api.DeregisterOptions{EvalPriority: priority}, nil)
		must.ErrorContains(t, err, "400 (the priority of an evaluation is 1 to 100")
	}
}
