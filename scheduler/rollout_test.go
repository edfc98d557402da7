package scheduler_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
)

// newVersion registers a version of a job whose tasks are others.
func newVersion(c *cell, k cluster.JobKey, edit ...func(*cluster.Job)) {
	c.edit(k, func(j *cluster.Job) {
		j.TaskGroups[0].Tasks[0].Env = map[string]string{"VERSION": c.id("version")}
		for _, f := range edit {
			f(j)
		}
	})
}

func updates(mostAtOnce int) func(*cluster.Job) {
	return func(j *cluster.Job) {
		u := cluster.DefaultUpdateStrategy()
		u.MaxParallel = mostAtOnce
		j.TaskGroups[0].Update = &u
	}
}

// countVersions counts a job's allocations that should run: those of its present version and those of others.
func countVersions(c *cell, k cluster.JobKey) (present, others, healthy int) {
	for _, a := range c.wanted(k) {
		if a.Job.Version == c.view().Job(k).Version {
			present++
		} else {
			others++
		}
		if a.Healthy(c.view().Node(a.NodeID)) {
			healthy++
		}
	}
	return present, others, healthy
}

// Bug: a new version of a job never reached the allocations that ran.
func TestRollout_replacesAllAtItsPace(t *testing.T) {
	t.Parallel()
	for _, pace := range []int{1, 2, 5, 7} {
		c := newCell(t)
		c.node("n1")
		c.node("n2")
		job := c.job("web", cluster.JobService, 5, updates(pace))
		c.run()
		newVersion(c, job)
		rounds := 0
		for ; ; rounds++ {
			c.settle()
			_, others, healthy := countVersions(c, job)
			must.GreaterEq(t, 5-pace, healthy, must.Sprintf("pace %d, round %d", pace, rounds))
			must.Eq(t, max(0, 5-pace*(rounds+1)), others, must.Sprintf("pace %d, round %d", pace, rounds))
			if others == 0 {
				break
			}
			c.progress()
		}
		c.run()
		present, others, healthy := countVersions(c, job)
		must.Eq(t, []int{5, 0, 5}, []int{present, others, healthy})
		must.Eq(t, []string{"web.g[0]", "web.g[1]", "web.g[2]", "web.g[3]", "web.g[4]"}, namesOf(c.wanted(job)))
		for _, a := range c.wanted(job) {
			previous := c.alloc(a.PreviousAllocation)
			must.Eq(t, cluster.DescNewerVersion, previous.DesiredDescription)
			must.Eq(t, a.ID, previous.NextAllocation)
			must.Eq(t, previous.Name, a.Name)
		}
	}
}

// A pace of zero is no limit, as in the compatible API. Batch jobs have no health and no pace, and what is
// done stays done.
func TestRollout_allAtOnce(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	c.node("n1")
	c.node("n2")
	service, batch := c.job("web", cluster.JobService, 3, updates(0)), c.job("sum", cluster.JobBatch, 3)
	c.run()
	for _, job := range []cluster.JobKey{service, batch} {
		newVersion(c, job)
		c.settle()
		present, others, healthy := countVersions(c, job)
		must.Eq(t, []int{3, 0, 0}, []int{present, others, healthy})
	}
}

// What clients do not read changes nothing that runs.
func TestRollout_leavesWhatRunsAlike(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*cluster.Job){
		"count":    func(j *cluster.Job) { j.TaskGroups[0].Count = 4 },
		"migrate":  func(j *cluster.Job) { j.TaskGroups[0].Migrate.MaxParallel = 3 },
		"update":   updates(2),
		"priority": func(j *cluster.Job) { j.Priority = 70 },
		"constraint": func(j *cluster.Job) {
			j.TaskGroups[0].Tasks[0].Constraints = []cluster.Constraint{{LTarget: "${node.class}", RTarget: "x", Operand: "!="}}
		},
		"restart policy": func(j *cluster.Job) { p := cluster.DefaultRestartPolicy(j.Type); j.TaskGroups[0].RestartPolicy = &p },
	} {
		c := newCell(t)
		c.node("n1")
		job := c.job("web", cluster.JobService, 3)
		c.run()
		before := c.wanted(job)
		c.edit(job, edit)
		c.run()
		for _, a := range before {
			must.False(t, c.alloc(a.ID).Terminal(), must.Sprint(name))
		}
	}
}

