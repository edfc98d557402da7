package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// pending is the plan of the job's one pending evaluation.
func (c *cell) pending(k cluster.JobKey) *cluster.Plan {
	for e := range c.view().WorkView().OpenEvals(k) {
		if e.Status == cluster.EvalPending {
			return c.schedule(e)
		}
	}
	c.t.Fatalf("job %s has no pending evaluation", k)
	return nil
}

func reasons(refused []scheduler.Refusal) []string {
	var all []string
	for _, r := range refused {
		all = append(all, r.Why)
	}
	return all
}

// Row 102: a plan made before a drain places nothing on the node after it. The
// evaluation stays, and the next plan goes elsewhere.
func TestPlanInFlightWhenDrainStarts(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	job := c.job("web", cluster.JobService, 2)
	plan := c.pending(job)
	must.Len(t, 2, plan.Places)
	c.node("n2")
	c.drain(n1)
	must.Eq(t, []string{"node n1 is not ready", "node n1 is not ready"}, reasons(c.apply(plan)))
	must.SliceEmpty(t, c.wanted(job))
	must.Nil(t, first(c.view().WorkView().BlockedEvals()))
	c.run()
	must.Eq(t, []cluster.NodeID{"n2", "n2"}, nodesOf(c.wanted(job)))
}

// A drain that is cancelled withdraws its marks: what a plan in flight wanted on
// their account does not happen, neither stop nor replacement. The rest does.
func TestWithdrawnMark(t *testing.T) {
	c := parallel(t)
	n1 := c.node("n1")
	n2 := c.node("n2")
	job := c.job("web", cluster.JobService, 2)
	c.run()
	c.node("n3")
	old := c.wanted(job)
	c.drain(n1)
	c.drain(n2)
	c.mark(cluster.MarkPaced, old...)
	plan := c.pending(job)
	must.Len(t, 2, plan.Stops)
	must.Len(t, 2, plan.Places)
	c.cancel(n1)

	refused := c.apply(plan)
	must.Eq(t, []string{"its mark was withdrawn", "its predecessor " + string(old[0].ID) + " stays"}, reasons(refused))
	must.Eq(t, cluster.DesiredRun, c.alloc(old[0].ID).DesiredStatus)
	must.Eq(t, cluster.DesiredStop, c.alloc(old[1].ID).DesiredStatus)
	must.Len(t, 2, c.wanted(job))
	must.NotNil(t, first(c.view().WorkView().PendingEvals()))
	c.run()
	must.Eq(t, []cluster.NodeID{"n1", "n3"}, nodesOf(c.wanted(job)))
}

// A system allocation whose mark was withdrawn is not stopped either.
func TestWithdrawnSystemMark(t *testing.T) {
	c, n1, job := running(t, "log", cluster.JobSystem, 1)
	c.drain(n1)
	c.mark(cluster.MarkStage, c.wanted(job)...)
	plan := c.pending(job)
	c.cancel(n1)
	must.Eq(t, []string{"its mark was withdrawn"}, reasons(c.apply(plan)))
	c.run()
	must.Len(t, 1, c.wanted(job))
	must.Len(t, 1, c.allocs(job, func(*cluster.Allocation) bool { return true }))
}

func TestPlanOfEditedJobIsRefused(t *testing.T) {
	for name, edit := range map[string]func(*cell, cluster.JobKey){
		"scaled":  func(c *cell, k cluster.JobKey) { c.edit(k, func(j *cluster.Job) { j.TaskGroups[0].Count = 1 }) },
		"stopped": func(c *cell, k cluster.JobKey) { c.stopJob(k, false) },
		"purged":  func(c *cell, k cluster.JobKey) { c.stopJob(k, true) },
	} {
		t.Run(name, func(t *testing.T) {
			c := parallel(t)
			c.node("n1")
			job := c.job("web", cluster.JobService, 3)
			plan := c.pending(job)
			edit(c, job)
			must.Len(t, 1, c.apply(plan))
			must.SliceEmpty(t, c.wanted(job))
			c.run()
			must.LessEq(t, 1, len(c.wanted(job)))
		})
	}
}

