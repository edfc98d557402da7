package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

// network gives a node ports, with a range of dynamic ones.
func network(from, to int, reserved ...cluster.PortRange) func(*cluster.Node) {
	return func(n *cluster.Node) {
		n.Network = &cluster.NodeNetwork{IP: "10.0.0.1", MinDynamicPort: from, MaxDynamicPort: to, Reserved: reserved}
	}
}

// withPorts requests ports. Zero is a dynamic port.
func withPorts(numbers ...int) func(*cluster.Job) {
	return func(j *cluster.Job) {
		for i, number := range numbers {
			j.TaskGroups[0].Ports = append(j.TaskGroups[0].Ports, cluster.PortRequest{Label: fmt.Sprint("p", i), Static: number})
		}
	}
}

// portsOn returns the ports in use of a node. It fails if two allocations have one port.
func portsOn(c *cell, n cluster.NodeID) (ports []int) {
	owners := map[int]cluster.AllocID{}
	for a := range c.view().WorkView().LiveAllocsByNode(n) {
		if a.Ports == nil {
			continue
		}
		for _, p := range a.Ports.All {
			must.Eq(c.t, "", owners[p.Number], must.Sprint("port ", p.Number, " has two owners"))
			owners[p.Number] = a.ID
			ports = append(ports, p.Number)
		}
	}
	slices.Sort(ports)
	return ports
}

// A static port has one owner on each node, until the owner has ended.
func TestPorts_StaticHasOneOwner(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobBatch, cluster.JobSystem} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			c.node("n1", network(20000, 20010))
			c.node("n2")
			job := c.job("web", kind, 1, withPorts(8080))
			c.run()
			must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)), must.Sprint("n2 reports no network"))
			must.Eq(t, []int{8080}, portsOn(c, "n1"))

			other := c.job("other", kind, 1, withPorts(8080, 0))
			c.run()
			must.SliceEmpty(t, c.wanted(other), must.Sprint("the port is taken"))
			c.stopJob(job, false)
			c.settle()
			must.SliceEmpty(t, c.wanted(other), must.Sprint("a port is in use until its owner has ended"))
			c.run()
			must.Len(t, 2, portsOn(c, "n1"))
			must.Len(t, 1, c.wanted(other))
		})
	}
}

// A job waits for a port that the node reserves, and is placed when the node does not reserve it any more.
func TestPorts_Reserved(t *testing.T) {
	c := parallel(t)
	c.node("n1", network(20000, 20001, cluster.PortRange{First: 20000, Last: 20000}, cluster.PortRange{First: 22, Last: 23}))
	static := c.job("static", cluster.JobService, 1, withPorts(22))
	dynamic := c.job("dynamic", cluster.JobService, 2, withPorts(0))
	c.run()
	must.SliceEmpty(t, c.wanted(static))
	must.Eq(t, []int{20001}, portsOn(c, "n1"))
	must.Len(t, 1, c.wanted(dynamic))
	c.node("n1", network(20000, 20001))
	c.run()
	must.Eq(t, []int{22, 20000, 20001}, portsOn(c, "n1"))
}

// A drain moves an allocation with a static port, and its dynamic port follows from its id.
func TestPorts_OfAReplacement(t *testing.T) {
	c := parallel(t)
	c.node("n1", network(20000, 32000))
	job := c.job("web", cluster.JobService, 1, withPorts(80, 0))
	c.run()
	before := portsOn(c, "n1")
	c.node("n2", network(20000, 32000))
	c.drain("n1")
	c.mark(cluster.MarkPaced, c.wanted(job)...)
	c.run()
	must.SliceEmpty(t, portsOn(c, "n1"))
	after := portsOn(c, "n2")
	must.Eq(t, 80, after[0])
	must.NotEq(t, before[1], after[1], must.Sprint("the ports of two ids differ"))
}

