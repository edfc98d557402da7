package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// What fits nowhere waits in one blocked evaluation, however often the job is
// planned, and is placed when there is room.
func TestBlockedUntilCapacity(t *testing.T) {
	c := parallel(t)
	job := c.job("web", cluster.JobService, 3)
	register := first(c.view().WorkView().PendingEvals())
	c.settle()
	done, blocked := c.view().Eval(register.ID), first(c.view().WorkView().BlockedEvals())
	must.Eq(t, cluster.EvalComplete, done.Status)
	must.Eq(t, map[string]int{"g": 3}, done.Queued)
	must.Eq(t, blocked.ID, done.BlockedEval)
	must.Eq(t, done.ID, blocked.PreviousEval)
	must.Eq(t, cluster.TriggerQueuedAllocs, blocked.TriggeredBy)
	must.Eq(t, cluster.BlockedEvalDescription, blocked.StatusDescription)
	must.Eq(t, map[string]int{"g": 3}, blocked.Queued)

	c.evaluate(job)
	c.settle()
	again := first(c.view().WorkView().BlockedEvals())
	must.Eq(t, blocked.ID, again.ID)
	must.Greater(t, blocked.SnapshotIndex, again.SnapshotIndex)
	must.Len(t, 1, collect(c, job))

	// Room for two: the evaluation waits for the third.
	c.node("n1", func(n *cluster.Node) { n.MaxAllocs = 2 })
	must.Greater(t, again.SnapshotIndex, c.view().WorkView().CapacityIndex())
	c.unblock()
	must.Len(t, 2, c.wanted(job))
	waiting := first(c.view().WorkView().BlockedEvals())
	must.Eq(t, blocked.ID, waiting.ID)
	must.Eq(t, map[string]int{"g": 1}, waiting.Queued)

	c.node("n2")
	c.unblock()
	must.Len(t, 3, c.wanted(job))
	must.Nil(t, first(c.view().WorkView().OpenEvals(job)))
	must.Eq(t, cluster.EvalComplete, c.view().Eval(blocked.ID).Status)
	must.MapEmpty(t, c.view().Eval(blocked.ID).Queued)
}

func collect(c *cell, k cluster.JobKey) (open []*cluster.Evaluation) {
	for e := range c.view().WorkView().OpenEvals(k) {
		open = append(open, e)
	}
	return open
}

// A job that needs less gives up waiting.
func TestBlockedAndScaledDown(t *testing.T) {
	c := parallel(t)
	c.node("n1", func(n *cluster.Node) { n.MaxAllocs = 2 })
	job := c.job("web", cluster.JobService, 3)
	c.settle()
	blocked := first(c.view().WorkView().BlockedEvals())
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
	c.settle()
	must.Nil(t, first(c.view().WorkView().OpenEvals(job)))
	must.Eq(t, cluster.EvalCancelled, c.view().Eval(blocked.ID).Status)
}

// A marked allocation is stopped although its replacement fits nowhere, and the
// replacement that comes at last is still linked to it.
func TestStopDoesNotWaitForPlacement(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 2)
	c.drain(n1)
	old := c.wanted(job)[0]
	c.mark(cluster.MarkPaced, old)
	c.run()
	must.Eq(t, cluster.ClientComplete, c.alloc(old.ID).ClientStatus)
	must.Eq(t, map[string]int{"g": 1}, first(c.view().WorkView().BlockedEvals()).Queued)
	c.node("n2")
	c.run()
	must.Eq(t, old.Name, c.alloc(c.alloc(old.ID).NextAllocation).Name)
}

// One plan answers all of a job's evaluations.
func TestOnePlanAnswersAll(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 1)
	c.evaluate(job)
	c.evaluate(job)
	evals := collect(c, job)
	must.Len(t, 3, evals)
	must.SliceEmpty(t, c.apply(c.schedule(evals[2])))
	must.SliceEmpty(t, collect(c, job))
	must.Eq(t, cluster.EvalComplete, c.view().Eval(evals[2].ID).Status)
	for _, e := range evals[:2] {
		must.Eq(t, cluster.EvalCancelled, c.view().Eval(e.ID).Status)
		must.Eq(t, "answered with evaluation "+string(evals[2].ID), c.view().Eval(e.ID).StatusDescription)
	}
}

// An evaluation made after the plan's snapshot is not answered by the plan.
func TestLaterEvaluationIsNotAnswered(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 1)
	plan := c.pending(job)
	c.evaluate(job)
	later := collect(c, job)[1]
	must.SliceEmpty(t, c.apply(plan))
	must.Eq(t, []*cluster.Evaluation{later}, collect(c, job))
}

func jobsOf(evals []*cluster.Evaluation) (jobs []cluster.JobID) {
	for _, e := range evals {
		jobs = append(jobs, e.JobID)
	}
	return jobs
}

