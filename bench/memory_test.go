package main

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// figureMemory: what a term holds while it drains many nodes full of services, at the
// moment when it has planned what it can and nothing of it is applied yet.
func figureMemory(b *testing.B) {
	const nodes, perNode = 1000, 50
	// The smaller the jobs the more of them there are to know something of.
	for _, c := range []struct{ maxParallel, jobSize int }{{1, 100}, {1, 10}, {1, 1}, {100, 100}} {
		b.Run(fmt.Sprintf("max_parallel=%d/jobs-of-%d", c.maxParallel, c.jobSize), func(b *testing.B) {
			t := newTown(b, townPlan{nodes: nodes, perNode: perNode, jobSize: c.jobSize, job: cluster.JobService, maxParallel: c.maxParallel})
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
			const asked, group = 2048*nodes + 100*nodes*perNode, 300
			share := float64(held) / asked
			measure.Ratio{Median: share, Low: share, High: share}.ReportAs(b, "held-"+measure.UnitRatio)
			share = float64(held) / float64(asked+group*nodes*perNode/c.jobSize)
			measure.Ratio{Median: share, Low: share, High: share}.ReportAs(b, "held-of-all-"+measure.UnitRatio)
			runtime.KeepAlive(t)
			l.term.Close()
		})
	}
}

// heapInUse is what is reachable.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
