package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

// rawExec sets whether the node's driver raw_exec can start tasks.
func rawExec(healthy bool) func(*cluster.Node) {
	return func(n *cluster.Node) {
		n.ReportsDrivers = true
		n.Drivers = map[string]*cluster.DriverInfo{"raw_exec": {Detected: true, Healthy: healthy}}
	}
}

func kernel(name string) func(*cluster.Node) {
	return func(n *cluster.Node) { n.Attributes = map[string]string{"kernel.name": name} }
}

func withDriver(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Driver = "raw_exec" }

func onLinux(j *cluster.Job) {
	j.Constraints = []cluster.Constraint{{LTarget: "${attr.kernel.name}", Operand: "=", RTarget: "linux"}}
}

// Tasks go where their driver can start them. A node that does not report its drivers has all of
// them. When a driver becomes healthy, what waits is placed; when it becomes unhealthy, what runs
// stays.
func TestDrivers_APlacementNeedsAHealthyDriver(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			c.node("n1", rawExec(false))
			c.node("n2", func(n *cluster.Node) { n.ReportsDrivers = true })
			job := c.job("web", kind, 1, withDriver)
			c.run()
			must.SliceEmpty(t, c.wanted(job))

			c.node("n1", rawExec(true))
			c.run()
			must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)))
			c.node("n1", rawExec(false))
			c.run()
			must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)), must.Sprint("what runs stays"))

			silent := c.job("other", kind, 1, withDriver)
			c.node("n3")
			c.run()
			must.Eq(t, []cluster.NodeID{"n3"}, nodesOf(c.wanted(silent)))
		})
	}
}

func TestDrivers_ConstraintsAndKillTimeouts(t *testing.T) {
	c := parallel(t)
	c.node("n1", kernel("windows"))
	c.node("n2", kernel("linux"), func(n *cluster.Node) { n.MaxKillTimeout = 30 * time.Second })
	job := c.job("web", cluster.JobService, 4, onLinux)
	c.run()
	must.Eq(t, []cluster.NodeID{"n2", "n2", "n2", "n2"}, nodesOf(c.wanted(job)))

	patient := c.job("patient", cluster.JobService, 1, onLinux, func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].KillTimeout = time.Minute })
	c.run()
	must.SliceEmpty(t, c.wanted(patient))
	c.node("n2", kernel("linux"), func(n *cluster.Node) { n.MaxKillTimeout = time.Minute })
	c.run()
	must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(patient)))
}

// A system job leaves a node that a new version of the job excludes. A fact of the node that changes
// moves nothing.
func TestDrivers_ConstraintsOfSystemJobs(t *testing.T) {
	c := parallel(t)
	c.node("n1", kernel("linux"))
	c.node("n2", kernel("windows"))
	job := c.job("agent", cluster.JobSystem, 1, onLinux)
	c.run()
	must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)))
	c.node("n1", kernel("other"))
	c.run()
	must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)))
	c.edit(job, func(j *cluster.Job) { j.Constraints[0].RTarget = "windows" })
	c.run()
	must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
}

// A plan that was made before a driver became unhealthy places nothing there.
func TestDrivers_AreJudgedAgainAtApply(t *testing.T) {
	c := parallel(t)
	c.node("n1", rawExec(true), func(n *cluster.Node) { n.Attributes = map[string]string{"kernel.name": "linux"} })
	job := c.job("web", cluster.JobService, 1, withDriver, onLinux)
	plan := c.pending(job)
	must.Len(t, 1, plan.Places)
	for want, edit := range map[string]func(*cluster.Node){
		feasible.MissingDrivers + ": raw_exec":   rawExec(false),
		"kill timeout 5s is above the node's 1s": func(n *cluster.Node) { rawExec(true)(n); n.MaxKillTimeout = time.Second },
	} {
		c.node("n1", edit, kernel("linux"))
		must.Eq(t, []string{"node n1 is not for group default/web.g: " + want}, reasons(c.apply(plan)))
	}
}

// Servers do not judge constraints when they apply a plan: versions of Go may differ in what a regular
// expression matches. What the plan chose stands unless the node was written since. An expression that
// one of the servers does not understand changes nothing.
func TestDrivers_ConstraintsAreNotJudgedAtApply(t *testing.T) {
	c := parallel(t)
	c.node("n1", kernel("linux"))
	job := c.job("web", cluster.JobService, 1, onLinux)
	free := c.job("free", cluster.JobService, 1)
	plan, other := c.pending(job), c.pending(free)
	must.Len(t, 1, plan.Places)
	for _, name := range []string{"windows", "linux"} {
		c.node("n1", kernel(name))
		want := fmt.Sprintf("node n1 is not for group default/web.g: it was written at index %d, after the plan's %d, and the group has constraints", c.index, plan.SnapshotIndex)
		must.Eq(t, []string{want}, reasons(c.apply(plan)))
	}
	must.SliceEmpty(t, reasons(c.apply(other)), must.Sprint("it has no constraints"))
	c.run()
	must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)), must.Sprint("the scheduler has planned again"))

	strange := c.job("strange", cluster.JobService, 1, func(j *cluster.Job) {
		j.Constraints = []cluster.Constraint{{LTarget: "a", Operand: cluster.OperandRegexp, RTarget: "("}}
	})
	must.SliceEmpty(t, c.pending(strange).Places)
	newer := c.pending(strange)
	newer.Places, newer.Blocked = []*cluster.Allocation{{ID: "s1", NodeID: "n1", JobID: "strange", Namespace: "default", Name: "strange.g[0]", TaskGroup: "g"}}, nil
	must.SliceEmpty(t, reasons(c.apply(newer)), must.Sprint("the leader understood it"))
	must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(strange)))
}

// Drivers of nodes change at any time between plan and apply: nothing is placed where its driver cannot
// start it, and nothing waits while a node could take it.
func TestDrivers_ChangeAtAnyTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newCell(rt)
		nodes := rapid.IntRange(1, 4).Draw(rt, "nodes")
		flap := func(i int) {
			c.node(fmt.Sprint("n", i), rawExec(rapid.Bool().Draw(rt, "healthy")), kernel(rapid.SampledFrom([]string{"linux", "windows"}).Draw(rt, "kernel")))
		}
		for i := range nodes {
			flap(i)
		}
		kind := rapid.SampledFrom([]cluster.JobType{cluster.JobService, cluster.JobSystem}).Draw(rt, "kind")
		job := c.job("web", kind, 1, withDriver, onLinux)
		for range rapid.IntRange(1, 5).Draw(rt, "changes") {
			for e := first(c.view().WorkView().PendingEvals()); e != nil; e = first(c.view().WorkView().PendingEvals()) {
				plan := c.schedule(e)
				flap(rapid.IntRange(0, nodes-1).Draw(rt, "node"))
				c.apply(plan)
				for _, a := range c.wanted(job) {
					if a.CreateIndex == c.index {
						demands := feasible.Of(a.Job).Group(a.Job.TaskGroups[0])
						must.Eq(rt, "", demands.Refusal(c.view().Node(a.NodeID)))
					}
				}
				if rapid.Bool().Draw(rt, "rest") {
					break
				}
			}
		}
		c.run()
		demands := feasible.Of(c.view().Job(job)).Group(c.view().Job(job).TaskGroups[0])
		for n := range c.view().Nodes() {
			if here := len(pick(c.wanted(job), on(n.ID))); demands.Refusal(n) == "" && (kind == cluster.JobSystem || len(c.wanted(job)) == 0) {
				must.Eq(rt, 1, here, must.Sprint("node ", n.ID, " could take one"))
			}
		}
	})
}