// A rollout waits while an allocation of the new version is unhealthy, and for each that has no verdict yet.
func TestRollout_stopsAtAnUnhealthyAllocation(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	c.node("n1")
	c.node("n2")
	job := c.job("web", cluster.JobService, 4, updates(2))
	c.run()
	newVersion(c, job)
	c.settle()
	fresh := c.allocs(job, func(a *cluster.Allocation) bool { return a.ClientStatus == cluster.ClientPending })
	must.Len(t, 2, fresh)

	sick := c.statusReport(fresh[0], cluster.ClientRunning)
	*sick.Healthy = false
	c.report(sick, c.statusReport(fresh[1], cluster.ClientRunning))
	c.settle()
	_, others, healthy := countVersions(c, job)
	must.Eq(t, []int{2, 3}, []int{others, healthy})
	must.Eq(t, []cluster.GroupRollout{{Group: "g", Outdated: 2, Unhealthy: fresh[0].ID, Why: "allocation " + string(fresh[0].ID) + " of the new version is unhealthy"}},
		scheduler.Rollouts(c.view().WorkView(), job))

	c.now = c.now.Add(time.Second)
	c.report(c.statusReport(c.alloc(fresh[0].ID), cluster.ClientRunning)) // it has recovered
	c.settle()
	_, others, _ = countVersions(c, job)
	must.Eq(t, 0, others)
	must.SliceEmpty(t, scheduler.Rollouts(c.view().WorkView(), job))
}

// Unhealthy allocations of the older version are replaced first, also if the group is below its budget.
func TestRollout_replacesUnhealthyOnesFirst(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	c.node("n1")
	c.node("n2")
	job := c.job("web", cluster.JobService, 4)
	c.run()
	c.now = c.now.Add(time.Minute)
	var sick []cluster.AllocID
	for _, a := range c.wanted(job)[1:3] {
		r := c.statusReport(a, cluster.ClientRunning)
		*r.Healthy = false
		c.report(r)
		sick = append(sick, a.ID)
	}
	newVersion(c, job)
	c.settle()
	_, others, healthy := countVersions(c, job)
	must.Eq(t, []int{3, 2}, []int{others, healthy})
	must.True(t, c.alloc(sick[0]).Terminal() || c.alloc(sick[1]).Terminal())
	c.run()
	present, others, _ := countVersions(c, job)
	must.Eq(t, []int{4, 0}, []int{present, others})
}

// A drain and a rollout share the healthy allocations: the rollout waits while the drain takes one.
func TestRollout_besideADrain(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	n1 := c.node("n1")
	c.node("n2")
	job := c.job("web", cluster.JobService, 4)
	c.run()
	c.drain(n1)
	c.mark(cluster.MarkPaced, pick(c.wanted(job), on(n1))[0])
	newVersion(c, job)
	c.settle()
	_, _, healthy := countVersions(c, job)
	must.Eq(t, 3, healthy)
	present, others, _ := countVersions(c, job)
	must.Eq(t, []int{1, 3}, []int{present, others}, must.Sprint("only the drain has moved one, to the new version"))
	c.progress()
	c.settle()
	_, others, healthy = countVersions(c, job)
	must.Eq(t, []int{2, 3}, []int{others, healthy})
}

// Allocations on a node that is disconnected are not healthy, and nothing replaces them for a rollout. The
// others keep the budget of the group.
func TestRollout_leavesTheBudgetBesideAnAwayNode(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	n1 := c.node("n1")
	c.node("n2")
	job := c.job("web", cluster.JobService, 4, updates(2), func(j *cluster.Job) {
		j.TaskGroups[0].Disconnect = cluster.DisconnectStrategy{LostAfter: time.Hour, NoReplace: true}
	})
	c.run()
	c.status(n1, cluster.NodeDisconnected)
	newVersion(c, job)
	c.settle()
	_, others, healthy := countVersions(c, job)
	must.Eq(t, []int{4, 2}, []int{others, healthy})
}

