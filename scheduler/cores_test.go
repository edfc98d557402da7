package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// cores gives a node cores for tasks.
func cores(all ...int) func(*cluster.Node) {
	return func(n *cluster.Node) { n.Cores, n.Resources.CPU = all, 100*cluster.CPUOfCore }
}

// withCores gives the tasks of a job cores: the first one the first number, and so on.
func withCores(counts ...int) func(*cluster.Job) {
	return func(j *cluster.Job) {
		for i, count := range counts {
			if i > 0 {
				j.TaskGroups[0].Tasks = append(j.TaskGroups[0].Tasks, &cluster.Task{Name: fmt.Sprint("t", i), KillTimeout: 1})
			}
			j.TaskGroups[0].Tasks[i].Cores = count
		}
	}
}

// coresOn returns the cores in use of a node by allocation, and fails if two tasks have one core.
func coresOn(c *cell, n cluster.NodeID) (count int) {
	owners := map[int]string{}
	for a := range c.view().WorkView().LiveAllocsByNode(n) {
		if a.Cores == nil {
			continue
		}
		for _, t := range a.Cores.All {
			for _, core := range t.Cores {
				must.Eq(c.t, "", owners[core], must.Sprint("core ", core, " has two owners"))
				owners[core] = fmt.Sprint(a.ID, " ", t.Task)
				count++
			}
		}
	}
	return count
}

// A core has one owner until the owner has ended. A group that needs more cores than are free waits, and goes
// nowhere if a node reports none.
func TestCores_haveOneOwner(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobBatch, cluster.JobSystem} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			c.node("n1", cores(1, 2, 3))
			c.node("n2")
			job := c.job("web", kind, 1, withCores(1, 0, 1))
			c.run()
			must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)))
			must.Eq(t, []cluster.TaskCores{{Task: "t", Cores: cluster.Cores{1}}, {Task: "t2", Cores: cluster.Cores{2}}}, c.wanted(job)[0].Cores.All)
			must.Eq(t, int64(2*cluster.CPUOfCore), c.wanted(job)[0].Resources.CPU, must.Sprint("cores replace cpu"))

			other := c.job("other", kind, 1, withCores(2))
			c.run()
			must.SliceEmpty(t, c.wanted(other))
			c.stopJob(job, false)
			c.settle()
			must.SliceEmpty(t, c.wanted(other), must.Sprint("a core is in use until its owner has ended"))
			c.run()
			must.Eq(t, cluster.Cores{1, 2}, c.wanted(other)[0].Cores.Of("t"))

			c.node("n1", cores(1, 2, 3, 4))
			third := c.job("third", kind, 1, withCores(2))
			c.run()
			must.Eq(t, cluster.Cores{3, 4}, c.wanted(third)[0].Cores.Of("t"), must.Sprint("new cores of a node are capacity"))
		})
	}
}

// Servers judge the cores of a plan in the state in which they apply it.
func TestCores_areJudgedAgainAtApply(t *testing.T) {
	edit := func(f func(a *cluster.AssignedCores)) func(*cell, *cluster.Plan) {
		return func(_ *cell, p *cluster.Plan) { f(p.Places[0].Cores) }
	}
	for name, test := range map[string]struct {
		between func(*cell, *cluster.Plan)
		want    string
	}{
		"nothing":           {func(*cell, *cluster.Plan) {}, ""},
		"the cores are few": {func(c *cell, _ *cluster.Plan) { c.node("n1", cores(0)) }, "node n1: the node has 1 cores for tasks, and the group needs 2"},
		"other cores":       {func(c *cell, _ *cluster.Plan) { c.node("n1", cores(4, 5, 6)) }, "node n1: the node has no core 0 for tasks"},
		"another job was faster": {func(c *cell, _ *cluster.Plan) {
			other := c.job("other", cluster.JobService, 1, withCores(1))
			must.SliceEmpty(c.t, reasons(c.apply(c.pending(other))))
		}, "node n1: core 0 is held by allocation alloc-00004 of job other"},
		"the plan names none":      {func(_ *cell, p *cluster.Plan) { p.Places[0].Cores = nil }, "node n1: it has not the 2 cores of task t"},
		"the plan names too few":   {edit(func(a *cluster.AssignedCores) { a.All[0].Cores = cluster.Cores{0} }), "node n1: it has not the 2 cores of task t"},
		"the plan names too many":  {edit(func(a *cluster.AssignedCores) { a.All = append(a.All, cluster.TaskCores{Task: "x"}) }), "node n1: it has cores that nothing requests"},
		"the plan names a task":    {edit(func(a *cluster.AssignedCores) { a.All[0].Task = "x" }), "node n1: it has not the 2 cores of task t"},
		"the plan names one twice": {edit(func(a *cluster.AssignedCores) { a.All[0].Cores = cluster.Cores{0, 0} }), "node n1: core 0 is assigned twice"},
	} {
		t.Run(name, func(t *testing.T) {
			c := parallel(t)
			c.node("n1", cores(0, 1, 2))
			job := c.job("web", cluster.JobService, 1, withCores(2))
			plan := c.pending(job)
			must.Len(t, 1, plan.Places)
			test.between(c, plan)
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			must.Eq(t, want, reasons(c.apply(plan)))
			coresOn(c, "n1")
		})
	}
}

