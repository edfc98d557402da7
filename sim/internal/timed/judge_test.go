//race:skip one goroutine
package timed_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/timed"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A judge compares the learned times with the entries that it has seen. Those of the product are right, so the judge
// misses an entry, or sees one twice, in the cases with findings.
func TestJudge(t *testing.T) {
	t.Parallel()
	ends := func(m shims.Message) bool {
		u, is := m.(*shims.AllocClientUpdate)
		return is && u.Reports[0].ClientStatus == cluster.ClientComplete
	}
	runs := func(m shims.Message) bool {
		u, is := m.(*shims.AllocClientUpdate)
		return is && u.Reports[0].ClientStatus == cluster.ClientRunning
	}
	for name, test := range map[string]struct {
		sees func(m shims.Message) int
		want []invariant.Check
	}{
		"all entries": {func(shims.Message) int { return 1 }, nil},
		"one that it runs twice": {func(m shims.Message) int {
			if runs(m) {
				return 2
			}
			return 1
		}, []invariant.Check{timed.Verdict, timed.Verdict, timed.Verdict}},
		"one without the end": {func(m shims.Message) int {
			if ends(m) {
				return 0
			}
			return 1
		}, []invariant.Check{timed.Stop}},
		"none that it runs": {func(m shims.Message) int {
			if runs(m) {
				return 0
			}
			return 1
		}, []invariant.Check{timed.Start, timed.Verdict, timed.Start, timed.Verdict}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge := timed.New()
			r := clustertest.NewReplica(t, shims.FSMConfig{OnApply: func(a shims.Applied) {
				for range test.sees(a.Message) {
					judge.Applied(start, a)
				}
			}})
			r.Now = func() time.Time { return start.Add(time.Duration(r.Index) * time.Second) }
			report := func(s cluster.ClientStatus) {
				r.Must(&shims.AllocClientUpdate{At: r.Now(), Reports: []cluster.AllocReport{clustertest.Report(r.State().Alloc("a1"), s, r.Now())}})
			}
			r.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
			r.Nodes("n1", "n2")
			job := r.Job(clustertest.Job("web", cluster.JobService, 1))
			placed := clustertest.Alloc(job, "a1", "n1", start)
			placed.ClientStatus, placed.DeploymentStatus = cluster.ClientPending, nil
			r.Plan(job, nil, placed)
			report(cluster.ClientRunning)
			r.Drain("n1", &cluster.DrainSpec{Deadline: -1})
			must.SliceEmpty(t, r.Mark(cluster.MarkForced, "a1").Refused)
			r.Plan(job, []cluster.AllocID{"a1"})
			report(cluster.ClientComplete)
			judge.End(start, r.State())
			r.Must(&shims.JobDeregister{Job: job.Key(), Purge: true})
			var found []invariant.Check
			for _, v := range judge.Violations() {
				found = append(found, invariant.Check(v.Guarantee+" "+v.Check))
			}
			must.Eq(t, test.want, found)
		})
	}
}