// Two leaders plan the same evaluation: the second plan finds it answered. Also
// in a repeated evaluation the group has all that it needs.
func TestSamePlanTwice(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 3)
	one, two := c.pending(job), c.pending(job)
	must.SliceEmpty(t, c.apply(one))
	must.Eq(t, []string{"evaluation " + string(two.Eval.ID) + " is complete"}, reasons(c.apply(two)))
	must.Len(t, 3, c.wanted(job))

	c.evaluate(job)
	two.Eval = c.pending(job).Eval
	must.Eq(t, []string{"group g has all of its 3", "group g has all of its 3", "group g has all of its 3"}, reasons(c.apply(two)))
	must.Len(t, 3, c.wanted(job))
}

// One predecessor has one replacement, even if something is free besides.
func TestNoSecondReplacement(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1)
	c.node("n2")
	c.drain(n1)
	old := c.wanted(job)[0]
	c.mark(cluster.MarkPaced, old)
	stale := c.pending(job)
	c.settle()
	c.report(c.statusReport(c.wanted(job)[0], cluster.ClientFailed)) // its slot is free again
	stale.Eval = c.pending(job).Eval
	must.Eq(t, []string{"its predecessor " + string(old.ID) + " has been replaced"}, reasons(c.apply(stale)))
}

// A node returns between plan and apply. Its unknown allocations run again, so they get no
// replacement, even if another one has freed a slot. A server of cluster version 1 places the
// replacement.
func TestNoReplacementForAnAllocationThatIsBack(t *testing.T) {
	for _, tc := range []struct {
		version cluster.Version
		refused func(back *cluster.Allocation) []string
	}{
		{1, func(*cluster.Allocation) []string { return []string{"group g has all of its 2"} }},
		{2, func(back *cluster.Allocation) []string {
			return []string{"another allocation has the name " + back.Name}
		}},
	} {
		t.Run(fmt.Sprintf("cluster version %d", tc.version), func(t *testing.T) {
			c := newCellOf(t, tc.version)
			n1 := c.node("n1")
			job := c.job("web", cluster.JobService, 2, lostAfter(time.Minute))
			c.run()
			old := c.wanted(job)
			c.status(n1, cluster.NodeDisconnected)
			c.run()
			must.Eq(t, cluster.ClientUnknown, c.alloc(old[0].ID).ClientStatus)
			c.node("n2")
			stale := c.schedule(first(c.view().WorkView().BlockedEvals()))
			must.Len(t, 2, stale.Places)
			c.status(n1, cluster.NodeReady)
			c.report(c.statusReport(old[1], cluster.ClientFailed))
			must.Eq(t, tc.refused(old[0]), reasons(c.apply(stale)))
			c.run()
			must.Len(t, 2, c.wanted(job))
		})
	}
}

// A drain is cancelled between plan and apply, so the marked allocation stays. Another allocation
// failed and frees a slot. A placement under the name of the one that stays must not take that slot:
// two allocations of the group would have one name. A server of cluster version 1 places it.
func TestNoPlacementUnderANameThatStays(t *testing.T) {
	for version, placed := range map[cluster.Version]int{1: 1, 2: 0} {
		t.Run(fmt.Sprintf("cluster version %d", version), func(t *testing.T) {
			c := newCellOf(t, version)
			n1 := c.node("n1")
			job := c.job("web", cluster.JobService, 2)
			c.run()
			c.node("n2")
			old := c.wanted(job)
			c.drain(n1)
			c.mark(cluster.MarkPaced, old[0])
			plan := c.pending(job)
			must.Len(t, 1, plan.Places)
			plan.Places[0].PreviousAllocation = "" // an older replacement has been stopped
			c.cancel(n1)
			c.report(c.statusReport(old[1], cluster.ClientFailed))
			c.apply(plan)
			must.Len(t, placed, c.allocs(job, func(a *cluster.Allocation) bool { return a.ID == plan.Places[0].ID }))
			c.run()
			must.Len(t, 2, c.wanted(job))
		})
	}
}

// A surplus that is gone when the plan is applied stops no allocation.
func TestSurplusThatIsGone(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 3)
	c.run()
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
	plan := c.pending(job)
	must.Len(t, 1, plan.Stops)
	c.report(c.statusReport(c.wanted(job)[0], cluster.ClientFailed))
	must.Eq(t, []string{"group g has no surplus"}, reasons(c.apply(plan)))
	c.run()
	must.Len(t, 2, c.wanted(job))
}

