package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
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

// The calls of the reference's "job history -p -diff-version": every version is compared with the same one. Bug: they
// were answered 501.
func TestReferenceClient_DiffVersion(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	j := w.job("web", cluster.JobService, 1)
	w.place(1, j, nodeID(1))
	for version := 2; version <= 3; version++ {
		next := w.State().Job(j.Key()).Copy()
		next.TaskGroups[0].Count = version
		w.Job(next)
		w.place(version, w.State().Job(j.Key()), nodeID(version))
	}
	jobs := w.client().Jobs()
	diffs := func(o api.VersionsOptions) string {
		versions, diffs, _, err := jobs.VersionsOpts("web", &o, nil)
		must.NoError(t, err)
		must.Len(t, 3, versions)
		if !o.Diffs {
			must.SliceEmpty(t, diffs)
			return ""
		}
		must.Len(t, len(versions)-1, diffs, must.Sprint("the command reads one for each version but the last"))
		var lines []string
		for i, d := range diffs { // as the command reads them
			line := fmt.Sprintf("%d %s", *versions[i].Version, d.Type)
			for _, g := range d.TaskGroups {
				for _, f := range g.Fields {
					line += fmt.Sprintf(" %s %s %s", f.Name, f.Old, f.New)
				}
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "; ")
	}
	must.EqOp(t, "2 Edited Count 2 3; 1 Edited Count 1 2", diffs(api.VersionsOptions{Diffs: true}))
	must.EqOp(t, "2 Edited Count 1 3; 1 Edited Count 1 2", diffs(api.VersionsOptions{Diffs: true, DiffVersion: new(uint64(0))}))
	must.EqOp(t, "2 Edited Count 2 3; 1 None", diffs(api.VersionsOptions{Diffs: true, DiffVersion: new(uint64(1))}))
	must.EqOp(t, "2 None; 1 Edited Count 3 2", diffs(api.VersionsOptions{Diffs: true, DiffVersion: new(uint64(2))}))
	must.EqOp(t, "", diffs(api.VersionsOptions{DiffVersion: new(uint64(7))}))

	for want, o := range map[string]api.VersionsOptions{
		`404 (job "web" has no version 7 any more: the servers keep the current version and those of allocations (2, 1, 0)`: {Diffs: true, DiffVersion: new(uint64(7))},
		"501 (versions of jobs have no tags: use diff_version)":                                                             {Diffs: true, DiffTag: "golden"},
	} {
		_, _, _, err := jobs.VersionsOpts("web", &o, nil)
		must.ErrorContains(t, err, want)
	}
	_, err := jobs.TagVersion("web", 1, "golden", "", nil)
	must.ErrorContains(t, err, "501 (PUT /v1/job/web/versions/golden/tag is not implemented: versions of jobs have no tags)")
	_, err = jobs.UntagVersion("web", "golden", nil)
	must.ErrorContains(t, err, "is not implemented: versions of jobs have no tags)")
	_, _, err = jobs.VersionByTag("web", "golden", nil)
	must.ErrorContains(t, err, "version tag golden not found for job web")
	must.EqOp(t, 400, request(t, "GET", w.serve(httpapi.Options{}).URL+"/v1/job/web/versions?diffs=true&diff_version=-1", "").code)
}
