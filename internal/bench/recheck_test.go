package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// figureRecheck: the re-check of marks at apply costs no more than the write, for each class of
// marks.
func figureRecheck(b *testing.B) {
	run := func(name string, c recheckCase) {
		b.Run(fmt.Sprintf("%sjobs-of-%d/%d-ids-a-job", name, c.jobSize, c.perJob), c.compare)
	}
	unhealthy := func(a *cluster.Allocation) { *a.DeploymentStatus.Healthy = false }
	overdue := func(a *cluster.Allocation) { a.DeploymentStatus, a.CreateTime = nil, epoch.Add(-time.Hour) }
	canary := func(a *cluster.Allocation) { a.DeploymentStatus.Canary = true }
	for _, jobSize := range []int{100, 1000} {
		for _, perJob := range []int{1, 10, 100} {
			run("", recheckCase{jobSize: jobSize, perJob: perJob, class: cluster.MarkPaced})
			run("free/", recheckCase{jobSize: jobSize, perJob: perJob, class: cluster.MarkFree, alloc: unhealthy})
		}
		run("overdue/", recheckCase{jobSize: jobSize, perJob: 1, class: cluster.MarkFree, alloc: overdue})
		run("canary/", recheckCase{jobSize: jobSize, perJob: 1, class: cluster.MarkCanary, alloc: canary})
		run("proceed/", recheckCase{jobSize: jobSize, perJob: 1, class: cluster.MarkProceed})
		run("reevaluate/", recheckCase{jobSize: jobSize, perJob: 1, class: cluster.MarkPaced, reevaluate: true})
	}
}

// recheckMarks is the number of marks of one measurement, if the cluster has as many.
const recheckMarks = 5000

// recheckCase is a cluster in which all nodes drain, with the marks to apply.
type recheckCase struct {
	jobSize, perJob int
	class           cluster.MarkClass
	// alloc changes each allocation so that its mark has the class, or is nil.
	alloc func(*cluster.Allocation)
	// reevaluate means that the allocations are already marked and still run. The entries request
	// new evaluations of their jobs.
	reevaluate bool
}

// compare compares entries with and without the re-check.
func (c recheckCase) compare(b *testing.B) {
	jobs := min(recheckMarks/c.perJob, maxAllocs(b)/c.jobSize)
	t := newCluster(b, clusterPlan{
		nodes: 50, perNode: jobs * c.jobSize / 50, jobSize: c.jobSize, layout: ranked, job: cluster.JobService, maxParallel: c.perJob, alloc: c.alloc,
	})
	if c.class == cluster.MarkProceed {
		t.scaleUp(c.perJob)
	}
	apply := func(recheck bool) measure.Side {
		return func() func(*measure.Meter) {
			t.restartDrains()
			entries := t.marksOf(c.perJob, drainer.DefaultMaxIDsPerEntry)
			c.classify(entries)
			if c.reevaluate {
				t.applyMarksOnly(entries)
			}
			return func(*measure.Meter) {
				for _, m := range entries {
					t.edit(func(txn *statestore.Txn) {
						accepted, evals := m.Marks, m.Evals
						if recheck {
							var refused []rules.Refusal
							accepted, evals, refused = rules.Recheck(txn.State().DrainView(), m)
							must.Len(b, 0, refused)
							must.Len(b, len(m.Evals), evals)
						}
						must.NoError(b, txn.ApplyMarks(m.At, accepted, evals))
					})
				}
			}
		}
	}
	measure.Figure(b, apply(false), apply(true)).Report(b)
}

// classify gives the marks the case's class.
func (c recheckCase) classify(entries []*rules.Marks) {
	for _, m := range entries {
		if c.class == cluster.MarkProceed {
			m.Policy.BelowBudget = rules.BelowBudgetProceed
		}
		for i := range m.Marks {
			m.Marks[i].Class = c.class
		}
	}
}

// scaleUp raises the count of every job, so that its group is below its budget.
func (t *testCluster) scaleUp(by int) {
	for job := range t.fsm.Store().Snapshot().Jobs() {
		larger := job.Copy()
		larger.TaskGroups[0].Count += by
		t.edit(func(txn *statestore.Txn) { must.NoError(t.tb, txn.UpsertJob(larger)) })
	}
}

// applyMarksOnly applies the marks of the entries without evaluations, and changes the entries to
// requests for evaluations. The allocations are then marked and run, and no open evaluation will stop
// them.
func (t *testCluster) applyMarksOnly(entries []*rules.Marks) {
	for _, m := range entries {
		t.edit(func(txn *statestore.Txn) { must.NoError(t.tb, txn.ApplyMarks(m.At, m.Marks, nil)) })
		for _, mark := range m.Marks {
			m.Reevaluate = append(m.Reevaluate, mark.Group)
		}
		m.Reevaluate, m.Marks = slices.Compact(m.Reevaluate), nil
	}
}

// restartDrains starts a new drain without marks on every node that has marks or no drain,
// and completes the evaluations.
func (t *testCluster) restartDrains() {
	for _, n := range t.nodes {
		drain := t.fsm.Store().Snapshot().Node(n).Drain
		if drain != nil && drain.Marked == (cluster.Drain{}).Marked {
			continue
		}
		t.edit(func(txn *statestore.Txn) {
			for _, u := range []cluster.DrainUpdate{
				{Node: n, At: epoch}, // cancels a running drain and removes its marks
				{Node: n, At: epoch, Spec: &cluster.DrainSpec{}, Drain: cluster.DrainID(fmt.Sprintf("drain-%s-%d", n, t.index))},
			} {
				_, err := txn.UpdateNodeDrain(u)
				must.NoError(t.tb, err)
			}
		})
	}
	t.edit(func(txn *statestore.Txn) {
		var done []*cluster.Evaluation
		for e := range txn.State().WorkView().PendingEvals() {
			c := e.Copy()
			c.Status = cluster.EvalComplete
			done = append(done, c)
		}
		must.NoError(t.tb, txn.UpsertEvals(done))
	})
	must.True(t.tb, t.fsm.Store().Snapshot().Node(t.nodes[0]).Draining())
}

// marksOf returns entries with perJob marks of each job and at most bound ids each. Together they have
// about recheckMarks marks.
func (t *testCluster) marksOf(perJob, bound int) []*rules.Marks {
	state := t.fsm.Store().Snapshot()
	var entries []*rules.Marks
	m := &rules.Marks{At: epoch}
	total := 0
	for job := range state.Jobs() {
		if total >= recheckMarks {
			break
		}
		if len(m.Marks)+len(m.Evals)+perJob+1 > bound && len(m.Marks) > 0 {
			entries = append(entries, m)
			m = &rules.Marks{At: epoch}
		}
		marked := 0
		for a := range state.DrainView().GroupAllocs(cluster.GroupKey{Job: job.Key(), Name: "g"}) {
			if marked == perJob {
				break
			}
			must.False(t.tb, a.Leaving())
			marked++
			n := state.Node(a.NodeID)
			m.Marks = append(m.Marks, rules.Mark{
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

// maxAllocs returns the largest number of allocations of a cluster.
func maxAllocs(b *testing.B) int {
	if measure.SizeOf(b) == measure.Full {
		return 200_000
	}
	return 20_000
}
