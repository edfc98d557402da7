package scheduler_test

import (
	"math"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
)

// A preview stops and places what the scheduler stops and places after the registration.
func TestPreview(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			n1 := c.node("n1")
			c.node("n2")
			count := 3
			if kind.EveryNode() {
				count = 1
			}
			key := c.job("web", kind, count)
			c.run()
			c.drain(n1)
			c.mark(cluster.MarkDeadline, pick(c.wanted(key), on(n1))...)
			c.node("n3")

			job := c.view().Job(key).Copy()
			job.TaskGroups[0].Tasks[0].Resources.CPU++
			if !kind.EveryNode() {
				job.TaskGroups[0].Count = 5
			}
			before := c.index
			preview := scheduler.Preview(c.view().WorkView(), job, c.now, math.MaxInt)
			must.Eq(t, before, c.view().Index())
			must.NotEq(t, 0, len(preview.Places))

			c.edit(key, func(j *cluster.Job) { *j = *job.Copy() })
			evals := slices.Collect(c.view().WorkView().OpenEvals(key))
			plan := scheduler.Schedule(c.view().WorkView(), evals[len(evals)-1], c.now, c.ids())
			must.Eq(t, plan.Stops, preview.Stops)
			must.Eq(t, namesOf(plan.Places), namesOf(preview.Places))
			must.Eq(t, nodesOf(plan.Places), nodesOf(preview.Places))
			must.Eq(t, plan.Eval.Queued, preview.Eval.Queued)
		})
	}
}

// A preview is bounded: a job may want a million allocations.
func TestPreview_bounded(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	key := c.job("web", cluster.JobService, 3)
	must.Len(t, 2, scheduler.Preview(c.view().WorkView(), c.view().Job(key), c.now, 2).Places)
}
