package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func TestServiceKeepsItsCount(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	c.node("n2")
	job := c.job("web", cluster.JobService, 4)
	c.run()
	must.Eq(t, []string{"web.g[0]", "web.g[1]", "web.g[2]", "web.g[3]"}, namesOf(c.wanted(job)))
	must.Eq(t, []cluster.NodeID{"n1", "n1", "n2", "n2"}, nodesOf(c.wanted(job)))

	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 6 })
	c.run()
	must.Len(t, 6, c.wanted(job))

	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
	c.run()
	must.Eq(t, []string{"web.g[0]", "web.g[1]"}, namesOf(c.wanted(job)))
	for _, a := range c.allocs(job, (*cluster.Allocation).ServerTerminal) {
		must.Eq(t, cluster.DescNotNeeded, a.DesiredDescription)
	}

	c.stopJob(job, false)
	c.run()
	must.SliceEmpty(t, c.wanted(job))
	must.Nil(t, first(c.view().WorkView().OpenEvals(job)))
}

func TestRemovedGroupStops(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 2)
	c.run()
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Name = "renamed" })
	c.run()
	must.Eq(t, []string{"web.renamed[0]", "web.renamed[1]"}, namesOf(c.wanted(job)))
	must.Len(t, 2, c.allocs(job, func(a *cluster.Allocation) bool {
		return a.TaskGroup == "g" && a.DesiredDescription == cluster.DescNotNeeded && a.ClientTerminal()
	}))
}

func TestDrainingAloneMovesNothing(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	service, batch, system := c.job("web", cluster.JobService, 2), c.job("sum", cluster.JobBatch, 2), c.job("log", cluster.JobSystem, 1)
	c.run()
	c.node("n2")
	c.drain(n1)
	for _, job := range []cluster.JobKey{service, batch, system} {
		c.evaluate(job)
	}
	c.run()
	must.Len(t, 2, pick(c.wanted(service), on(n1)))
	must.Len(t, 2, pick(c.wanted(batch), on(n1)))
	must.Len(t, 1, pick(c.wanted(system), on(n1)))
}

// Row 103: a marked service allocation is stopped, and replaced under its name
// by one that is linked to it.
func TestMarkedServiceIsReplaced(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 2)
	c.node("n2")
	c.drain(n1)
	old := c.wanted(job)[1]
	c.mark(cluster.MarkPaced, old)
	c.settle()

	old = c.alloc(old.ID)
	must.Eq(t, cluster.DesiredStop, old.DesiredStatus)
	must.Eq(t, cluster.DescMigrating, old.DesiredDescription)
	must.Eq(t, cluster.ClientRunning, old.ClientStatus)
	replacement := c.alloc(old.NextAllocation)
	must.Eq(t, old.ID, replacement.PreviousAllocation)
	must.Eq(t, "web.g[1]", replacement.Name)
	must.Eq(t, "n2", replacement.NodeID)
	must.Eq(t, cluster.ClientPending, replacement.ClientStatus)
	must.Eq(t, cluster.DesiredRun, replacement.DesiredStatus)
	must.Eq(t, old.StoppedAt, replacement.CreateTime)
	must.False(t, replacement.Marked())
	must.Nil(t, replacement.DeploymentStatus)
}

// Row 104: a group that grows while it drains gets its replacements and more,
// one that shrinks gives up its marked allocations first.
func TestScaledWhileDraining(t *testing.T) {
	for name, test := range map[string]struct {
		count        int
		migrated     int
		descriptions []string
	}{
		"up":   {count: 6, migrated: 2},
		"down": {count: 3, migrated: 1},
		"far":  {count: 1, migrated: 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := parallel(t)
			n1 := c.node("n1")
			n2 := c.node("n2")
			job := c.job("web", cluster.JobService, 4)
			c.run()
			c.drain(n1)
			c.mark(cluster.MarkPaced, pick(c.wanted(job), on(n1))...)
			c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = test.count })
			c.run()
			must.Len(t, test.count, c.wanted(job))
			must.Len(t, test.count, pick(c.wanted(job), on(n2)))
			must.Len(t, test.migrated, c.allocs(job, func(a *cluster.Allocation) bool {
				return on(n1)(a) && a.DesiredDescription == cluster.DescMigrating && a.NextAllocation != ""
			}))
			must.Len(t, 2-test.migrated, c.allocs(job, func(a *cluster.Allocation) bool {
				return on(n1)(a) && a.DesiredDescription == cluster.DescNotNeeded && a.NextAllocation == ""
			}))
		})
	}
}

