package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
)

// Of a plan with more than a group needs, only what is needed is applied.
func TestPlanWithTooMuch(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobSystem} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			c.node("n1")
			job := c.job("web", kind, 1)
			plan := c.pending(job)
			more := plan.Places[0].Copy()
			more.ID = "one-more"
			plan.Places = append(plan.Places, more)
			must.Len(t, 1, c.apply(plan))
			must.Len(t, 1, c.wanted(job))
		})
	}
}

// A stale plan places nothing where a sysbatch job has run since, or a system
// job runs already.
func TestStalePlanOnEveryNode(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobSystem, cluster.JobSysBatch} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			c.node("n1")
			job := c.job("log", kind, 1)
			stale := c.pending(job)
			c.run()
			if kind == cluster.JobSysBatch {
				c.report(c.statusReport(c.wanted(job)[0], cluster.ClientFailed))
			}
			c.evaluate(job)
			stale.Eval = c.pending(job).Eval
			for _, a := range stale.Places {
				a.ID += "-again"
			}
			must.Eq(t, []string{"node n1 has one of group g"}, reasons(c.apply(stale)))
		})
	}
}

// A blocked evaluation whose plan is refused in part is planned again at once.
func TestRefusedBlockedEvaluationIsPending(t *testing.T) {
	c := parallel(t)
	c.job("web", cluster.JobService, 1)
	c.settle()
	n1 := c.node("n1")
	blocked := first(c.view().WorkView().BlockedEvals())
	plan := c.schedule(blocked)
	must.Eq(t, cluster.EvalComplete, plan.Eval.Status)
	c.drain(n1)
	must.Len(t, 1, c.apply(plan))
	must.Eq(t, cluster.EvalPending, c.view().Eval(blocked.ID).Status)
	c.settle()
	must.Eq(t, 1, len(collect(c, blocked.JobKey())))
	must.NotNil(t, first(c.view().WorkView().BlockedEvals()))
}

// A node that is for other work by now gets nothing of a stale plan.
func TestNodeOfAnotherClass(t *testing.T) {
	c := parallel(t)
	big := func(n *cluster.Node) { n.NodeClass = "big" }
	c.node("n1", big)
	job := c.job("web", cluster.JobService, 1, func(j *cluster.Job) { j.TaskGroups[0].NodeClasses = []string{"big"} })
	plan := c.pending(job)
	c.node("n1")
	must.Eq(t, []string{"node n1 is not for group default/web.g"}, reasons(c.apply(plan)))
}

// A canary is not placed beside the one it replaces.
func TestCanaryBesideItsPredecessor(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1)
	old := c.seed(job, n1, canary)
	c.node("n2")
	c.drain(n1)
	c.mark(cluster.MarkCanary, old)
	plan := c.pending(job)
	plan.Stops = nil
	must.Eq(t, []string{"its predecessor " + string(old.ID) + " runs"}, reasons(c.apply(plan)))

	plan = c.pending(job)
	plan.Places[0].PreviousAllocation = c.wanted(job)[0].ID
	must.Eq(t, []string{"a canary only follows a canary"}, reasons(c.apply(plan)))
}

// A canary that is out of touch is not replaced before it is lost.
func TestCanaryOutOfTouch(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	c.node("n2")
	job := c.job("web", cluster.JobService, 0, lostAfter(time.Minute))
	old := c.seed(job, n1, canary)
	c.status(n1, cluster.NodeDisconnected)
	c.run()
	must.Eq(t, cluster.ClientUnknown, c.alloc(old.ID).ClientStatus)
	must.Len(t, 1, c.wanted(job))
	c.now = c.now.Add(time.Minute)
	c.evaluate(job)
	c.run()
	must.Eq(t, cluster.ClientLost, c.alloc(old.ID).ClientStatus)
	must.True(t, c.alloc(c.alloc(old.ID).NextAllocation).Canary())
	c.stopJob(job, false)
	c.run()
	must.SliceEmpty(t, c.wanted(job))
}

