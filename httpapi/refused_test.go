package httpapi_test

import (
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// Jobs that the reference refuses are refused.
func TestReferenceClient_refusedJobs(t *testing.T) {
	t.Parallel()
	w := newFixture(t).mixedNodes()
	jobs := w.client().Jobs()
	job := func(kind, pool string, count int) *api.Job {
		j := api.NewServiceJob("web", "web", "global", 50).AddTaskGroup(api.NewTaskGroup("main", count).AddTask(api.NewTask("main", "docker")))
		j.Type, j.NodePool = &kind, &pool
		return j
	}
	for _, test := range []struct {
		job  *api.Job
		want string
	}{
		{job("system", "default", 2), `400 (Task group "main": Count of a system job must be 0 or 1 but found 2)`},
		{job("sysbatch", "default", 2), `Count of a sysbatch job must be 0 or 1 but found 2`},
		{job("service", "nowhere", 1), `400 (no node is in the node pool "nowhere" of job "web")`},
		{job("service", "other", 2), ""},
		{job("service", "all", 2), ""},
		{job("system", "default", 1), ""},
	} {
		_, _, err := jobs.Register(test.job, nil)
		if test.want == "" {
			must.NoError(t, err)
			continue
		}
		must.ErrorContains(t, err, test.want)
	}
	pools := result.Read(w.client().NodePools().List(nil)).OK(t)
	must.SliceLen(t, 3, pools)
	for i, name := range []string{"all", "default", "other"} {
		must.Eq(t, name, pools[i].Name)
	}
	_, _, err := newOldFixture(t).client().Jobs().Register(job("service", "all", 1), nil)
	must.ErrorContains(t, err, "503 (the cluster has version 1")
}
