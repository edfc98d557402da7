package main

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// figureMemory: the memory of a term that drains many nodes with services, after it has planned all
// marks and before any is applied.
func figureMemory(b *testing.B) {
	const nodes, perNode = 1000, 50
	// The drainer tracks more groups if jobs are smaller. With jobs of one allocation it needs more
	// memory than the bound for nodes and allocations allows. For these only the bound that includes
	// groups applies.
	for _, c := range []struct {
		name                 string
		maxParallel, jobSize int
	}{{"jobs", 1, 100}, {"jobs", 1, 10}, {"jobs", 100, 100}, {"singles", 1, 1}} {
		b.Run(fmt.Sprintf("%s/max_parallel=%d/jobs-of-%d", c.name, c.maxParallel, c.jobSize), func(b *testing.B) {
			t := newCluster(b, clusterPlan{nodes: nodes, perNode: perNode, jobSize: c.jobSize, job: cluster.JobService, maxParallel: c.maxParallel})
			t.drain(nodes, cluster.DrainSpec{Deadline: time.Hour})
			before := heapInUse()
			l := lead(t)
			l.term.Step(epoch)
			l.commit() // the barrier
			for l.step(epoch) {
			}
			held := heapInUse() - before
			if l.writes == 0 || len(l.log) == 0 {
				b.Fatal("nothing is in flight")
			}
			measure.Count(b, held, "bytes")
			const base, group = 2048*nodes + 100*nodes*perNode, 300
			share := float64(held) / base
			if c.jobSize > 1 {
				measure.Ratio{Median: share, Low: share, High: share}.ReportAs(b, "held-"+measure.UnitRatio)
			} else {
				measure.Count(b, share, "of-nodes-and-allocations")
			}
			share = float64(held) / float64(base+group*nodes*perNode/c.jobSize)
			measure.Ratio{Median: share, Low: share, High: share}.ReportAs(b, "held-of-all-"+measure.UnitRatio)
			runtime.KeepAlive(t)
			l.term.Close()
		})
	}
}

// heapInUse returns the size of the live heap.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