// Cores and jobs come and go, at any time between plan and apply: no core gets two owners, each task has its
// cores, and nothing waits while a node could take it.
func TestCores_changeAtAnyTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newCell(rt)
		nodes := rapid.IntRange(1, 3).Draw(rt, "nodes")
		move := func(i int) {
			from := rapid.IntRange(0, 2).Draw(rt, "from")
			var all []int
			for core := range rapid.IntRange(0, 4).Draw(rt, "count") {
				all = append(all, from+core)
			}
			c.node(fmt.Sprint("n", i), cores(all...))
		}
		for i := range nodes {
			move(i)
		}
		var jobs []cluster.JobKey
		for i := range rapid.IntRange(1, 4).Draw(rt, "jobs") {
			kind := rapid.SampledFrom([]cluster.JobType{cluster.JobService, cluster.JobSystem}).Draw(rt, "kind")
			counts := rapid.SampledFrom([][]int{{1}, {2}, {1, 1}, {0, 2}, {0}}).Draw(rt, "cores")
			jobs = append(jobs, c.job(fmt.Sprint("j", i), kind, rapid.IntRange(1, 2).Draw(rt, "count"), withCores(counts...)))
		}
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			for e := first(c.view().WorkView().PendingEvals()); e != nil; e = first(c.view().WorkView().PendingEvals()) {
				plan := c.schedule(e)
				switch rapid.IntRange(0, 2).Draw(rt, "change") {
				case 0:
					move(rapid.IntRange(0, nodes-1).Draw(rt, "node"))
				case 1:
					c.progress()
				}
				c.apply(plan)
				for i := range nodes {
					coresOn(c, cluster.NodeID(fmt.Sprint("n", i)))
				}
				if rapid.Bool().Draw(rt, "rest") {
					break
				}
			}
			if rapid.IntRange(0, 3).Draw(rt, "stop") == 0 {
				c.stopJob(jobs[rapid.IntRange(0, len(jobs)-1).Draw(rt, "job")], false)
			}
		}
		c.run()
		for a := range c.view().Allocs() {
			for _, t := range a.Job.TaskGroups[0].Tasks {
				must.Len(rt, t.Cores, a.Cores.Of(t.Name))
			}
		}
		for n := range c.view().Nodes() {
			free := map[int]bool{}
			for _, core := range n.Cores {
				free[core] = true
			}
			for a := range c.view().WorkView().LiveAllocsByNode(n.ID) {
				for _, t := range a.Job.TaskGroups[0].Tasks {
					for _, core := range a.Cores.Of(t.Name) {
						delete(free, core)
					}
				}
			}
			for _, k := range jobs {
				j := c.view().Job(k)
				need := 0
				for _, t := range j.TaskGroups[0].Tasks {
					need += t.Cores
				}
				waits := len(c.wanted(k)) < j.TaskGroups[0].Count
				if j.Type == cluster.JobSystem {
					waits = len(pick(c.wanted(k), on(n.ID))) == 0
				}
				must.False(rt, need <= len(free) && waits && !j.Stop, must.Sprint("node ", n.ID, " could take one of ", k))
			}
		}
	})
}