// Batch stopped at a deadline runs again only as other work.
func TestBatchStoppedAtDeadlineAndEdited(t *testing.T) {
	c, n1, job := running(t, "sum", cluster.JobBatch, 1)
	c.node("n2")
	c.drain(n1)
	c.mark(cluster.MarkDeadline, c.wanted(job)...)
	c.run()
	c.edit(job, func(j *cluster.Job) { j.Priority = 80 })
	c.run()
	must.SliceEmpty(t, c.wanted(job))
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].KillTimeout = time.Minute })
	c.run()
	must.Len(t, 1, c.wanted(job))
	c.report(c.statusReport(c.wanted(job)[0], cluster.ClientComplete))
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].EphemeralDisk.SizeMB = 1 })
	c.run()
	must.Len(t, 1, c.wanted(job))
}

// A job registered again as another type starts from the beginning.
func TestJobOfAnotherType(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	c.node("n2")
	job := c.job("web", cluster.JobBatch, 3)
	c.run()
	c.report(c.statusReport(c.wanted(job)[0], cluster.ClientComplete))
	c.edit(job, func(j *cluster.Job) { j.Type = cluster.JobSystem })
	c.run()
	must.Eq(t, []cluster.NodeID{"n1", "n2"}, nodesOf(c.wanted(job)))
	must.Len(t, 2, c.allocs(job, func(a *cluster.Allocation) bool { return a.DesiredDescription == cluster.DescNotNeeded }))
}

// spend seeds what is left of an allocation that was placed again too often.
func (c *cell) spend(k cluster.JobKey, n cluster.NodeID, edit ...func(*cluster.Allocation)) *cluster.Allocation {
	previous := cluster.AllocID("")
	for range cluster.MaxReschedules {
		previous = c.seed(k, n, func(a *cluster.Allocation) {
			a.DesiredStatus, a.DesiredDescription, a.ClientStatus = cluster.DesiredStop, cluster.DescRescheduled, cluster.ClientFailed
			a.PreviousAllocation = previous
		}).ID
	}
	failed := func(a *cluster.Allocation) { a.ClientStatus, a.PreviousAllocation = cluster.ClientFailed, previous }
	return c.seed(k, n, append(edit, failed)...)
}

// The bound on how often a failed allocation is placed again does not hold for an operator's request.
func TestForcedReschedule(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	spent, forced := c.job("spent", cluster.JobService, 1), c.job("forced", cluster.JobService, 1)
	c.spend(spent, n1)
	old := c.spend(forced, n1, func(a *cluster.Allocation) { a.DesiredTransition.ForceReschedule = true })
	c.run()
	must.SliceEmpty(t, c.wanted(spent))
	must.Len(t, 1, c.wanted(forced))
	must.Eq(t, c.wanted(forced)[0].ID, c.alloc(old.ID).NextAllocation)
}

// An allocation is given up when it holds its slot although it failed: until its tasks change, or an operator
// requests its placement.
func TestGivenUp(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	web, done, forced := c.job("web", cluster.JobService, 2), c.job("done", cluster.JobBatch, 1), c.job("forced", cluster.JobService, 1)
	old := c.spend(web, n1)
	c.spend(done, n1, func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientComplete })
	c.spend(forced, n1, func(a *cluster.Allocation) { a.DesiredTransition.ForceReschedule = true })
	c.seed(web, n1, func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientFailed })
	givenUp := func(k cluster.JobKey) []cluster.AllocID { return scheduler.GivenUp(c.view().WorkView(), k) }
	must.Eq(t, []cluster.AllocID{old.ID}, givenUp(web))
	must.SliceEmpty(t, givenUp(forced))
	must.SliceEmpty(t, givenUp(cluster.JobKey{ID: "none"}))
	c.run()
	must.Eq(t, []cluster.AllocID{old.ID}, givenUp(web))
	c.stopJob(web, false)
	must.SliceEmpty(t, givenUp(web))
	c.edit(web, func(j *cluster.Job) { j.Stop = false })
	must.Eq(t, []cluster.AllocID{old.ID}, givenUp(web))
	c.edit(web, func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Resources.CPU++ })
	must.SliceEmpty(t, givenUp(web))
}

