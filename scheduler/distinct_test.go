package scheduler_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
)

func apart(j *cluster.Job) { j.DistinctHosts = true }

// perNode counts the allocations of a job that should run, by node.
func perNode(c *cell, k cluster.JobKey) map[cluster.NodeID]int {
	counts := map[cluster.NodeID]int{}
	for _, a := range c.wanted(k) {
		counts[a.NodeID]++
	}
	return counts
}

// A job with distinct_hosts has one allocation on a node at most. The others wait for a node.
func TestDistinctHosts(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	c.node("n1")
	c.node("n2")
	job := c.job("web", cluster.JobService, 3, apart)
	c.run()
	must.Eq(t, map[cluster.NodeID]int{"n1": 1, "n2": 1}, perNode(c, job))
	c.node("n3")
	c.run()
	must.Eq(t, map[cluster.NodeID]int{"n1": 1, "n2": 1, "n3": 1}, perNode(c, job))

	// A rollout on nodes that are all occupied replaces each allocation on its node.
	newVersion(c, job)
	c.run()
	present, others, _ := countVersions(c, job)
	must.Eq(t, []int{3, 0}, []int{present, others})
	must.Eq(t, map[cluster.NodeID]int{"n1": 1, "n2": 1, "n3": 1}, perNode(c, job))
}

// The constraint of a job is for all its groups, that of a group for the group alone.
func TestDistinctHosts_ofAGroup(t *testing.T) {
	t.Parallel()
	twoGroups := func(j *cluster.Job) {
		second := j.TaskGroups[0].Copy()
		second.Name = "second"
		j.TaskGroups = append(j.TaskGroups, second)
	}
	for name, test := range map[string]struct {
		edit func(*cluster.Job)
		want int
	}{
		"of the job": {func(j *cluster.Job) { twoGroups(j); apart(j) }, 2},
		"of the groups": {func(j *cluster.Job) {
			twoGroups(j)
			j.TaskGroups[0].DistinctHosts, j.TaskGroups[1].DistinctHosts = true, true
		}, 4},
		"of one group": {func(j *cluster.Job) {
			j.TaskGroups[0].DistinctHosts = true
			twoGroups(j)
			j.TaskGroups[1].DistinctHosts = false
		}, 5},
		"of a system job": {func(j *cluster.Job) { j.Type = cluster.JobSystem; twoGroups(j); apart(j) }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCell(t)
			c.node("n1")
			c.node("n2")
			job := c.job("web", cluster.JobService, 3, test.edit)
			c.run()
			must.Len(t, test.want, c.wanted(job))
		})
	}
}

// A plan with two allocations on one node is not applied as a whole.
func TestDistinctHosts_isJudgedAgain(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 2)
	plan := c.schedule(first(c.view().WorkView().PendingEvals()))
	must.Len(t, 2, plan.Places)
	apartNow := c.view().Job(job).Copy()
	apart(apartNow)
	c.register(apartNow)
	plan.SnapshotIndex = c.index
	plan.Eval = first(c.view().WorkView().PendingEvals())
	_, refused := scheduler.Check(c.view().WorkView(), plan)
	must.Len(t, 1, refused)
	must.StrContains(t, refused[0].Why, "the job has distinct_hosts")
	refused = c.apply(plan)
	must.Len(t, 1, refused)
	must.Len(t, 1, c.wanted(job))
	plan.Places = plan.Places[1:]
	c.evaluate(job)
	plan.SnapshotIndex, plan.Eval = c.index, first(c.view().WorkView().PendingEvals())
	_, refused = scheduler.Check(c.view().WorkView(), plan)
	must.Len(t, 1, refused)
	must.StrContains(t, refused[0].Why, "has allocation")
}
