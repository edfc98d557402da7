package httpapi_test

import (
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// A job that was never scheduled, and has lost its evaluation, has no time of submission.
func TestJob_submitTime(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	w.job("web", cluster.JobService, 1) // without an evaluation
	client := w.client()
	j := result.Read(client.Jobs().Info("web", nil)).OK(t)
	must.Zero(t, *j.SubmitTime)
	before := time.Now().UnixNano()
	job := api.NewServiceJob("new", "new", "global", 50).AddTaskGroup(api.NewTaskGroup("main", 1).AddTask(api.NewTask("main", "docker")))
	result.Read(client.Jobs().Register(job, nil)).OK(t)
	j = result.Read(client.Jobs().Info("new", nil)).OK(t)
	must.Between(t, before, *j.SubmitTime, time.Now().UnixNano())
}