// A job that was mended has all its tries again: failures of its former tasks do not count.
// Regression: the first failure after the change gave the slot up.
func TestGivenUp_afterAChange(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	web := c.job("web", cluster.JobService, 1)
	old := c.spend(web, n1)
	c.edit(web, func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Resources.CPU++ })
	c.run()
	for range cluster.MaxReschedules + 1 {
		must.Len(t, 1, c.wanted(web))
		must.SliceEmpty(t, scheduler.GivenUp(c.view().WorkView(), web))
		old = c.wanted(web)[0]
		c.report(c.statusReport(old, cluster.ClientFailed))
		c.run()
	}
	must.SliceEmpty(t, c.wanted(web))
	must.Eq(t, []cluster.AllocID{old.ID}, scheduler.GivenUp(c.view().WorkView(), web))
}

// The slot of one that failed for good is the first to be given up.
func TestScaledDownWithAFailure(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	job := c.job("web", cluster.JobService, 3)
	c.spend(job, n1)
	c.run()
	must.Len(t, 2, c.wanted(job))
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
	c.run()
	must.Len(t, 2, c.wanted(job))
	must.SliceEmpty(t, c.allocs(job, func(a *cluster.Allocation) bool { return a.DesiredDescription == cluster.DescNotNeeded }))
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 1 })
	c.run()
	must.Len(t, 1, c.wanted(job))
}

// One that came back after it was replaced, and is marked, gets no second
// replacement linked to it.
func TestMarkedAfterItCameBack(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1, lostAfter(time.Minute))
	c.node("n2")
	c.drain(n1)
	c.status(n1, cluster.NodeDisconnected)
	c.run()
	old := c.allocs(job, on(n1))[0]
	first := c.alloc(old.ID).NextAllocation
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
	c.mark(cluster.MarkDeadline, old)
	c.status(n1, cluster.NodeReady)
	c.run()
	must.Eq(t, first, c.alloc(old.ID).NextAllocation)
	must.Eq(t, cluster.DesiredStop, c.alloc(old.ID).DesiredStatus)
	must.Eq(t, []cluster.NodeID{"n2", "n2"}, nodesOf(c.wanted(job)))
}

// Two that bear one name are not followed by a third.
func TestNamesStayApart(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1, lostAfter(time.Minute))
	n2 := c.node("n2")
	c.status(n1, cluster.NodeDisconnected)
	c.run()
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
	c.status(n1, cluster.NodeReady)
	c.run()
	must.Eq(t, []string{"web.g[0]", "web.g[0]"}, namesOf(c.wanted(job)))
	c.report(c.statusReport(pick(c.wanted(job), on(n2))[0], cluster.ClientFailed))
	c.run()
	must.Eq(t, []string{"web.g[0]", "web.g[1]"}, namesOf(c.wanted(job)))
}

// What is gone now is replaced before what was given up long ago.
func TestReplacementFollowsTheLatest(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 2)
	c.drain(n1)
	abandoned := c.wanted(job)[0]
	c.mark(cluster.MarkPaced, abandoned)
	c.run() // nowhere to go
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 1 })
	c.run()
	must.Eq(t, "", c.alloc(abandoned.ID).NextAllocation)
	failed := c.wanted(job)[0]
	c.node("n2")
	c.report(c.statusReport(failed, cluster.ClientFailed))
	c.run()
	must.Eq(t, failed.ID, c.wanted(job)[0].PreviousAllocation)
	must.Eq(t, "", c.alloc(abandoned.ID).NextAllocation)
}

// A surplus that is marked on a dead node is lost with it.
func TestMarkedSurplusOnDownNode(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1)
	c.drain(n1)
	old := c.wanted(job)[0]
	c.mark(cluster.MarkPaced, old)
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 0 })
	c.status(n1, cluster.NodeDown)
	c.run()
	must.Eq(t, cluster.ClientLost, c.alloc(old.ID).ClientStatus)
}

