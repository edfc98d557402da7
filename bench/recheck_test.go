package main

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// figureRecheck: judging marks again when they are applied costs no more than writing
// them.
func figureRecheck(b *testing.B) {
	for _, jobSize := range []int{100, 1000} {
		for _, perJob := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("jobs-of-%d/%d-ids-a-job", jobSize, perJob), func(b *testing.B) { compareRecheck(b, jobSize, perJob) })
		}
	}
}

// recheckMarks is how many marks are applied in one measurement, if there are as many.
const recheckMarks = 5000

// compareRecheck compares entries of marks that are judged with entries that are not.
func compareRecheck(b *testing.B, jobSize, perJob int) {
	jobs := min(recheckMarks/perJob, maxAllocs(b)/jobSize)
	t := newTown(b, townPlan{nodes: 50, perNode: jobs * jobSize / 50, jobSize: jobSize, job: cluster.JobService, maxParallel: perJob})
	apply := func(judge bool) measure.Side {
		return func() func(*measure.Meter) {
			t.drainAgain()
			entries := t.marksOf(perJob, drainer.DefaultMaxIDsPerEntry)
			return func(*measure.Meter) {
				for _, m := range entries {
					t.edit(func(txn *statestore.Txn) {
						accepted, evals := m.Marks, m.Evals
						if judge {
							var refused []drainer.Refusal
							accepted, evals, refused = drainer.Recheck(txn, m)
							must.Len(b, 0, refused)
						}
						must.NoError(b, txn.ApplyMarks(m.At, accepted, evals))
					})
				}
			}
		}
	}
	measure.Compare(measure.PairsOf(b), apply(false), apply(true)).Report(b)
}

// drainAgain has every node drain with nothing marked yet.
func (t *town) drainAgain() {
	for _, n := range t.nodes {
		t.edit(func(txn *statestore.Txn) {
			for _, u := range []statestore.DrainUpdate{
				{Node: n, At: epoch}, // ends the drain that there may be, and withdraws its marks
				{Node: n, At: epoch, Spec: &cluster.DrainSpec{}, Drain: cluster.DrainID(fmt.Sprintf("drain-%s-%d", n, t.index))},
			} {
				_, err := txn.UpdateNodeDrain(u)
				must.NoError(t.tb, err)
			}
		})
	}
	must.True(t.tb, t.fsm.Store().Snapshot().Node(t.nodes[0]).Draining())
}

// marksOf are entries with so many marks of each job, each as large as it may be, until
// there are enough of them.
func (t *town) marksOf(perJob, bound int) []*drainer.Marks {
	state := t.fsm.Store().Snapshot()
	var entries []*drainer.Marks
	m := &drainer.Marks{At: epoch}
	total := 0
	for job := range state.Jobs() {
		if total >= recheckMarks {
			break
		}
		if len(m.Marks)+len(m.Evals)+perJob+1 > bound && len(m.Marks) > 0 {
			entries = append(entries, m)
			m = &drainer.Marks{At: epoch}
		}
		marked := 0
		for a := range state.GroupAllocs(cluster.GroupKey{Job: job.Key(), Name: "g"}) {
			if marked == perJob {
				break
			}
			must.False(t.tb, a.Asked())
			marked++
			n := state.Node(a.NodeID)
			m.Marks = append(m.Marks, drainer.Mark{
				Alloc: a.ID, Group: a.GroupKey(), Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: cluster.MarkPaced,
			})
		}
		total += marked
		m.Evals = append(m.Evals, &cluster.Evaluation{
			ID: cluster.EvalID(fmt.Sprintf("mark-%d-%d", t.index, total)), Namespace: job.Namespace, JobID: job.ID, Type: job.Type, Priority: job.Priority,
			TriggeredBy: cluster.TriggerNodeDrain, Status: cluster.EvalPending, CreateTime: epoch, ModifyTime: epoch,
		})
	}
	return append(entries, m)
}

// maxAllocs is how many allocations a town may have.
func maxAllocs(b *testing.B) int {
	if measure.SizeOf(b) == measure.Full {
		return 500_000
	}
	return 20_000
}