// Row 105: a marked canary is replaced by a canary of its deployment, however
// late there is room for it.
func TestMarkedCanaryIsReplacedAsCanary(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1)
	old := c.seed(job, n1, canary)
	c.drain(n1)
	c.mark(cluster.MarkCanary, old)
	c.run()
	must.Eq(t, "", c.alloc(old.ID).NextAllocation)
	must.Eq(t, cluster.ClientComplete, c.alloc(old.ID).ClientStatus)
	must.NotNil(t, first(c.view().WorkView().BlockedEvals()))

	c.node("n2")
	c.run()
	replacement := c.alloc(c.alloc(old.ID).NextAllocation)
	must.True(t, replacement.Canary())
	must.Eq(t, "deployment-1", replacement.DeploymentID)
	must.Eq(t, old.Name, replacement.Name)
	must.Eq(t, "n2", replacement.NodeID)
	must.Len(t, 2, c.wanted(job))
	must.Nil(t, first(c.view().WorkView().BlockedEvals()))
}

// A canary that ended before it could be stopped is replaced all the same.
func TestEndedMarkedCanaryIsReplaced(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	c.node("n2")
	job := c.job("web", cluster.JobService, 0)
	old := c.seed(job, n1, canary, marked, func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientFailed })
	c.run()
	must.Eq(t, cluster.DescMigrating, c.alloc(old.ID).DesiredDescription)
	must.True(t, c.alloc(c.alloc(old.ID).NextAllocation).Canary())
	c.evaluate(job)
	c.run()
	must.Len(t, 1, c.wanted(job))
}

// Rows 106 and 107: a marked system or sysbatch allocation is stopped, and not
// placed again where it was; system comes back when its node does.
func TestMarkedOnEveryNode(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobSystem, cluster.JobSysBatch} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			n1 := c.node("n1")
			n2 := c.node("n2")
			job := c.job("log", kind, 1)
			c.run()
			must.Eq(t, []cluster.NodeID{n1, n2}, nodesOf(c.wanted(job)))
			c.drain(n1)
			old := pick(c.wanted(job), on(n1))[0]
			c.mark(cluster.MarkStage, old)
			c.run()
			must.Eq(t, cluster.DescTainted, c.alloc(old.ID).DesiredDescription)
			must.Eq(t, cluster.ClientComplete, c.alloc(old.ID).ClientStatus)
			must.Eq(t, []cluster.NodeID{n2}, nodesOf(c.wanted(job)))

			c.cancel(n1)
			c.run()
			if kind == cluster.JobSysBatch {
				must.Eq(t, []cluster.NodeID{n2}, nodesOf(c.wanted(job)))
				return
			}
			must.Eq(t, []cluster.NodeID{n1, n2}, nodesOf(c.wanted(job)))
			must.Eq(t, old.ID, pick(c.wanted(job), on(n1))[0].PreviousAllocation)
		})
	}
}

// Row 108: what ran on a draining node that goes down is lost, and replaced
// where its type requires it.
func TestDrainingNodeGoesDown(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch} {
		for _, isMarked := range []bool{false, true} {
			t.Run(string(kind), func(t *testing.T) {
				c := parallel(t)
				n1 := c.node("n1")
				job := c.job("job", kind, 2)
				c.run()
				n2 := c.node("n2")
				c.run()
				c.drain(n1)
				old := pick(c.wanted(job), on(n1))
				if isMarked {
					c.mark(cluster.MarkPaced, old...)
				}
				c.status(n1, cluster.NodeDown)
				c.run()
				for _, a := range old {
					must.Eq(t, cluster.ClientLost, c.alloc(a.ID).ClientStatus)
					must.Eq(t, cluster.DesiredStop, c.alloc(a.ID).DesiredStatus)
				}
				if kind.EveryNode() {
					must.Eq(t, []cluster.NodeID{n2}, nodesOf(c.wanted(job)))
				} else {
					must.Eq(t, []cluster.NodeID{n2, n2}, nodesOf(c.wanted(job)))
				}
			})
		}
	}
}