// So is what no group needs.
func TestStoppedJobOnDownNode(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 2)
	c.status(n1, cluster.NodeDown)
	c.stopJob(job, false)
	c.settle()
	must.Len(t, 2, c.allocs(job, func(a *cluster.Allocation) bool { return a.ClientStatus == cluster.ClientLost }))
}

// Of two on one node, the one worth more stays.
func TestTwoOfASystemJobOnOneNode(t *testing.T) {
	c, n1, job := running(t, "log", cluster.JobSystem, 1)
	kept := c.wanted(job)[0]
	extra := c.seed(job, n1)
	c.evaluate(job)
	c.run()
	must.Eq(t, cluster.DesiredRun, c.alloc(kept.ID).DesiredStatus)
	must.Eq(t, cluster.DescNotNeeded, c.alloc(extra.ID).DesiredDescription)
}

// A mark by hand on a node that is ready ends a sysbatch allocation for good; a
// system allocation comes back beside it.
func TestMarkedByHandOnReadyNode(t *testing.T) {
	for kind, want := range map[cluster.JobType]int{cluster.JobSystem: 1, cluster.JobSysBatch: 0} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			n1 := c.node("n1")
			job := c.job("log", kind, 1)
			old := c.seed(job, n1, marked)
			c.settle()
			must.Len(t, want, c.wanted(job))
			c.run()
			must.Len(t, want, c.wanted(job))
			must.Eq(t, cluster.DescTainted, c.alloc(old.ID).DesiredDescription)
		})
	}
}

// A stopped allocation that ends as it should calls for nothing.
func TestStoppedReportCallsForNothing(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 1)
	c.run()
	c.stopJob(job, false)
	c.settle()
	for _, s := range []cluster.ClientStatus{cluster.ClientComplete, cluster.ClientFailed} {
		reports := []cluster.AllocReport{c.statusReport(c.allocs(job, (*cluster.Allocation).ServerTerminal)[0], s)}
		must.SliceEmpty(t, scheduler.ReportEvals(c.view().WorkView(), reports, c.now, c.evalID))
	}
}

// The newest of a job's evaluations is the one that is planned.
func TestNewestEvaluationIsPlanned(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 1)
	c.evaluate(job)
	evals := collect(c, job)
	s, log := c.leader()
	log.lead(s)
	must.Eq(t, 1, log.plans)
	must.Eq(t, cluster.EvalCancelled, c.view().Eval(evals[0].ID).Status)
	must.Eq(t, cluster.EvalComplete, c.view().Eval(evals[1].ID).Status)
}

// A view from before the barrier is not planned from.
func TestViewBehindTheBarrier(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	c.job("web", cluster.JobService, 1)
	old := c.view()
	c.job("other", cluster.JobService, 1)
	view := old
	s, log := c.leader(func(config *scheduler.Config) { config.Snapshot = func() scheduler.View { return view.WorkView() } })
	s.Step(c.now)
	log.answer(fine)
	must.Eq(t, c.now.Add(scheduler.DefaultRetryBase), s.Step(c.now))
	must.SliceEmpty(t, log.queue)
	view = c.view()
	s.Step(c.now)
	must.Eq(t, []cluster.JobID{"web", "other"}, log.planned())
}

// Nor is a job planned from a view that does not show its last plan.
func TestViewBehindThePlan(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 1)
	view := c.view()
	s, log := c.leader(func(config *scheduler.Config) { config.Snapshot = func() scheduler.View { return view.WorkView() } })
	s.Step(c.now)
	log.answer(fine)
	s.Step(c.now)
	log.answer(fine)
	must.Eq(t, c.now.Add(scheduler.DefaultRetryBase), s.Step(c.now))
	must.SliceEmpty(t, log.queue)
	view = c.view()
	must.Eq(t, time.Time{}, s.Step(c.now))
	must.Len(t, 1, c.wanted(job))
}