// A surplus is given up by what is marked first: if something was marked after the
// plan was made, what the plan chose instead stays.
func TestSurplusThatWasMarked(t *testing.T) {
	c, n1, job := running(t, "web", cluster.JobService, 1)
	marked := c.wanted(job)[0]
	c.node("n2")
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 2 })
	c.run()
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 1 })
	plan := c.pending(job)
	must.Len(t, 1, plan.Stops)
	must.NotEq(t, marked.ID, plan.Stops[0].Alloc)
	c.drain(n1)
	c.mark(cluster.MarkPaced, marked)
	must.Eq(t, []string{"group g has no surplus but what is marked"}, reasons(c.apply(plan)))
	c.run()
	must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
	must.Eq(t, "", c.alloc(marked.ID).NextAllocation)
}

// A node that came back before the plan was applied keeps what it runs.
func TestNodeThatCameBack(t *testing.T) {
	for _, status := range []cluster.NodeStatus{cluster.NodeDown, cluster.NodeDisconnected} {
		t.Run(string(status), func(t *testing.T) {
			c := parallel(t)
			n1 := c.node("n1")
			job := c.job("web", cluster.JobService, 2, lostAfter(time.Minute))
			c.run()
			c.node("n2")
			c.status(n1, status)
			plan := c.pending(job)
			must.Len(t, 2, plan.Stops)
			c.status(n1, cluster.NodeReady)
			must.Len(t, 4, c.apply(plan))
			c.run()
			must.Eq(t, []cluster.NodeID{n1, n1}, nodesOf(c.wanted(job)))
			must.Len(t, 2, c.allocs(job, func(*cluster.Allocation) bool { return true }))
		})
	}
}

// What has stopped already is not stopped again, and that is no refusal.
func TestMootStops(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 1)
	c.run()
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 0 })
	plan := c.pending(job)
	plan.Stops = append(plan.Stops, plan.Stops[0], cluster.PlanStop{Alloc: "never-was"})
	must.SliceEmpty(t, c.apply(plan))
	c.evaluate(job)
	again := c.pending(job)
	again.Stops = plan.Stops
	stoppedAt := c.allocs(job, (*cluster.Allocation).ServerTerminal)[0].ModifyIndex
	must.SliceEmpty(t, c.apply(again))
	must.Eq(t, stoppedAt, c.allocs(job, (*cluster.Allocation).ServerTerminal)[0].ModifyIndex)
}

// Two jobs planned from one state want the same room: one gets it.
func TestPlansThatCompeteForRoom(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	a, b := c.job("a", cluster.JobService, 7), c.job("b", cluster.JobService, 7)
	one, two := c.pending(a), c.pending(b)
	must.SliceEmpty(t, c.apply(one))
	must.Len(t, 4, c.apply(two))
	must.Len(t, 3, c.wanted(b))
	c.settle()
	must.Len(t, 3, c.wanted(b))
	must.Eq(t, map[string]int{"g": 4}, first(c.view().WorkView().BlockedEvals()).Queued)
}

func TestMaxAllocs(t *testing.T) {
	c := parallel(t)
	c.node("n1", func(n *cluster.Node) { n.MaxAllocs = 3 })
	a, b := c.job("a", cluster.JobService, 2), c.job("b", cluster.JobService, 2)
	one, two := c.pending(a), c.pending(b)
	must.SliceEmpty(t, c.apply(one))
	must.Eq(t, []string{"node n1 has no room"}, reasons(c.apply(two)))
	c.settle()
	must.Len(t, 1, c.wanted(b))
}

// An allocation that is stopping holds its resources until its client has reported
// that it ended.
func TestStoppingHoldsItsRoom(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	a := c.job("a", cluster.JobService, 10)
	c.run()
	c.stopJob(a, false)
	b := c.job("b", cluster.JobService, 1)
	c.settle()
	must.SliceEmpty(t, c.wanted(b))
	c.progress()
	c.unblock()
	must.Len(t, 1, c.wanted(b))
}

