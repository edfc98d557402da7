package httpapi_test

import (
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A job that was never scheduled, and has lost its evaluation, has no time of submission.
func TestJob_submitTime(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	w.job("web", cluster.JobService, 1) // without an evaluation
	client := w.client()
	j, _, err := client.Jobs().Info("web", nil)
	must.NoError(t, err)
	must.Zero(t, *j.SubmitTime)
	before := time.Now().UnixNano()
	job := api.NewServiceJob("new", "new", "global", 50).AddTaskGroup(api.NewTaskGroup("main", 1).AddTask(api.NewTask("main", "docker")))
	_, _, err = client.Jobs().Register(job, nil)
	must.NoError(t, err)
	j, _, err = client.Jobs().Info("new", nil)
	must.NoError(t, err)
	must.Between(t, before, *j.SubmitTime, time.Now().UnixNano())
}
