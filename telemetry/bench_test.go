package telemetry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/telemetry"
)

// BenchmarkAudit measures what the most frequent entry costs: a report of one
// allocation of a job of that many, of whose nodes one in ten drains. The second
// figure is what raft's goroutine pays to hand it over.
func BenchmarkAudit(b *testing.B) {
	for _, allocs := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(allocs), func(b *testing.B) {
			entries := reportsOf(b, allocs)
			t, err := telemetry.New(telemetry.Options{})
			must.NoError(b, err)
			var handing time.Duration
			for i := 0; b.Loop(); i++ { // at each turn to the first the witness begins anew
				began := time.Now()
				t.OnApply(entries[i%len(entries)])
				handing += time.Since(began)
				t.Settle()
			}
			t.Close()
			b.ReportMetric(float64(handing.Nanoseconds())/float64(b.N), "ns-handing/op")
		})
	}
}

// reportsOf are entries that follow each other.
func reportsOf(b *testing.B, allocs int) (reported []shims.Applied) {
	b.Helper()
	var all []shims.Applied
	fsm := shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) { all = append(all, a) }})
	index := uint64(0)
	apply := func(m shims.Message) {
		data, err := shims.Encode(m)
		must.NoError(b, err)
		index++
		_, err = fsm.ApplyEntry(index, data)
		must.NoError(b, err)
	}
	const perNode = 10
	for i := range allocs / perNode {
		n := &cluster.Node{ID: cluster.NodeID(fmt.Sprint("n", i)), Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 1000}}
		n.Canonicalize()
		apply(&shims.NodeRegister{At: time.Now(), Node: n})
	}
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "g", Count: allocs, Tasks: []*cluster.Task{{Name: "t"}}}}}
	job.Canonicalize()
	apply(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{eval("e0")}})
	done := eval("e0")
	done.Status = cluster.EvalComplete
	plan := cluster.Plan{At: time.Now(), SnapshotIndex: index, Eval: done}
	current := fsm.Store().Snapshot().Job(webKey)
	healthy := true
	var reports []cluster.AllocReport
	for i := range allocs {
		id, on := cluster.AllocID(fmt.Sprint("a", i)), cluster.NodeID(fmt.Sprint("n", i/perNode))
		plan.Places = append(plan.Places, &cluster.Allocation{
			ID: id, Namespace: "default", JobID: "web", Job: current, TaskGroup: "g", NodeID: on, Name: fmt.Sprintf("web.g[%d]", i),
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, CreateTime: time.Now(),
		})
		reports = append(reports, cluster.AllocReport{Alloc: id, Node: on, ClientStatus: cluster.ClientRunning, Healthy: &healthy, At: time.Now()})
	}
	apply(&shims.ApplyPlan{Plan: plan})
	apply(&shims.AllocClientUpdate{Reports: reports})
	for i := 0; i < allocs/perNode; i += 10 {
		id := cluster.NodeID(fmt.Sprint("n", i))
		apply(&shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{Node: id, Drain: cluster.DrainID("d" + id), Spec: new(cluster.DrainSpec), At: time.Now()}})
	}
	const entries = 500
	for range entries {
		apply(&shims.AllocClientUpdate{Reports: reports[:1]})
	}
	return all[len(all)-entries:]
}
