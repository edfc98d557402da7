package httpapi_test

import (
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// A job that is registered as the servers answer it is accepted and stays as it is: "job inspect", then "job
// run". Before, each such registration made a new version of the job.
func TestReferenceClient_RegistersAnswers(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	c := w.client()
	everything(w, c)
	ids := 0
	for before := range w.State().Jobs() {
		ids++
		read := result.Read(c.Jobs().Info(string(before.ID), nil)).OK(t)
		plan, _, err := c.Jobs().Plan(read, true, nil)
		must.NoError(t, err, must.Sprint(before.ID))
		must.Eq(t, "None", plan.Diff.Type, must.Sprintf("%s: %v", before.ID, plan.Diff))
		answer, _, err := c.Jobs().EnforceRegister(read, before.JobModifyIndex, nil)
		must.NoError(t, err, must.Sprint(before.ID))
		must.Eq(t, "", answer.Warnings, must.Sprint(before.ID))
		must.NotEq(t, "", answer.EvalID)
		must.Eq(t, before.JobModifyIndex, answer.JobModifyIndex)
		must.Eq(t, before, w.State().Job(before.Key()))

		read.Canonicalize() // as a client may
		result.Read(c.Jobs().Register(read, nil)).OK(t)
		must.Eq(t, before, w.State().Job(before.Key()))
		read.Priority = new(61)
		result.Read(c.Jobs().Register(read, nil)).OK(t)
		must.Eq(t, before.Version+1, w.State().Job(before.Key()).Version)
	}
	must.Positive(t, ids)
}

// "job start" registers a version of a stopped job, from the list of versions, without its Stop.
func TestReferenceClient_JobStart(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	c := w.client()
	result.Read(c.Jobs().Register(newJob(1, 100), nil)).OK(t)
	result.Read(c.Jobs().Deregister("web", false, nil)).OK(t)
	versions, _, _, err := c.Jobs().Versions("web", false, nil)
	must.NoError(t, err)
	must.True(t, *versions[0].Stop)
	must.Eq(t, "global", *versions[0].Region)
	must.False(t, *versions[0].Stable)
	_, _, err = c.Jobs().Submission("web", 0, nil)
	must.ErrorContains(t, err, "404", must.Sprint("not 501: the job has no file"))
	versions[0].Stop = new(false)
	result.Read(c.Jobs().RegisterOpts(versions[0], &api.RegisterOptions{}, &api.WriteOptions{Region: *versions[0].Region, Namespace: *versions[0].Namespace})).OK(t)
	job := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	must.False(t, job.Stop)
	must.Eq(t, 1, job.Version)
}