// An allocation that was stopped already when its node goes down becomes lost
// too: no client will report that it stopped, and a drain waits for that.
func TestStoppingOnDownNodeBecomesLost(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1)
	c.node("n2")
	c.drain(n1)
	old := c.wanted(job)[0]
	c.mark(cluster.MarkPaced, old)
	c.settle()
	must.Eq(t, cluster.ClientRunning, c.alloc(old.ID).ClientStatus)
	c.status(n1, cluster.NodeDown)
	c.settle()
	must.Eq(t, cluster.ClientLost, c.alloc(old.ID).ClientStatus)
	must.Eq(t, cluster.DescMigrating, c.alloc(old.ID).DesiredDescription)
	must.Len(t, 1, c.wanted(job))
}

// What ran on a node that is deleted is lost.
func TestDeletedNode(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 3)
	n2 := c.node("n2")
	c.write(func(txn *statestore.Txn) error {
		must.SliceEmpty(t, txn.DeleteNodes([]cluster.NodeID{n1}, c.now))
		return nil
	})
	c.evaluate(job)
	c.run()
	must.Eq(t, []cluster.NodeID{n2, n2, n2}, nodesOf(c.wanted(job)))
	must.Len(t, 3, c.allocs(job, func(a *cluster.Allocation) bool { return a.ClientStatus == cluster.ClientLost }))
}

// Row 109: batch that completed is not run again, wherever it was.
func TestCompletedBatchIsDone(t *testing.T) {
	c, n1, job := running(t, "sum", cluster.JobBatch, 3)
	finished := c.wanted(job)[0]
	c.report(c.statusReport(finished, cluster.ClientComplete))
	c.node("n2")
	c.drain(n1)
	c.evaluate(job)
	c.run()
	must.Len(t, 2, c.wanted(job))

	// Nor when only the count or the pace of its job changes.
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 4 })
	c.run()
	must.Len(t, 3, c.wanted(job))

	// Other work is other work.
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Resources.CPU = 200 })
	c.run()
	must.Len(t, 4, c.wanted(job))
}

// Batch that a drain stops at its deadline is only stopped, and its slot stays
// taken after the node is back.
func TestBatchStoppedAtDeadlineKeepsItsSlot(t *testing.T) {
	c, n1, job := running(t, "sum", cluster.JobBatch, 2)
	c.node("n2")
	c.drain(n1)
	c.mark(cluster.MarkDeadline, c.wanted(job)...)
	c.run()
	must.SliceEmpty(t, c.wanted(job))
	for _, a := range c.allocs(job, on(n1)) {
		must.Eq(t, cluster.DescMigrating, a.DesiredDescription)
		must.Eq(t, cluster.ClientComplete, a.ClientStatus)
		must.Eq(t, "", a.NextAllocation)
	}
	must.Nil(t, first(c.view().WorkView().OpenEvals(job)))
	c.cancel(n1)
	c.evaluate(job)
	c.run()
	must.SliceEmpty(t, c.wanted(job))
}

// A deadline marks one of three batch allocations, and the job then needs two. The marked one is
// stopped as surplus. From cluster version 2 on it gives its slot up. A server of version 1 lets it
// keep the slot, and a plan must have the same effect on every server of a cluster.
func TestBatchStoppedAsSurplus(t *testing.T) {
	for _, tc := range []struct {
		version cluster.Version
		want    []string
	}{
		{1, []string{"sum.g[0]"}},
		{2, []string{"sum.g[0]", "sum.g[1]"}},
	} {
		t.Run(fmt.Sprintf("cluster version %d", tc.version), func(t *testing.T) {
			c := newCellOf(t, tc.version)
			n1 := c.node("n1")
			job := c.job("sum", cluster.JobBatch, 3)
			c.run()
			c.drain(n1)
			c.mark(cluster.MarkDeadline, c.wanted(job)[2])
			c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
			c.run()
			must.Eq(t, []string{"sum.g[0]", "sum.g[1]"}, namesOf(c.wanted(job)))
			c.evaluate(job)
			c.run()
			must.Eq(t, tc.want, namesOf(c.wanted(job)))
		})
	}
}

// Batch that was stopped at a deadline on a node that died in that moment is not
// placed again either.
func TestBatchStoppedAtDeadlineOnDownNode(t *testing.T) {
	c, n1, job := running(t, "sum", cluster.JobBatch, 1)
	c.node("n2")
	c.drain(n1)
	c.mark(cluster.MarkForced, c.wanted(job)...)
	c.status(n1, cluster.NodeDown)
	c.run()
	must.SliceEmpty(t, c.wanted(job))
	must.Eq(t, cluster.ClientLost, c.allocs(job, on(n1))[0].ClientStatus)
}

