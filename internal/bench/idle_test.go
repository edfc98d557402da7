package main

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// figureIdle: the drainer does nothing while nothing changes. The nodes run batch jobs, which a
// drain marks only at its deadline in an hour.
func figureIdle(b *testing.B) {
	const nodes, minutes = 1000, 10
	l := lead(newCluster(b, clusterPlan{nodes: nodes, perNode: 5, jobSize: 50, job: cluster.JobBatch}))
	defer l.term.Close()
	l.drain(nodes, cluster.DrainSpec{Deadline: time.Hour})
	l.runUntilIdle(epoch)
	if n := len(l.status()); n != nodes {
		b.Fatalf("%d drains run, not %d", n, nodes)
	}
	l.steps, l.writes = 0, 0
	for second := range minutes * 60 {
		for now := epoch.Add(time.Duration(second+1) * time.Second); l.step(now) || l.commit(); {
		}
	}
	measure.Count(b, l.steps, "steps")
	measure.Count(b, l.writes, "writes")
}