// Capacity that comes while the plan that will block is in flight is not missed.
func TestCapacityWhilePlanIsInFlight(t *testing.T) {
	c := parallel(t)
	job := c.job("web", cluster.JobService, 1)
	s, log := c.leader()
	s.Step(c.now)
	log.answer(fine)
	s.Step(c.now)
	must.NotNil(t, log.queue[0].plan.Blocked)
	c.node("n1")
	s.Step(c.now)
	log.lead(s)
	must.Len(t, 1, c.wanted(job))
}

// Plans that are begun while others are in flight leave them their room.
func TestLaterPlansLeaveRoomForEarlierOnes(t *testing.T) {
	c := parallel(t)
	for i := range 2 {
		c.node(fmt.Sprintf("n%d", i))
	}
	s, log := c.leader()
	log.lead(s)
	for i := range 20 {
		c.job(fmt.Sprintf("job-%02d", i), cluster.JobService, 1)
		if s.Step(c.now); len(log.queue) > 2 {
			log.answer(fine)
		}
	}
	log.lead(s)
	must.Zero(t, log.refused)
	must.Eq(t, 20, log.plans)
}

// A client's report of how an allocation ended counts even at the last moment.
func TestLostButComplete(t *testing.T) {
	c, n1, job := running(t, "sum", cluster.JobBatch, 1)
	c.node("n2")
	c.status(n1, cluster.NodeDown)
	plan := c.pending(job)
	c.report(c.statusReport(c.wanted(job)[0], cluster.ClientComplete))
	must.Eq(t, "it is complete", reasons(c.apply(plan))[0])
	c.run()
	must.SliceEmpty(t, c.wanted(job))
}

// Batch that is stopped for good leaves no slot to a plan that thinks it does.
func TestNoPlaceForBatchStoppedForGood(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	job := c.job("sum", cluster.JobBatch, 1)
	fresh := c.pending(job).Places[0]
	c.run()
	c.node("n2")
	c.drain(n1)
	c.mark(cluster.MarkDeadline, c.wanted(job)...)
	plan := c.pending(job)
	fresh.ID, fresh.NodeID = "one-more", "n2"
	plan.Places = append(plan.Places, fresh)
	must.Eq(t, []string{"group g has all of its 1"}, reasons(c.apply(plan)))
	must.SliceEmpty(t, c.wanted(job))
}

// What is refused again and again waits longer each time, until it succeeds.
func TestRefusedAgainAndAgain(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	job := c.job("web", cluster.JobService, 1)
	s, log := c.leader()
	s.Step(c.now)
	log.answer(fine)
	refuse := func() {
		must.Eq(t, []cluster.JobID{"web"}, log.planned())
		c.drain(n1)
		log.answer(fine)
		c.cancel(n1)
	}
	s.Step(c.now)
	refuse()
	s.Step(c.now) // at once
	refuse()
	wait := 2 * scheduler.DefaultRetryBase
	must.Eq(t, c.now.Add(wait), s.Step(c.now))
	c.now = c.now.Add(wait)
	log.lead(s)
	must.Len(t, 1, c.wanted(job))

	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
	s.Step(c.now)
	refuse()
	s.Step(c.now) // at once again
	log.answer(fine)
	must.Len(t, 2, c.wanted(job))
}

// What one group of a job takes, and what one job takes in a turn, is gone for the next.
func TestGroupsAndJobsShareRoom(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobSystem} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			c.node("n1", func(n *cluster.Node) { n.MaxAllocs = 3 })
			twoGroups := func(j *cluster.Job) {
				other := *j.TaskGroups[0]
				other.Name = "h"
				j.TaskGroups = append(j.TaskGroups, &other)
			}
			for i := range 2 {
				c.job(fmt.Sprint("job-", i), kind, 1, twoGroups)
			}
			s, log := c.leader()
			log.lead(s)
			must.Zero(t, log.refused)
			must.Eq(t, 3, c.view().Usage("n1").Live)
		})
	}
}
