package httpapi_test

import (
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// The calls of the reference's "job status", "job history" and "eval status".
func TestReferenceClient_JobStatus(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1).atNoon()
	first := w.job("web", cluster.JobService, 1)
	w.place(1, first, nodeID(1))
	client := w.client()
	jobs := client.Jobs()
	for _, id := range []string{"web", "unknown"} {
		deployment, meta, err := jobs.LatestDeployment(id, nil)
		must.NoError(t, err)
		must.Nil(t, deployment)
		must.Positive(t, meta.LastIndex)
		deployments := result.Read(jobs.Deployments(id, true, nil)).OK(t)
		must.SliceEmpty(t, deployments)
	}
	deployments := result.Read(client.Deployments().List(nil)).OK(t)
	must.SliceEmpty(t, deployments)

	next := first.Copy()
	next.TaskGroups[0].Count = 100 // more than the node has room for
	w.Job(next)
	registered := w.State().Job(first.Key())
	plan := w.schedule(registered)
	versions, _, _, err := jobs.Versions("web", false, nil)
	must.NoError(t, err)
	must.SliceLen(t, 2, versions)
	must.Eq(t, 1, *versions[0].Version)
	must.Eq(t, 100, *versions[0].TaskGroups[0].Count)
	must.Eq(t, 1, *versions[1].TaskGroups[0].Count)
	must.Eq(t, noon.UnixNano(), *versions[1].SubmitTime)
	versions, diffs, _, err := jobs.Versions("web", true, nil)
	must.NoError(t, err)
	must.Len(t, len(versions)-1, diffs, must.Sprint("the command reads one for each version but the first"))
	must.Eq(t, "Edited", diffs[0].Type)
	must.Eq(t, "Count", diffs[0].TaskGroups[0].Fields[0].Name)
	must.Eq(t, "100", diffs[0].TaskGroups[0].Fields[0].New)
	_, _, _, err = jobs.VersionsOpts("web", &api.VersionsOptions{Diffs: true, DiffVersion: new(uint64(0))}, nil)
	must.ErrorContains(t, err, "501 (this server compares each version")
	_, _, _, err = jobs.Versions("unknown", false, nil)
	must.ErrorContains(t, err, "404 (job not found)")

	info := result.Read(jobs.Info("web", nil)).OK(t)
	must.Eq(t, noon.UnixNano(), *info.SubmitTime)
	listed := result.Read(jobs.List(nil)).OK(t)
	must.Eq(t, noon.UnixNano(), listed[0].SubmitTime)

	e := result.Read(client.Evaluations().Info(string(plan.Eval.ID), nil)).OK(t)
	must.MapNotEmpty(t, e.FailedTGAllocs)
	must.SliceLen(t, 1, e.RelatedEvals)
	must.Eq(t, e.BlockedEval, e.RelatedEvals[0].ID)
	blocked := result.Read(client.Evaluations().Info(e.BlockedEval, nil)).OK(t)
	must.Eq(t, e.ID, blocked.RelatedEvals[0].ID)

	result.Read(jobs.Deregister("web", true, nil)).OK(t)
}
