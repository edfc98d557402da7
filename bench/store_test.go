package main

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// figureStore: a row costs no more in an entry as large as the drainer writes them than
// in one of ten rows. Nine marks of a job and their evaluation are ten.
func figureStore(b *testing.B) {
	const small, large = 10, drainer.DefaultMaxIDsPerEntry
	nodes := 500
	if measure.SizeOf(b) == measure.Full {
		nodes = 5000
	}
	t := newTown(b, townPlan{nodes: nodes, perNode: 100, jobSize: 100, job: cluster.JobService, maxParallel: small - 1})
	side := func(bound int) measure.Side {
		return func() func(*measure.Meter) {
			t.drainAgain()
			entries := t.marksOf(small-1, bound)
			must.Eq(b, bound, len(entries[0].Marks)+len(entries[0].Evals))
			return func(*measure.Meter) {
				for _, m := range entries {
					t.edit(func(txn *statestore.Txn) { must.NoError(b, txn.ApplyMarks(m.At, m.Marks, m.Evals)) })
				}
			}
		}
	}
	measure.Compare(measure.PairsOf(b), side(small), side(large)).Report(b)
}