// A node dies, and the plan that replaces its batch allocation is in flight when a deadline marks the
// allocation. The mark came first, so the allocation is not placed again, also after its client came
// back and reported how it ended. Bug: the plan was applied as it stood, and a later plan placed the
// allocation again. A server of a version before volumes still does that, because a plan must have the
// same effect on every server of a cluster.
func TestBatchLostInAPlanBeforeItsDeadline(t *testing.T) {
	for _, tc := range []struct {
		version cluster.Version
		refused []string
		end     string
	}{
		{cluster.VersionOfVolumes - 1, nil, cluster.DescLost},
		{cluster.VersionOfVolumes, []string{"it was marked, and must not be replaced"}, cluster.DescMigrating},
	} {
		t.Run(fmt.Sprintf("cluster version %d", tc.version), func(t *testing.T) {
			c := newCellOf(t, tc.version)
			n1 := c.node("n1")
			job := c.job("sum", cluster.JobBatch, 1)
			c.run()
			c.drain(n1)
			a := c.wanted(job)[0]
			c.status(n1, cluster.NodeDown)
			plan := c.pending(job)
			c.mark(cluster.MarkDeadline, a)
			must.Eq(t, tc.refused, reasons(c.apply(plan)))
			c.run()
			must.Eq(t, tc.end, c.alloc(a.ID).DesiredDescription)
			c.status(n1, cluster.NodeReady)
			c.report(c.statusReport(a, cluster.ClientComplete))
			c.node("n2")
			c.evaluate(job)
			c.run()
			must.Eq(t, tc.refused == nil, len(c.wanted(job)) == 1)
		})
	}
}

// A node dies, and the plan that gives up its allocation is in flight when a drain marks the allocation. No other
// may replace the allocation while its end is unconfirmed, unless a drain moves it. Bug: the plan was applied
// as it stood. If the evaluation of the mark then failed, nothing replaced the allocation, also after its end was
// confirmed. Below the version a plan must have the same effect as on older servers.
func TestServiceLostInAPlanBeforeItsMark(t *testing.T) {
	for _, tc := range []struct {
		version cluster.Version
		refused []string
		want    int
	}{
		{cluster.VersionOfLateMarks - 1, nil, 0},
		{cluster.VersionOfLateMarks, []string{"it was marked, and must be replaced"}, 1},
	} {
		t.Run(fmt.Sprintf("cluster version %d", tc.version), func(t *testing.T) {
			c := newCellOf(t, tc.version)
			n1 := c.node("n1")
			job := c.job("web", cluster.JobService, 1, disconnect(func(d *cluster.DisconnectStrategy) { d.NoReplace = true }))
			c.run()
			c.node("n2")
			c.drain(n1)
			a := c.wanted(job)[0]
			c.status(n1, cluster.NodeDown)
			plan := c.pending(job)
			c.mark(cluster.MarkPaced, a)
			failEvals(c, job, cluster.TriggerNodeDrain)
			must.Eq(t, tc.refused, reasons(c.apply(plan)))
			c.run()
			must.Len(t, tc.want, c.wanted(job))
		})
	}
}

// A job that gives up an allocation whose mark excludes a replacement, on a node that died, owes it
// no replacement: if the job grows again, its new allocation replaces no other.
func TestBatchLostAsSurplus(t *testing.T) {
	c, n1, job := running(t, "sum", cluster.JobBatch, 1)
	c.node("n2")
	c.drain(n1)
	a := c.wanted(job)[0]
	c.mark(cluster.MarkDeadline, a)
	c.status(n1, cluster.NodeDown)
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 0 })
	c.run()
	must.Eq(t, cluster.DescNotNeeded, c.alloc(a.ID).DesiredDescription)
	must.Eq(t, cluster.ClientLost, c.alloc(a.ID).ClientStatus)
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 1 })
	c.run()
	must.Len(t, 1, c.wanted(job))
	must.Eq(t, "", c.wanted(job)[0].PreviousAllocation)
}