// Nothing that a damaged entry can hold brings the check down, or gets through.
func TestDamagedPlans(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 3)
	other := c.job("other", cluster.JobService, 1, func(j *cluster.Job) { j.TaskGroups[0].Name = "other" })
	c.run()
	c.edit(job, func(j *cluster.Job) { j.TaskGroups[0].Count = 9 })
	good := c.pending(job)
	a := good.Places[0]
	edit := func(f func(*cluster.Allocation)) *cluster.Allocation {
		bad := a.Copy()
		f(bad)
		return bad
	}
	running := c.wanted(other)[0]
	for name, plan := range map[string]*cluster.Plan{
		"nothing":         nil,
		"no evaluation":   {},
		"unknown":         {Eval: &cluster.Evaluation{ID: "never-was"}},
		"of another job":  {Eval: &cluster.Evaluation{ID: good.Eval.ID, JobID: "other"}},
		"nil placement":   {Eval: good.Eval, SnapshotIndex: good.SnapshotIndex, Places: []*cluster.Allocation{nil}},
		"without an id":   {Eval: good.Eval, SnapshotIndex: good.SnapshotIndex, Places: []*cluster.Allocation{edit(func(a *cluster.Allocation) { a.ID = "" })}},
		"taken id":        {Eval: good.Eval, SnapshotIndex: good.SnapshotIndex, Places: []*cluster.Allocation{edit(func(a *cluster.Allocation) { a.ID = running.ID })}},
		"other's place":   {Eval: good.Eval, SnapshotIndex: good.SnapshotIndex, Places: []*cluster.Allocation{edit(func(a *cluster.Allocation) { a.JobID = "other" })}},
		"no group":        {Eval: good.Eval, SnapshotIndex: good.SnapshotIndex, Places: []*cluster.Allocation{edit(func(a *cluster.Allocation) { a.TaskGroup = "none" })}},
		"no node":         {Eval: good.Eval, SnapshotIndex: good.SnapshotIndex, Places: []*cluster.Allocation{edit(func(a *cluster.Allocation) { a.NodeID = "none" })}},
		"lone canary":     {Eval: good.Eval, SnapshotIndex: good.SnapshotIndex, Places: []*cluster.Allocation{edit(canary)}},
		"other's stop":    {Eval: good.Eval, SnapshotIndex: good.SnapshotIndex, Stops: []cluster.PlanStop{{Alloc: running.ID}}},
		"other's blocked": {Eval: good.Eval, SnapshotIndex: good.SnapshotIndex, Blocked: &cluster.Evaluation{ID: "b", JobID: "other"}},
	} {
		accepted, refused := scheduler.Check(c.view().WorkView(), plan)
		must.Len(t, 1, refused, must.Sprint(name))
		must.SliceEmpty(t, accepted.Places, must.Sprint(name))
		must.SliceEmpty(t, accepted.Stops, must.Sprint(name))
		must.Nil(t, accepted.Blocked, must.Sprint(name))
	}
	// An entry may claim less than an allocation takes: the resources of the job count.
	small := edit(func(a *cluster.Allocation) { a.Resources, a.Job = cluster.Resources{}, nil })
	accepted, refused := scheduler.Check(c.view().WorkView(), &cluster.Plan{Eval: good.Eval, SnapshotIndex: good.SnapshotIndex, Places: []*cluster.Allocation{small}})
	must.SliceEmpty(t, refused)
	must.Eq(t, a.Resources, accepted.Places[0].Resources)
	must.Eq(t, c.view().Job(job), accepted.Places[0].Job)
	must.Nil(t, small.Job)
}

// A job has at most one blocked evaluation, also if the evaluation has another origin.
func TestOneBlockedEvaluation(t *testing.T) {
	c := parallel(t)
	job := c.job("web", cluster.JobService, 2)
	plan := c.pending(job)
	must.NotNil(t, plan.Blocked)
	c.write(func(txn *statestore.Txn) error {
		b := plan.Blocked.Copy()
		b.ID = "made-by-another-leader"
		return txn.UpsertEvals([]*cluster.Evaluation{b})
	})
	must.SliceEmpty(t, c.apply(plan))
	must.Eq(t, "made-by-another-leader", c.view().Eval(plan.Eval.ID).BlockedEval)
	must.Eq(t, "made-by-another-leader", first(c.view().WorkView().BlockedEvals()).ID)
	must.Nil(t, c.view().Eval(plan.Blocked.ID))
}