// A node returns before the replacement of its allocation runs. Bug: a new version replaced both allocations of
// the slot, and placed more than the group's count.
func TestRollout_besideAReplacementThatStarts(t *testing.T) {
	t.Parallel()
	for _, pace := range []int{0, 1, 2} {
		c := newCell(t)
		n1 := c.node("n1")
		job := c.job("web", cluster.JobService, 3, updates(pace), func(j *cluster.Job) {
			j.TaskGroups[0].Disconnect = cluster.DisconnectStrategy{LostAfter: time.Hour, KeepReplacement: true}
		})
		c.run()
		first := c.wanted(job)
		c.status(n1, cluster.NodeDisconnected)
		c.node("n2")
		c.settle()
		c.status(n1, cluster.NodeReady)
		for _, a := range first {
			c.report(c.statusReport(a, cluster.ClientRunning))
		}
		c.settle()
		must.Len(t, 6, c.wanted(job), must.Sprint("three run, and three start"))

		newVersion(c, job)
		for round := 0; ; round++ {
			c.settle()
			present, others, _ := countVersions(c, job)
			must.LessEq(t, 3, present, must.Sprintf("pace %d, round %d", pace, round))
			if pace > 0 {
				must.GreaterEq(t, 3-pace, others+present)
			}
			if present == 3 && others == 0 {
				break
			}
			must.Less(t, 20, round, must.Sprintf("pace %d: %d new and %d old", pace, present, others))
			c.progress()
		}
	}
}

// Bug: a rollout waited for ever if the last allocation of the new version had its verdict before it ran.
func TestRollout_afterAVerdictBeforeTheStart(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 2, updates(1))
	c.run()
	newVersion(c, job)
	c.settle()
	for _, a := range c.wanted(job) {
		if a.ClientStatus != cluster.ClientPending {
			continue
		}
		judged := c.statusReport(a, cluster.ClientPending)
		judged.Healthy = new(true)
		c.report(judged)
		runs := c.statusReport(c.alloc(a.ID), cluster.ClientRunning)
		runs.Healthy = nil
		must.Len(t, 1, scheduler.ReportEvals(c.view().WorkView(), []cluster.AllocReport{runs}, c.now, c.evalID))
		return
	}
	t.Fatal("no allocation of the new version starts")
}

// A system job is replaced on one node after the other.
func TestRollout_ofASystemJob(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	for _, n := range []string{"n1", "n2", "n3"} {
		c.node(n)
	}
	job := c.job("log", cluster.JobSystem, 1)
	c.run()
	newVersion(c, job)
	for round := range 3 {
		c.settle()
		present, others, _ := countVersions(c, job)
		must.Eq(t, []int{round + 1, 2 - round}, []int{present, others})
		c.progress()
	}
	must.Eq(t, []cluster.NodeID{"n1", "n2", "n3"}, nodesOf(c.wanted(job)))
}

// A node of a system job without room for its replacement counts for the pace, until the replacement is healthy there.
func TestRollout_ofASystemJobOnFullNodes(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	for _, n := range []string{"n1", "n2", "n3"} {
		c.node(n, func(n *cluster.Node) { n.Resources.CPU = 100 })
	}
	job := c.job("log", cluster.JobSystem, 1)
	c.run()
	newVersion(c, job)
	for round := range 3 {
		for range 2 {
			c.evaluate(job)
			c.settle()
			present, others, _ := countVersions(c, job)
			must.Eq(t, []int{round, 2 - round}, []int{present, others})
		}
		c.progress() // the old one ends
		c.unblock()
		present, others, _ := countVersions(c, job)
		must.Eq(t, []int{round + 1, 2 - round}, []int{present, others})
		c.progress() // the new one is healthy
	}
	must.Eq(t, []cluster.NodeID{"n1", "n2", "n3"}, nodesOf(c.wanted(job)))
}