// Row 110: data on a sticky disk does not bring an allocation back to a node that
// drains, nor a marked one to any. Data that also moves between nodes changes nothing.
func TestStickyDisk(t *testing.T) {
	for name, disk := range map[string]cluster.EphemeralDisk{"sticky": {Sticky: true, SizeMB: 10}, "sticky and migrate": {Sticky: true, Migrate: true, SizeMB: 10}} {
		sticky := func(j *cluster.Job) { j.TaskGroups[0].EphemeralDisk = disk }
		t.Run(name+": failed goes back", func(t *testing.T) {
			c := parallel(t)
			c.node("n1")
			c.node("n2")
			job := c.job("db", cluster.JobService, 1, sticky)
			c.run()
			old := c.wanted(job)[0]
			c.report(c.statusReport(old, cluster.ClientFailed))
			c.run()
			must.Eq(t, []cluster.NodeID{old.NodeID}, nodesOf(c.wanted(job)))
		})
		t.Run(name+": a full node is left", func(t *testing.T) {
			c := parallel(t)
			c.node("n1")
			job := c.job("db", cluster.JobService, 1, sticky)
			c.run()
			old := c.wanted(job)[0]
			c.node("n2")
			c.node(string(old.NodeID), func(n *cluster.Node) { n.Resources = cluster.Resources{} })
			c.report(c.statusReport(old, cluster.ClientFailed))
			c.run()
			must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
		})
		t.Run(name+": draining does not", func(t *testing.T) {
			c := parallel(t)
			c.node("n1")
			job := c.job("db", cluster.JobService, 1, sticky)
			c.run()
			old := c.wanted(job)[0]
			c.node("n2")
			c.drain(old.NodeID)
			c.report(c.statusReport(old, cluster.ClientFailed))
			c.run()
			must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
		})
	}
	t.Run("without one it goes elsewhere", func(t *testing.T) {
		c := parallel(t)
		c.node("n1")
		c.node("n2")
		job := c.job("web", cluster.JobService, 1)
		c.run()
		must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)))
		c.report(c.statusReport(c.wanted(job)[0], cluster.ClientFailed))
		c.run()
		must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
	})
}

func TestStoragePluginMovesAsItsType(t *testing.T) {
	plugin := func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].StoragePlugin = true }
	c := parallel(t)
	n1 := c.node("n1")
	controller, nodePlugin := c.job("controller", cluster.JobService, 1, plugin), c.job("node", cluster.JobSystem, 1, plugin)
	c.run()
	c.node("n2")
	c.run()
	c.drain(n1)
	c.mark(cluster.MarkStage, pick(c.wanted(controller), on(n1))[0], pick(c.wanted(nodePlugin), on(n1))[0])
	c.run()
	must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(controller)))
	must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(nodePlugin)))
}

// A failed allocation is replaced, but not for ever.
func TestFailingAllocationIsGivenUp(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 1)
	tries := 0
	for c.settle(); len(c.wanted(job)) > 0; c.settle() {
		tries++
		must.Less(t, 20, tries)
		c.report(c.statusReport(c.wanted(job)[0], cluster.ClientFailed))
	}
	must.Eq(t, 11, tries)
	must.Nil(t, first(c.view().WorkView().OpenEvals(job)))

	// Fixed, it has all its chances again.
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Resources.CPU = 50 })
	c.run()
	must.Len(t, 1, c.wanted(job))
}

func TestFailedBatchAndCompletedServiceRunAgain(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	batch, service := c.job("sum", cluster.JobBatch, 1), c.job("web", cluster.JobService, 1)
	c.run()
	c.report(c.statusReport(c.wanted(batch)[0], cluster.ClientFailed), c.statusReport(c.wanted(service)[0], cluster.ClientComplete))
	c.run()
	must.Len(t, 1, c.wanted(batch))
	must.Len(t, 1, c.wanted(service))
	must.Len(t, 1, c.allocs(batch, func(a *cluster.Allocation) bool { return a.DesiredDescription == cluster.DescRescheduled }))
}

// A job of the pool "all" runs in every pool. Below cluster version 9 that pool is one like any other.
func TestAllNodePools(t *testing.T) {
	t.Parallel()
	for version, want := range map[cluster.Version]int{cluster.VersionOfAllNodePools: 2, cluster.VersionOfAllNodePools - 1: 0} {
		c := newCellOf(t, version)
		c.node("n1")
		c.node("n2", func(n *cluster.Node) { n.NodePool = "other" })
		everywhere := func(j *cluster.Job) { j.NodePool = cluster.AllNodePools }
		system, service := c.job("log", cluster.JobSystem, 1, everywhere), c.job("web", cluster.JobService, 2, everywhere)
		c.run()
		must.Len(t, want, c.wanted(system))
		must.Len(t, want, c.wanted(service))
		c.node("n3", func(n *cluster.Node) { n.NodePool = "third" })
		c.run()
		must.Len(t, want+want/2, c.wanted(system), must.Sprint("a new node causes an evaluation"))
	}
}

