package scheduler_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// request requests a replacement beside each allocation, for the drain of its node.
func request(c *cell, allocs ...*cluster.Allocation) {
	var marks []rules.Mark
	var evals []*cluster.Evaluation
	for _, a := range allocs {
		m := clustertest.Mark(c.view().Node(a.NodeID), a, cluster.MarkPaced)
		m.Surge = true
		marks = append(marks, m)
		evals = append(evals, scheduler.JobEval(a.Job, cluster.TriggerNodeDrain, c.now, c.evalID()))
	}
	c.write(func(txn *statestore.Txn) error { return txn.ApplyMarks(c.now, marks, evals) })
}

// beside returns a cell with one healthy allocation on a draining node n1, for which a drain has requested a
// replacement, and a node n2 with room.
func beside(t *testing.T, edit ...func(*cluster.Job)) (c *cell, job cluster.JobKey, original *cluster.Allocation) {
	t.Helper()
	c, n1, job := running(t, "web", cluster.JobService, 1, edit...)
	c.node("n2")
	c.settle()
	c.drain(n1)
	request(c, c.wanted(job)[0])
	return c, job, c.wanted(job)[0]
}

// standbys are the standby allocations of a job that have not ended.
func standbys(c *cell, k cluster.JobKey) []*cluster.Allocation {
	return pick(c.wanted(k), func(a *cluster.Allocation) bool { return a.Standby })
}

func TestStandby_replacesBeforeTheStop(t *testing.T) {
	c, job, original := beside(t)
	c.settle()
	standby := standbys(c, job)[0]
	must.Len(t, 2, c.wanted(job))
	must.Eq(t, original.Name, standby.Name)
	must.Eq(t, original.ID, standby.PreviousAllocation)
	must.Eq(t, standby.ID, c.alloc(original.ID).NextAllocation)
	must.Eq(t, "n2", standby.NodeID)

	c.run()
	must.Len(t, 2, c.wanted(job), must.Sprint("nothing changes until the drain marks the original"))
	must.Eq(t, 1, c.view().DrainView().Healthy(original.GroupKey()), must.Sprint("a standby counts for no budget"))

	c.mark(cluster.MarkPaced, c.alloc(original.ID))
	must.False(t, c.alloc(standby.ID).Standby)
	must.Eq(t, 1, c.view().DrainView().Healthy(original.GroupKey()))
	c.settle()
	must.Eq(t, cluster.DescMigrating, c.alloc(original.ID).DesiredDescription)
	c.run()
	must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
	must.Eq(t, standby.ID, c.wanted(job)[0].ID)
}

func TestStandby_waitsForRoom(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1)
	c.drain(n1)
	request(c, c.wanted(job)[0])
	c.settle()
	must.Len(t, 1, c.wanted(job))
	blocked := first(c.view().WorkView().BlockedEvals())
	must.Eq(t, map[string]int{"g": 1}, blocked.Queued)
	c.node("n2")
	c.run()
	must.Len(t, 1, standbys(c, job))
}

// A standby that ends is replaced by a standby, at the pace of the group's policy. The whole chain is active when the
// original leaves.
func TestStandby_failsAndIsReplaced(t *testing.T) {
	c, job, original := beside(t)
	c.settle()
	firstStandby := standbys(c, job)[0]
	c.report(c.statusReport(firstStandby, cluster.ClientFailed))
	c.settle()
	second := standbys(c, job)[0]
	must.Eq(t, firstStandby.ID, second.PreviousAllocation)
	must.Len(t, 2, c.wanted(job))
	c.run()
	c.mark(cluster.MarkPaced, c.alloc(original.ID))
	must.False(t, c.alloc(second.ID).Standby)
	must.False(t, c.alloc(firstStandby.ID).Standby)
	c.run()
	must.Eq(t, second.ID, c.wanted(job)[0].ID)
	must.Len(t, 1, c.wanted(job))
}

func TestStandby_isLostWithItsNode(t *testing.T) {
	c, job, _ := beside(t)
	c.run()
	gone := standbys(c, job)[0]
	c.node("n3")
	c.status("n2", cluster.NodeDown)
	c.run()
	must.Eq(t, cluster.ClientLost, c.alloc(gone.ID).ClientStatus)
	must.Eq(t, []cluster.NodeID{"n3"}, nodesOf(standbys(c, job)))
	must.Len(t, 2, c.wanted(job))
}

// A cancel stops the standby first, and the original stays. Another drain can request a replacement again.
func TestStandby_isStoppedAfterACancel(t *testing.T) {
	c, job, original := beside(t)
	c.run()
	standby := standbys(c, job)[0]
	c.cancel(original.NodeID)
	c.run()
	must.Eq(t, cluster.DescOriginalStays, c.alloc(standby.ID).DesiredDescription)
	must.False(t, c.alloc(standby.ID).Standby, must.Sprint("nothing keeps its row"))
	must.Eq(t, original.ID, c.wanted(job)[0].ID)
	must.Len(t, 1, c.wanted(job))
	must.Eq(t, "", c.alloc(original.ID).NextAllocation)

	c.drain(original.NodeID)
	request(c, c.alloc(original.ID))
	c.run()
	must.Len(t, 1, standbys(c, job))
}