func TestNodeEvals(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	c.job("web", cluster.JobService, 2)
	done := c.job("done", cluster.JobBatch, 1)
	c.job("log", cluster.JobSystem, 1)
	c.job("stopped", cluster.JobSystem, 1)
	c.job("elsewhere", cluster.JobSystem, 1, func(j *cluster.Job) { j.Datacenters = []string{"dc9"} })
	c.job("patch", cluster.JobSysBatch, 1)
	c.run()
	c.report(c.statusReport(c.wanted(done)[0], cluster.ClientComplete))
	for a := range c.view().WorkView().LiveAllocsByNode(n1) {
		if a.JobID == "patch" {
			c.report(c.statusReport(a, cluster.ClientComplete))
		}
	}
	c.stopJob(cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "stopped"}, false)
	c.run()
	n2 := c.node("n2")
	evals := func(n cluster.NodeID) []*cluster.Evaluation {
		return scheduler.NodeEvals(c.view().WorkView(), n, cluster.TriggerNodeUpdate, c.now, c.evalID)
	}
	must.Eq(t, []cluster.JobID{"log", "patch", "web"}, jobsOf(evals(n1)))
	must.Eq(t, []cluster.JobID{"log", "patch"}, jobsOf(evals(n2)))
	for _, e := range evals(n1) {
		must.Eq(t, n1, e.NodeID)
		must.Eq(t, cluster.EvalPending, e.Status)
		must.Eq(t, cluster.DefaultJobPriority, e.Priority)
	}
	c.write(func(txn *statestore.Txn) error { return txn.UpdateNodeEligibility(n1, cluster.NodeIneligible, c.now) })
	must.Eq(t, []cluster.JobID{"log", "web"}, jobsOf(evals(n1)))
	c.write(func(txn *statestore.Txn) error { txn.DeleteNodes([]cluster.NodeID{n1}, c.now); return nil })
	must.Eq(t, []cluster.JobID{"log", "web"}, jobsOf(evals(n1))) // what ran there is lost
}

func TestReportEvals(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch} {
		c.job(string(kind), kind, 1)
	}
	c.run()
	evals := func(s cluster.ClientStatus) []cluster.JobID {
		reports := []cluster.AllocReport{{Alloc: "never-was", Node: "n1", ClientStatus: s}}
		for a := range c.view().Allocs() {
			reports = append(reports, c.statusReport(a, s), c.statusReport(a, s))
		}
		return jobsOf(scheduler.ReportEvals(c.view().WorkView(), reports, c.now, c.evalID))
	}
	must.Eq(t, []cluster.JobID{"batch", "service", "system"}, evals(cluster.ClientFailed))
	must.Eq(t, []cluster.JobID{"service", "system"}, evals(cluster.ClientComplete))
	must.SliceEmpty(t, evals(cluster.ClientRunning))

	// Of several reports of one end the first counts: what has ended stays as it is.
	ends := func(first, then cluster.ClientStatus) []cluster.JobID {
		var reports []cluster.AllocReport
		for a := range c.view().Allocs() {
			reports = append(reports, c.statusReport(a, cluster.ClientRunning), c.statusReport(a, first), c.statusReport(a, then))
		}
		return jobsOf(scheduler.ReportEvals(c.view().WorkView(), reports, c.now, c.evalID))
	}
	must.Eq(t, []cluster.JobID{"service", "system"}, ends(cluster.ClientComplete, cluster.ClientFailed))
	must.Eq(t, []cluster.JobID{"batch", "service", "system"}, ends(cluster.ClientFailed, cluster.ClientComplete))
}

// A lost allocation that nothing replaces until its end is confirmed keeps its slot when its client reports that
// it runs. Bug: that report required an evaluation too, which had nothing to place. Below the version an entry of
// reports must have the same effect as on older servers.
func TestReportEvals_lostAndNotReplaced(t *testing.T) {
	for _, tc := range []struct {
		version cluster.Version
		report  cluster.ClientStatus
		want    []cluster.JobID
	}{
		{cluster.VersionOfConfirmingReports - 1, cluster.ClientRunning, []cluster.JobID{"web"}},
		{cluster.VersionOfConfirmingReports, cluster.ClientRunning, nil},
		{cluster.VersionOfConfirmingReports, cluster.ClientComplete, []cluster.JobID{"web"}},
		{cluster.VersionOfConfirmingReports, cluster.ClientFailed, []cluster.JobID{"web"}},
	} {
		t.Run(fmt.Sprintf("%s in cluster version %d", tc.report, tc.version), func(t *testing.T) {
			c := newCellOf(t, tc.version)
			n1 := c.node("n1")
			job := c.job("web", cluster.JobService, 1, disconnect(func(d *cluster.DisconnectStrategy) { d.NoReplace = true }))
			c.run()
			a := c.wanted(job)[0]
			c.status(n1, cluster.NodeDown)
			c.run()
			must.Eq(t, cluster.ClientLost, c.alloc(a.ID).ClientStatus)
			reports := []cluster.AllocReport{c.statusReport(a, tc.report)}
			must.Eq(t, tc.want, jobsOf(scheduler.ReportEvals(c.view().WorkView(), reports, c.now, c.evalID)))
		})
	}
}