func TestSystemRunsOnEveryFittingNode(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	c.node("n2", func(n *cluster.Node) { n.NodePool = "other" })
	c.node("n3", func(n *cluster.Node) { n.Datacenter = "dc2" })
	c.node("n4", func(n *cluster.Node) { n.NodeClass = "big" })
	c.node("n5", func(n *cluster.Node) { n.Resources.CPU = 10 })
	all := c.job("log", cluster.JobSystem, 0)
	some := c.job("probe", cluster.JobSystem, 1, func(j *cluster.Job) {
		j.Datacenters = []string{"dc1"}
		j.TaskGroups[0].NodeClasses = []string{"big"}
	})
	c.run()
	must.Eq(t, []cluster.NodeID{"n1", "n3", "n4"}, nodesOf(c.wanted(all)))
	must.Eq(t, []cluster.NodeID{"n4"}, nodesOf(c.wanted(some)))
	must.Eq(t, map[string]int{"g": 1}, first(c.view().WorkView().BlockedEvals()).Queued)

	// A new node gets one, a node that fits no more loses its.
	c.node("n6")
	c.edit(all, func(j *cluster.Job) { j.Datacenters = []string{"dc2"} })
	c.run()
	must.Eq(t, []cluster.NodeID{"n3"}, nodesOf(c.wanted(all)))
	must.Nil(t, first(c.view().WorkView().BlockedEvals()))
}

// A node that is only ineligible keeps what it runs, and gets nothing new.
func TestIneligibleNode(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	job, system := c.job("web", cluster.JobService, 2), c.job("log", cluster.JobSystem, 1)
	c.run()
	c.write(func(txn *statestore.Txn) error { return txn.UpdateNodeEligibility(n1, cluster.NodeIneligible, c.now) })
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 3 })
	c.evaluate(system)
	c.run()
	must.Len(t, 2, c.wanted(job))
	must.Len(t, 1, c.wanted(system))
	must.Eq(t, map[string]int{"g": 1}, first(c.view().WorkView().BlockedEvals()).Queued)
}

func TestSysBatchRunsOnce(t *testing.T) {
	c := parallel(t)
	n1, n2 := c.node("n1"), c.node("n2")
	job := c.job("patch", cluster.JobSysBatch, 1)
	c.run()
	c.report(c.statusReport(pick(c.wanted(job), on(n1))[0], cluster.ClientComplete), c.statusReport(pick(c.wanted(job), on(n2))[0], cluster.ClientFailed))
	c.node("n3")
	c.evaluate(job)
	c.run()
	must.Eq(t, []cluster.NodeID{"n3"}, nodesOf(c.wanted(job)))
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Resources.CPU = 50 })
	c.run()
	must.Eq(t, []cluster.NodeID{"n1", "n2", "n3"}, nodesOf(c.wanted(job)))
}

func lostAfter(d time.Duration) func(*cluster.Job) {
	return func(j *cluster.Job) { j.TaskGroups[0].Disconnect.LostAfter = d }
}

// A disconnected node's allocations become unknown and others take their slots.
// When the node returns, nothing is stopped before its client has reported. Then the replacements go.
func TestDisconnectedAndBack(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 2, lostAfter(time.Minute))
	n2 := c.node("n2")
	c.status(n1, cluster.NodeDisconnected)
	c.run()
	away := c.allocs(job, on(n1))
	for _, a := range away {
		must.Eq(t, cluster.ClientUnknown, a.ClientStatus)
		must.Eq(t, cluster.DesiredRun, a.DesiredStatus)
		must.NotEq(t, "", a.NextAllocation)
	}
	must.Len(t, 2, pick(c.wanted(job), on(n2)))
	c.evaluate(job)
	c.run()
	must.Len(t, 4, c.wanted(job))

	c.now = c.now.Add(30 * time.Second)
	c.status(n1, cluster.NodeReady)
	c.settle()
	must.Len(t, 4, c.wanted(job))
	c.run()
	must.Eq(t, []cluster.NodeID{n1, n1}, nodesOf(c.wanted(job)))
	for _, a := range away {
		must.Eq(t, cluster.DescOriginalReturned, c.alloc(c.alloc(a.ID).NextAllocation).DesiredDescription)
	}
}