// A standby that has ended before a cancel leaves no link: another drain can request a replacement again.
func TestStandby_hasEndedBeforeACancel(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*cell, *cluster.Allocation){
		"fails":   func(c *cell, a *cluster.Allocation) { c.report(c.statusReport(a, cluster.ClientFailed)) },
		"is lost": func(c *cell, a *cluster.Allocation) { c.status(a.NodeID, cluster.NodeDown); c.settle() },
	}
	for name, end := range ends { //lint:order each case by itself
		t.Run(name, func(t *testing.T) {
			c, job, original := beside(t)
			c.run()
			standby := standbys(c, job)[0]
			end(c, standby)
			c.cancel(original.NodeID)
			c.run()
			must.Eq(t, "", c.alloc(original.ID).NextAllocation)
			must.False(t, c.alloc(standby.ID).Standby)
			must.Eq(t, original.ID, c.wanted(job)[0].ID)
			must.Len(t, 1, c.wanted(job))
			c.node("n3")
			c.drain(original.NodeID)
			request(c, c.alloc(original.ID))
			c.run()
			must.Len(t, 1, standbys(c, job))
		})
	}
}

// The standby takes the slot of an original that ends, and nothing else is placed.
func TestStandby_takesTheSlotOfItsOriginal(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*cell, *cluster.Allocation){
		"fails":   func(c *cell, a *cluster.Allocation) { c.report(c.statusReport(a, cluster.ClientFailed)) },
		"is lost": func(c *cell, a *cluster.Allocation) { c.status(a.NodeID, cluster.NodeDown) },
		"is marked by hand": func(c *cell, a *cluster.Allocation) {
			c.write(func(txn *statestore.Txn) error { return txn.MigrateAlloc(a.ID, c.now) })
			c.evaluate(a.JobKey())
		},
	}
	for name, end := range ends { //lint:order each case by itself
		t.Run(name, func(t *testing.T) {
			c, job, original := beside(t)
			c.run()
			standby := standbys(c, job)[0]
			end(c, original)
			c.settle()
			must.False(t, c.alloc(standby.ID).Standby)
			c.run()
			must.Len(t, 1, c.wanted(job))
			must.Eq(t, standby.ID, c.wanted(job)[0].ID)
			must.Len(t, 2, c.allocs(job, func(*cluster.Allocation) bool { return true }), must.Sprint("nothing else was placed"))
		})
	}
}

func TestStandby_endsWithItsJob(t *testing.T) {
	c, job, _ := beside(t)
	c.run()
	c.stopJob(job, false)
	c.run()
	must.SliceEmpty(t, c.wanted(job))
}

// A group that shrinks stops an original together with its standby, or another allocation.
func TestStandby_ofAGroupThatShrinks(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 2)
	c.node("n2")
	c.settle()
	c.drain(n1)
	request(c, c.wanted(job)...)
	c.run()
	must.Len(t, 2, standbys(c, job))
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 1 })
	c.run()
	must.Len(t, 2, c.wanted(job))
	must.Len(t, 1, standbys(c, job))
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 3 })
	c.run()
	must.Len(t, 4, c.wanted(job), must.Sprint("three, and one standby"))
}

// A new version does not replace an original with a standby: the drain does. The standby is of the version that was
// present at its placement, and is replaced when it has the slot.
func TestStandby_duringARollout(t *testing.T) {
	c, job, original := beside(t)
	c.run()
	newVersion(c, job)
	c.run()
	must.Len(t, 2, c.wanted(job))
	must.Eq(t, cluster.DesiredRun, c.alloc(original.ID).DesiredStatus)
	c.mark(cluster.MarkPaced, c.alloc(original.ID))
	c.run()
	present, others, healthy := countVersions(c, job)
	must.Eq(t, []int{1, 0, 1}, []int{present, others, healthy})
}

// Without a place for the standby, a new version replaces the original.
func TestStandby_withoutAPlaceDuringARollout(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1)
	c.drain(n1)
	request(c, c.wanted(job)[0])
	c.settle()
	c.node("n2", func(n *cluster.Node) { n.Resources = cluster.Resources{} })
	newVersion(c, job)
	c.settle()
	must.SliceEmpty(t, c.wanted(job), must.Sprint("the update may take one down, and the new one has no place yet"))
}

// Plans that were made before a change are judged when they are applied.
func TestStandby_stalePlans(t *testing.T) {
	t.Parallel()
	t.Run("after a cancel", func(t *testing.T) {
		c, job, original := beside(t)
		plan := c.schedule(first(c.view().WorkView().PendingEvals()))
		c.cancel(original.NodeID)
		must.SliceNotEmpty(t, c.apply(plan))
		c.run()
		must.Len(t, 1, c.wanted(job))
	})
	t.Run("after a mark", func(t *testing.T) {
		c, job, original := beside(t)
		plan := c.schedule(first(c.view().WorkView().PendingEvals()))
		c.mark(cluster.MarkDeadline, original)
		must.SliceNotEmpty(t, c.apply(plan))
		c.run()
		must.Len(t, 1, c.wanted(job))
	})
	t.Run("twice", func(t *testing.T) {
		c, job, _ := beside(t)
		e := first(c.view().WorkView().PendingEvals())
		plan, again := c.schedule(e), c.schedule(e)
		must.SliceEmpty(t, c.apply(plan))
		c.evaluate(job)
		again.Eval = first(c.view().WorkView().PendingEvals()).Copy()
		must.SliceNotEmpty(t, c.apply(again))
		must.Len(t, 1, standbys(c, job))
	})
	t.Run("a stop of what a drain requests", func(t *testing.T) {
		c, job, original := beside(t)
		c.run()
		c.cancel(original.NodeID)
		plan := c.schedule(first(c.view().WorkView().PendingEvals()))
		must.SliceNotEmpty(t, plan.Stops)
		c.drain(original.NodeID)
		request(c, c.alloc(original.ID))
		must.SliceNotEmpty(t, c.apply(plan))
		must.Len(t, 1, standbys(c, job))
	})
}
