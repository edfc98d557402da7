package telemetry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// BenchmarkAudit measures the cost of the most frequent entry: a report on one allocation of a
// job of that size, with one in ten nodes draining. The second figure is the cost for raft's
// goroutine.
func BenchmarkAudit(b *testing.B) {
	for _, allocs := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(allocs), func(b *testing.B) {
			entries := reportsOf(b, allocs)
			t, err := telemetry.New(telemetry.Options{})
			must.NoError(b, err)
			var handing time.Duration
			for i := 0; b.Loop(); i++ { // a new witness starts at each return to the first
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

// reportsOf returns consecutive entries.
func reportsOf(b *testing.B, allocs int) (reported []shims.Applied) {
	b.Helper()
	var all []shims.Applied
	l := clustertest.NewReplica(b, shims.FSMConfig{OnApply: func(a shims.Applied) { all = append(all, a) }})
	const perNode = 10
	for i := range allocs / perNode {
		l.Nodes(cluster.NodeID(fmt.Sprint("n", i)))
	}
	job := l.Job(webJob(allocs))
	var places []*cluster.Allocation
	var ids []cluster.AllocID
	for i := range allocs {
		ids = append(ids, cluster.AllocID(fmt.Sprint("a", i)))
		places = append(places, clustertest.Alloc(job, ids[i], cluster.NodeID(fmt.Sprint("n", i/perNode)), time.Now()))
	}
	l.Plan(job, nil, places...)
	l.Report(cluster.ClientRunning, ids...)
	for i := 0; i < allocs/perNode; i += 10 {
		l.Drain(cluster.NodeID(fmt.Sprint("n", i)), new(cluster.DrainSpec))
	}
	const entries = 500
	for range entries {
		l.Report(cluster.ClientRunning, ids[0])
	}
	return all[len(all)-entries:]
}