// If the replacement could not start yet, the one that came back is kept.
func TestReconnectedIsWorthMoreThanPending(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1, lostAfter(time.Minute))
	c.node("n2")
	c.status(n1, cluster.NodeDisconnected)
	c.settle()
	must.Len(t, 2, c.wanted(job))
	c.status(n1, cluster.NodeReady)
	c.report(c.statusReport(c.allocs(job, on(n1))[0], cluster.ClientRunning))
	c.settle()
	must.Eq(t, []cluster.NodeID{n1}, nodesOf(c.wanted(job)))
}

// After its time what is unknown is lost; without one, and while pending, it is
// lost at once.
func TestDisconnectedTooLong(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	patient, hasty := c.job("patient", cluster.JobService, 1, lostAfter(time.Minute)), c.job("hasty", cluster.JobService, 1)
	c.run()
	c.edit(patient, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
	c.settle() // the second is pending
	c.status(n1, cluster.NodeDisconnected)
	c.settle()
	statuses := func(job cluster.JobKey) (all []cluster.ClientStatus) {
		for _, a := range c.allocs(job, on(n1)) {
			all = append(all, a.ClientStatus)
		}
		return all
	}
	must.Eq(t, []cluster.ClientStatus{cluster.ClientUnknown, cluster.ClientLost}, statuses(patient))
	must.Eq(t, []cluster.ClientStatus{cluster.ClientLost}, statuses(hasty))

	c.now = c.now.Add(59 * time.Second)
	c.evaluate(patient)
	c.settle()
	must.Eq(t, []cluster.ClientStatus{cluster.ClientUnknown, cluster.ClientLost}, statuses(patient))
	c.now = c.now.Add(time.Second)
	c.evaluate(patient)
	c.settle()
	must.Eq(t, []cluster.ClientStatus{cluster.ClientLost, cluster.ClientLost}, statuses(patient))
}

// A marked allocation that is out of touch is judged again when it returns, and
// then it goes, because its slot is taken.
func TestMarkedWhileDisconnected(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1, lostAfter(time.Hour))
	c.node("n2")
	c.drain(n1)
	c.status(n1, cluster.NodeDisconnected)
	c.run()
	old := c.allocs(job, on(n1))[0]
	c.mark(cluster.MarkDeadline, old)
	c.run()
	must.Eq(t, cluster.DesiredRun, c.alloc(old.ID).DesiredStatus)
	must.Eq(t, cluster.ClientUnknown, c.alloc(old.ID).ClientStatus)
	c.status(n1, cluster.NodeReady)
	c.run()
	must.Eq(t, cluster.ClientComplete, c.alloc(old.ID).ClientStatus)
	must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
}

// The same id in two namespaces is two jobs.
func TestNamespaces(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	a, b := c.job("web", cluster.JobService, 1), c.job("web", cluster.JobService, 2, func(j *cluster.Job) { j.Namespace = "other" })
	c.run()
	c.node("n2")
	c.drain(n1)
	c.mark(cluster.MarkPaced, c.wanted(b)[0])
	c.run()
	must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(a)))
	must.Eq(t, []cluster.NodeID{"n1", "n2"}, nodesOf(c.wanted(b)))
}

// A purged job leaves nothing to do.
func TestPurgedJob(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 2)
	c.run()
	c.stopJob(job, true)
	c.run()
	must.SliceEmpty(t, c.allocs(job, func(*cluster.Allocation) bool { return true }))
	must.Nil(t, first(c.view().WorkView().OpenEvals(job)))
}

// The job has moved often, and its plan reads only what is left to plan.
func TestPlanReadsNoHistory(t *testing.T) {
	c := parallel(t)
	nodes := []cluster.NodeID{c.node("n1"), c.node("n2")}
	k := c.job("web", cluster.JobService, 3)
	c.run()
	for i := range 20 {
		n := nodes[i%2]
		c.drain(n)
		c.mark(cluster.MarkPaced, pick(c.wanted(k), on(n))...)
		c.run()
		c.cancel(n)
		c.run()
	}
	must.GreaterEq(t, 30, len(c.allocs(k, func(*cluster.Allocation) bool { return true })))
	must.Len(t, 3, slices.Collect(c.view().WorkView().UnconcludedAllocs(k)))
}
