package main

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// figureStore: a row of the drainer's largest entries costs no more than a row of an entry of ten
// rows: nine marks of a job and their evaluation.
func figureStore(b *testing.B) {
	const small, large = 10, drainer.DefaultMaxIDsPerEntry
	nodes := 5000
	if measure.SizeOf(b) == measure.Full {
		nodes = 50_000
	}
	// Nodes have few allocations, so that removing their marks for the next measurement is fast.
	t := newCluster(b, clusterPlan{nodes: nodes, perNode: 10, jobSize: 100, job: cluster.JobService, maxParallel: small - 1})
	side := func(bound int) measure.Side {
		return func() func(*measure.Meter) {
			t.restartDrains()
			entries := t.marksOf(small-1, bound)
			must.Eq(b, bound, len(entries[0].Marks)+len(entries[0].Evals))
			return func(*measure.Meter) {
				for _, m := range entries {
					t.edit(func(txn *statestore.Txn) { must.NoError(b, txn.ApplyMarks(m.At, m.Marks, m.Evals)) })
				}
			}
		}
	}
	measure.Figure(b, side(small), side(large)).Report(b)
}