// Servers judge the ports of a plan in the state in which they apply it.
func TestPorts_AreJudgedAgainAtApply(t *testing.T) {
	edit := func(f func(p *cluster.AssignedPorts)) func(*cell, *cluster.Plan) {
		return func(_ *cell, p *cluster.Plan) { f(p.Places[0].Ports) }
	}
	for name, test := range map[string]struct {
		between func(*cell, *cluster.Plan)
		want    string
	}{
		"nothing": {func(*cell, *cluster.Plan) {}, ""},
		"the port is reserved": {func(c *cell, _ *cluster.Plan) {
			c.node("n1", network(20000, 20003, cluster.PortRange{First: 80, Last: 80}))
		}, "node n1: port 80 is reserved on the node"},
		"the range moves":     {func(c *cell, _ *cluster.Plan) { c.node("n1", network(30000, 30003)) }, "node n1: port \"p1\" is 20000, which is no dynamic port of the node"},
		"the network is gone": {func(c *cell, _ *cluster.Plan) { c.node("n1") }, "node n1: the node reports no network for ports"},
		"another job was faster": {func(c *cell, _ *cluster.Plan) {
			other := c.job("other", cluster.JobService, 1, withPorts(80))
			must.SliceEmpty(c.t, reasons(c.apply(c.pending(other))))
		}, "node n1: port 80 is held by allocation alloc-00004 of job other"},
		"the plan names none":       {func(_ *cell, p *cluster.Plan) { p.Places[0].Ports = nil }, `node n1: it has no port "p0"`},
		"the plan names too few":    {edit(func(p *cluster.AssignedPorts) { p.All = p.All[:1] }), `node n1: it has no port "p1"`},
		"the plan names too many":   {edit(func(p *cluster.AssignedPorts) { p.All = append(p.All, cluster.AssignedPort{Number: 1}) }), "node n1: it has ports that nothing requests"},
		"the plan swaps ports":      {edit(func(p *cluster.AssignedPorts) { slices.Reverse(p.All) }), `node n1: port "p2" is in the place of port "p0"`},
		"the plan names another":    {edit(func(p *cluster.AssignedPorts) { p.All[0].Number = 81 }), `node n1: port "p0" is 80, and not 81`},
		"the plan names one twice":  {edit(func(p *cluster.AssignedPorts) { p.All[2].Number = p.All[1].Number }), "node n1: port 20000 is assigned twice"},
		"the plan names an address": {edit(func(p *cluster.AssignedPorts) { p.IP = "10.0.0.2" }), "node n1: the node has the address 10.0.0.1, and not 10.0.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := parallel(t)
			c.node("n1", network(20000, 20003))
			job := c.job("web", cluster.JobService, 1, withPorts(80, 0, 0))
			plan := c.pending(job)
			must.Len(t, 1, plan.Places)
			plan.Places[0].Ports.All[1].Number, plan.Places[0].Ports.All[2].Number = 20000, 20001
			plan.Places[0].Ports = &cluster.AssignedPorts{IP: plan.Places[0].Ports.IP, All: slices.Clone(plan.Places[0].Ports.All)}
			test.between(c, plan)
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			must.Eq(t, want, reasons(c.apply(plan)))
			portsOn(c, "n1")
		})
	}
}

// A plan that was refused is made again, and the groups of one plan share no port.
func TestPorts_RefusedPlanIsMadeAgain(t *testing.T) {
	c := parallel(t)
	c.node("n1", network(20000, 20003))
	c.node("n2", network(20000, 20003))
	job := c.job("web", cluster.JobService, 1, withPorts(80, 0), func(j *cluster.Job) {
		second := j.TaskGroups[0].Copy()
		second.Name = "second"
		second.Tasks[0].Ports = []cluster.PortRequest{{Label: "p0"}, {Label: "admin", Static: 81}}
		j.TaskGroups = append(j.TaskGroups, second)
	})
	plan := c.pending(job)
	must.Eq(t, []cluster.NodeID{"n1", "n2"}, nodesOf(plan.Places))
	other := c.job("other", cluster.JobService, 1, withPorts(81))
	must.SliceEmpty(t, reasons(c.apply(c.pending(other))))
	c.apply(plan)
	c.run()
	must.Len(t, 2, c.wanted(job))
	must.Eq(t, 7, len(portsOn(c, "n1"))+len(portsOn(c, "n2")))
}

// Below their cluster version no allocation has ports.
func TestPorts_InCellsBelowTheirVersion(t *testing.T) {
	t.Parallel()
	c := newCellOf(t, cluster.VersionOfPorts-1)
	c.node("n1")
	job := c.job("web", cluster.JobService, 1)
	c.run()
	must.Len(t, 1, c.wanted(job))
	must.Nil(t, c.wanted(job)[0].Ports)
}

// Ranges move, and jobs come and go, at any time between plan and apply: no port gets two owners, each request
// has its port, and nothing waits while a node could take it.
func TestPorts_ChangeAtAnyTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newCell(rt)
		nodes := rapid.IntRange(1, 3).Draw(rt, "nodes")
		move := func(i int) {
			from := rapid.IntRange(20000, 20002).Draw(rt, "from")
			c.node(fmt.Sprint("n", i), network(from, from+rapid.IntRange(0, 2).Draw(rt, "size")))
		}
		for i := range nodes {
			move(i)
		}
		var jobs []cluster.JobKey
		for i := range rapid.IntRange(1, 4).Draw(rt, "jobs") {
			kind := rapid.SampledFrom([]cluster.JobType{cluster.JobService, cluster.JobSystem}).Draw(rt, "kind")
			numbers := rapid.SampledFrom([][]int{{0}, {80}, {0, 0}, {80, 0}, {20001}, {20001, 0}}).Draw(rt, "ports")
			jobs = append(jobs, c.job(fmt.Sprint("j", i), kind, rapid.IntRange(1, 2).Draw(rt, "count"), withPorts(numbers...)))
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
					portsOn(c, cluster.NodeID(fmt.Sprint("n", i)))
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
			must.Len(rt, len(a.Job.TaskGroups[0].Ports), a.Ports.All)
		}
		for n := range c.view().Nodes() {
			used := cluster.PortsInUse{}
			for a := range c.view().WorkView().LiveAllocsByNode(n.ID) {
				used.Add(a)
			}
			for _, k := range jobs {
				j := c.view().Job(k)
				_, fits := feasible.AssignPorts(j.TaskGroups[0], n, "", used)
				waits := len(c.wanted(k)) < j.TaskGroups[0].Count
				if j.Type == cluster.JobSystem {
					waits = len(pick(c.wanted(k), on(n.ID))) == 0
				}
				must.False(rt, fits && waits && !j.Stop, must.Sprint("node ", n.ID, " could take one of ", k))
			}
		}
	})
}