// A version of a system job that fails stays on its first node. Bug: an allocation that had ended counted for
// nothing, so each failure let the rollout stop the allocation of another node.
func TestRollout_ofASystemJobThatFails(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	for _, n := range []string{"n1", "n2", "n3"} {
		c.node(n)
	}
	job := c.job("log", cluster.JobSystem, 1)
	c.run()
	newVersion(c, job)
	for range 2 * cluster.MaxReschedules {
		c.settle()
		c.now = c.now.Add(time.Second)
		var reports []cluster.AllocReport
		for _, a := range c.allocs(job, func(a *cluster.Allocation) bool { return a.ClientStatus == cluster.ClientPending }) {
			reports = append(reports, c.statusReport(a, cluster.ClientFailed))
		}
		c.report(reports...)
		_, others, healthy := countVersions(c, job)
		must.Eq(t, []int{2, 2}, []int{others, healthy})
	}
	c.settle()
	rollouts := scheduler.Rollouts(c.view().WorkView(), job)
	must.Len(t, 1, rollouts)
	must.NotEq(t, "", rollouts[0].Unhealthy)

	newVersion(c, job)
	c.run()
	present, others, healthy := countVersions(c, job)
	must.Eq(t, []int{3, 0, 3}, []int{present, others, healthy})
}

// A system job keeps what runs on a node that takes no replacement. Bug: a rollout stopped it on a draining
// node before its turn, and waited for a replacement there.
func TestRollout_ofASystemJobLeavesADrainingNode(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	n1 := c.node("n1")
	c.node("n2")
	job := c.job("log", cluster.JobSystem, 1)
	c.run()
	c.drain(n1)
	newVersion(c, job)
	c.run()
	present, others, _ := countVersions(c, job)
	must.Eq(t, []int{1, 1}, []int{present, others})
	must.Eq(t, n1, pick(c.wanted(job), func(a *cluster.Allocation) bool { return a.Job.Version == 0 })[0].NodeID)
}

// A system job keeps what runs on a node that lacks what a new version demands, until it has that. Bug: the rollout
// stopped it, and waited for a replacement there for ever.
func TestRollout_ofASystemJobOnNodesThatLackSomething(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*cluster.Job){
		"cores":  func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Cores = 1 },
		"driver": withDriver,
		"ports":  func(j *cluster.Job) { j.TaskGroups[0].Ports = []cluster.PortRequest{{Label: "p"}} },
		"device": func(j *cluster.Job) {
			j.TaskGroups[0].Tasks[0].Devices = []cluster.DeviceRequest{{Name: "nvidia/gpu", Count: 1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCell(t)
			able := func(n *cluster.Node) {
				n.Resources.CPU, n.Resources.GPU, n.Cores = 5000, 0, cluster.Cores{0, 1}
				n.Network = &cluster.NodeNetwork{IP: "10.0.0.1", MinDynamicPort: 100, MaxDynamicPort: 110}
				n.Devices = []*cluster.DeviceGroup{{Kind: cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"}, Devices: []cluster.Device{{ID: "a", Healthy: true}, {ID: "b", Healthy: true}}}}
			}
			withoutDriver := func(n *cluster.Node) {
				n.ReportsDrivers = true
				n.Drivers = map[string]*cluster.DriverInfo{"mock": {Detected: true, Healthy: true}}
			}
			c.node("n1", withoutDriver)
			c.node("n2", withoutDriver)
			c.node("n3", able)
			c.node("n4", able)
			job := c.job("log", cluster.JobSystem, 1, func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Driver = "mock" })
			c.run()
			newVersion(c, job, edit)
			c.run()
			present, others, healthy := countVersions(c, job)
			must.Eq(t, []int{2, 2, 4}, []int{present, others, healthy})
			must.SliceEmpty(t, scheduler.Rollouts(c.view().WorkView(), job), must.Sprint("it is at its end"))

			c.node("n2", able)
			c.run()
			present, others, healthy = countVersions(c, job)
			must.Eq(t, []int{3, 1, 4}, []int{present, others, healthy})
		})
	}
}

