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
	// The smaller the jobs the more of them there are to know something of. What may be
	// held for nodes and allocations is not enough for as many jobs as allocations: of those
	// it is told, and what they are held to is the bound that knows of groups.
	for _, c := range []struct {
		name                 string
		maxParallel, jobSize int
	}{{"jobs", 1, 100}, {"jobs", 1, 10}, {"jobs", 100, 100}, {"singles", 1, 1}} {
		b.Run(fmt.Sprintf("%s/max_parallel=%d/jobs-of-%d", c.name, c.maxParallel, c.jobSize), func(b *testing.B) {
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
			if c.jobSize > 1 {
				measure.Ratio{Median: share, Low: share, High: share}.ReportAs(b, "held-"+measure.UnitRatio)
			} else {
				measure.Count(b, share, "of-nodes-and-allocations")
			}
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