// A node that the present version excludes does not count for max_parallel. Bug: an earlier rollout had stopped the
// allocation there, and the later rollout waited for a replacement for ever.
func TestRollout_ofASystemJobThatLeavesAFullNode(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*cluster.Job){
		"class": func(j *cluster.Job) { j.TaskGroups[0].NodeClasses = []string{"large"} },
		"cores": func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Cores = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCell(t)
			large := func(n *cluster.Node) { n.NodeClass, n.Cores, n.Resources.CPU = "large", cluster.Cores{0, 1}, 5000 }
			c.node("n1", large)
			c.node("n2", large)
			c.node("n3", func(n *cluster.Node) { n.Resources.CPU = 100 })
			job := c.job("log", cluster.JobSystem, 1)
			c.run()
			last := pick(c.wanted(job), on("n3"))[0]
			sick := c.statusReport(last, cluster.ClientRunning)
			*sick.Healthy = false
			c.report(sick)
			newVersion(c, job)
			c.settle()
			must.Eq(t, cluster.DescNewerVersion, c.alloc(last.ID).DesiredDescription)
			newVersion(c, job, edit)
			c.run()
			present, others, healthy := countVersions(c, job)
			must.Eq(t, []int{2, 0, 2}, []int{present, others, healthy})
		})
	}
}

// A deadline stops batch work for good, but for work that a newer version of its job has replaced. Bug: no
// evaluation placed the new work.
func TestRollout_ofBatchWorkAtADeadline(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	n1 := c.node("n1")
	job := c.job("sum", cluster.JobBatch, 1)
	c.run()
	c.node("n2")
	c.drain(n1)
	c.mark(cluster.MarkDeadline, c.wanted(job)[0])
	newVersion(c, job)
	c.run()
	present, others, _ := countVersions(c, job)
	must.Eq(t, []int{1, 0}, []int{present, others})
}

// The replacement comes into the room of the stopped allocation as soon as that has ended.
func TestRollout_onAFullNode(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	c.node("n1", func(n *cluster.Node) { n.Resources.CPU = 200 })
	job := c.job("web", cluster.JobService, 2)
	c.run()
	newVersion(c, job)
	c.settle()
	present, others, _ := countVersions(c, job)
	must.Eq(t, []int{0, 1}, []int{present, others})
	c.run()
	present, others, healthy := countVersions(c, job)
	must.Eq(t, []int{2, 0, 2}, []int{present, others, healthy})
}

// Below the cluster version of rollouts servers leave running allocations as they are.
func TestRollout_belowItsClusterVersion(t *testing.T) {
	t.Parallel()
	c := newCellOf(t, cluster.VersionOfRollouts-1)
	c.node("n1")
	job := c.job("web", cluster.JobService, 2)
	c.run()
	newVersion(c, job)
	c.run()
	_, others, _ := countVersions(c, job)
	must.Eq(t, 2, others)
}

// Two plans of one snapshot may not both take the room of a rollout.
func TestRollout_isJudgedAgain(t *testing.T) {
	t.Parallel()
	c := newCell(t)
	c.node("n1")
	job := c.job("web", cluster.JobService, 3)
	c.run()
	newVersion(c, job)
	e := first(c.view().WorkView().PendingEvals())
	plan := c.schedule(e)
	must.Len(t, 1, plan.Stops)
	must.SliceEmpty(t, c.apply(plan))

	running := pick(c.wanted(job), func(a *cluster.Allocation) bool { return a.ClientStatus == cluster.ClientRunning })
	c.evaluate(job)
	next := &cluster.Plan{At: c.now, Eval: first(c.view().WorkView().PendingEvals()), SnapshotIndex: c.index,
		Stops: []cluster.PlanStop{{Alloc: running[0].ID, Description: cluster.DescNewerVersion}}}
	refused := c.apply(next)
	must.Len(t, 1, refused)
	must.StrContains(t, refused[0].Why, "max_parallel of its update is 1")

	n1 := running[0].NodeID
	c.drain(n1)
	c.mark(cluster.MarkPaced, running[0])
	refused = c.apply(next) // the evaluation is still pending
	must.Len(t, 1, refused)
	must.StrContains(t, refused[0].Why, "a drain has marked it")

	fresh := pick(c.wanted(job), func(a *cluster.Allocation) bool { return a.ClientStatus == cluster.ClientPending })
	_, refused = scheduler.Check(c.view().WorkView(), &cluster.Plan{At: c.now, Eval: first(c.view().WorkView().PendingEvals()), SnapshotIndex: c.index,
		Stops: []cluster.PlanStop{{Alloc: fresh[0].ID, Description: cluster.DescNewerVersion}}})
	must.Len(t, 1, refused)
	must.StrContains(t, refused[0].Why, "it runs like the present version")
}
