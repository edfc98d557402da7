package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

func gpuKind() cluster.DeviceKind {
	return cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"}
}

// gpus gives a node GPUs with the ids. A "!" after an id makes it unhealthy.
func gpus(ids ...string) func(*cluster.Node) {
	return func(n *cluster.Node) {
		g := &cluster.DeviceGroup{Kind: gpuKind(), Attributes: map[string]cluster.DeviceAttribute{"memory": {Kind: cluster.AttributeInt, Int: 16, Unit: "GiB"}}}
		for _, id := range ids {
			name, sick := strings.CutSuffix(id, "!")
			g.Devices = append(g.Devices, cluster.Device{ID: name, Healthy: !sick})
		}
		n.Resources.GPU, n.Devices = 0, []*cluster.DeviceGroup{g}
	}
}

// memory is another fact about the GPUs of a node.
func memory(gib int64) func(*cluster.Node) {
	return func(n *cluster.Node) {
		n.Devices[0].Attributes = map[string]cluster.DeviceAttribute{"memory": {Kind: cluster.AttributeInt, Int: gib, Unit: "GiB"}}
	}
}

func requesting(count int, constraints ...cluster.Constraint) func(*cluster.Job) {
	return func(j *cluster.Job) {
		j.TaskGroups[0].Tasks[0].Devices = []cluster.DeviceRequest{{Name: "gpu", Count: count, Constraints: constraints}}
	}
}

func largeMemory() cluster.Constraint {
	return cluster.Constraint{LTarget: "${device.attr.memory}", Operand: ">", RTarget: "8192 MiB"}
}

// ownersOn returns the devices in use of a node as "id of name", in the order of the ids. It fails if two
// allocations have one device.
func ownersOn(c *cell, n cluster.NodeID) (owners []string) {
	owned := map[string]bool{}
	for a := range c.view().WorkView().LiveAllocsByNode(n) {
		if a.Devices == nil {
			continue
		}
		for _, d := range a.Devices.All {
			for _, id := range d.IDs {
				must.False(c.t, owned[id], must.Sprint("device ", id, " has two owners"))
				owned[id] = true
				owners = append(owners, id+" of "+a.Name)
			}
		}
	}
	slices.Sort(owners)
	return owners
}

func TestDevices_EachHasOneOwner(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobBatch} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			c.node("n1", gpus("a", "b!", "c", "d"))
			c.node("n2")
			job := c.job("train", kind, 3, requesting(1))
			c.run()
			must.Eq(t, []string{"a of train.g[0]", "c of train.g[1]", "d of train.g[2]"}, ownersOn(c, "n1"))
			must.Len(t, 3, c.wanted(job))

			other := c.job("other", kind, 1, requesting(2))
			c.run()
			must.SliceEmpty(t, c.wanted(other), must.Sprint("all are in use"))
			c.node("n1", gpus("a", "b", "c", "d"))
			c.run()
			must.SliceEmpty(t, c.wanted(other), must.Sprint("one is healthy again, and two are requested"))
			c.stopJob(job, false)
			c.settle()
			must.SliceEmpty(t, c.wanted(other), must.Sprint("a device is in use until its owner has ended"))
			c.run()
			must.Eq(t, []string{"a of other.g[0]", "b of other.g[0]"}, ownersOn(c, "n1"))
		})
	}
}

// What waits is placed when a node gets devices, when one becomes healthy, and when an attribute changes. What
// runs keeps its devices, when they become unhealthy or leave.
func TestDevices_WhatWaitsIsPlaced(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobSystem, cluster.JobSysBatch} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			c.node("n1", gpus("a!", "b!"), memory(4))
			job := c.job("train", kind, 1, requesting(1, largeMemory()))
			c.run()
			must.SliceEmpty(t, c.wanted(job), must.Sprint("too little memory"))
			c.node("n1", gpus("a!", "b!"), memory(16))
			c.run()
			must.SliceEmpty(t, c.wanted(job), must.Sprint("unhealthy"))
			c.node("n1", gpus("a!", "b"), memory(16))
			c.run()
			must.Eq(t, []string{"b of train.g[0]"}, ownersOn(c, "n1"))

			second := c.job("second", kind, 1, requesting(1))
			c.run()
			must.SliceEmpty(t, c.wanted(second))
			c.node("n1", gpus("a!", "b", "c"), memory(4))
			c.run()
			must.Eq(t, []string{"b of train.g[0]", "c of second.g[0]"}, ownersOn(c, "n1"))
			c.node("n1", gpus("c!"))
			c.run()
			must.Eq(t, []string{"b of train.g[0]", "c of second.g[0]"}, ownersOn(c, "n1"), must.Sprint("what runs stays"))
		})
	}
}

// A drain moves an allocation to devices of another node.
func TestDevices_OfAReplacement(t *testing.T) {
	c := parallel(t)
	c.node("n1", gpus("a", "b"))
	job := c.job("train", cluster.JobService, 1, requesting(2))
	c.run()
	c.node("n2", gpus("x", "y", "z"))
	c.drain("n1")
	c.mark(cluster.MarkPaced, c.wanted(job)...)
	c.run()
	must.Eq(t, []string{"x of train.g[0]", "y of train.g[0]"}, ownersOn(c, "n2"))
	must.SliceEmpty(t, ownersOn(c, "n1"))
}

// Affinities decide between nodes with as many allocations of the group, before free room does.
func TestDevices_AffinitiesChooseNodes(t *testing.T) {
	c := parallel(t)
	c.node("n1", gpus("a"), memory(16))
	c.node("n2", gpus("b"), memory(32))
	c.node("n3", gpus("c"), memory(16), func(n *cluster.Node) { n.Resources.CPU = 100 })
	prefers := func(weight int) func(*cluster.Job) {
		return func(j *cluster.Job) {
			requesting(1)(j)
			j.TaskGroups[0].Tasks[0].Devices[0].Affinities = []cluster.Affinity{
				{Constraint: cluster.Constraint{LTarget: "${device.attr.memory}", Operand: "=", RTarget: "32 GiB"}, Weight: weight},
			}
		}
	}
	like := c.job("like", cluster.JobService, 1, prefers(50))
	c.run()
	must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(like)))
	c.stopJob(like, true)
	c.run()
	avoid := c.job("avoid", cluster.JobService, 2, prefers(-50))
	c.run()
	must.Eq(t, []cluster.NodeID{"n1", "n3"}, nodesOf(c.wanted(avoid)))
}

// Servers judge the devices of a plan in the state in which they apply it.
func TestDevices_AreJudgedAgainAtApply(t *testing.T) {
	const gone, sick = "node n1: device nvidia/gpu/A100 a is gone", "node n1: device nvidia/gpu/A100 a is unhealthy"
	for name, test := range map[string]struct {
		between func(*cell, *cluster.Plan)
		want    string
	}{
		"nothing":           {func(*cell, *cluster.Plan) {}, ""},
		"becomes unhealthy": {func(c *cell, _ *cluster.Plan) { c.node("n1", gpus("a!", "b")) }, sick},
		"leaves the node":   {func(c *cell, _ *cluster.Plan) { c.node("n1", gpus("b")) }, gone},
		"another is added":  {func(c *cell, _ *cluster.Plan) { c.node("n1", gpus("0", "a", "b")) }, ""},
		"another job was faster": {func(c *cell, _ *cluster.Plan) {
			other := c.job("other", cluster.JobService, 1, requesting(1))
			must.SliceEmpty(c.t, reasons(c.apply(c.pending(other))))
		}, "node n1: device nvidia/gpu/A100 a is in use"},
		"the plan names none": {func(_ *cell, p *cluster.Plan) { p.Places[0].Devices = nil }, "node n1: task t has no gpu"},
		"the plan names another kind": {func(_ *cell, p *cluster.Plan) {
			p.Places[0].Devices = &cluster.AssignedDevices{All: []cluster.AssignedDevice{{Task: "t", Kind: cluster.DeviceKind{Vendor: "x", Type: "fpga", Name: "y"}, IDs: []string{"a"}}}}
		}, "node n1: task t requests gpu, and not x/fpga/y"},
		"the plan names too many": {func(_ *cell, p *cluster.Plan) {
			p.Places[0].Devices = &cluster.AssignedDevices{All: []cluster.AssignedDevice{{Task: "t", Kind: gpuKind(), IDs: []string{"a", "b"}}}}
		}, "node n1: task t requests 1 gpu, and has 2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := parallel(t)
			c.node("n1", gpus("a", "b"))
			job := c.job("train", cluster.JobService, 1, requesting(1))
			plan := c.pending(job)
			must.Len(t, 1, plan.Places)
			test.between(c, plan)
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			must.Eq(t, want, reasons(c.apply(plan)))
			c.run()
			must.Len(t, 1, c.wanted(job), must.Sprint("the scheduler has planned again"))
			ownersOn(c, "n1")
		})
	}
}

// Two placements of one plan, and placements without a request.
func TestDevices_OnePlanGivesEachOnce(t *testing.T) {
	c := parallel(t)
	c.node("n1", gpus("a", "b"))
	job := c.job("train", cluster.JobService, 2, requesting(1))
	plan := c.pending(job)
	must.Len(t, 2, plan.Places)
	plan.Places[1].Devices = plan.Places[0].Devices
	must.Eq(t, []string{"node n1: device nvidia/gpu/A100 a is in use"}, reasons(c.apply(plan)))
	must.Eq(t, []string{"a of train.g[0]"}, ownersOn(c, "n1"))

	plain := c.job("plain", cluster.JobService, 1)
	plan = c.pending(plain)
	plan.Places[0].Devices = &cluster.AssignedDevices{All: []cluster.AssignedDevice{{Task: "t", Kind: gpuKind(), IDs: []string{"b"}}}}
	must.Eq(t, []string{"node n1: it has devices that no task requests"}, reasons(c.apply(plan)))
}

// The FSM reads no constraint on devices: a node that was written since is refused, as with other
// constraints.
func TestDevices_ConstraintsAreNotJudgedAtApply(t *testing.T) {
	c := parallel(t)
	c.node("n1", gpus("a"))
	job := c.job("train", cluster.JobService, 1, requesting(1, largeMemory()))
	plan := c.pending(job)
	must.Len(t, 1, plan.Places)
	c.node("n1", gpus("a"), memory(4))
	want := fmt.Sprintf("node n1 is not for group default/train.g: it was written at index %d, after the plan's %d, and the group has constraints", c.index, plan.SnapshotIndex)
	must.Eq(t, []string{want}, reasons(c.apply(plan)))
	c.run()
	must.SliceEmpty(t, c.wanted(job))
}

// Devices flap, and jobs come and go, at any time between plan and apply: no device gets two owners, an
// unhealthy one is not assigned, and nothing waits while a node could take it.
func TestDevices_ChangeAtAnyTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newCell(rt)
		nodes := rapid.IntRange(1, 3).Draw(rt, "nodes")
		flap := func(i int) {
			var ids []string
			for _, id := range []string{"a", "b", "c"} {
				ids = append(ids, id+rapid.SampledFrom([]string{"", "", "!"}).Draw(rt, "health"))
			}
			c.node(fmt.Sprint("n", i), gpus(ids[:rapid.IntRange(1, 3).Draw(rt, "count")]...))
		}
		for i := range nodes {
			flap(i)
		}
		var jobs []cluster.JobKey
		for i := range rapid.IntRange(1, 3).Draw(rt, "jobs") {
			kind := rapid.SampledFrom([]cluster.JobType{cluster.JobService, cluster.JobSystem}).Draw(rt, "kind")
			jobs = append(jobs, c.job(fmt.Sprint("j", i), kind, 1, requesting(rapid.IntRange(1, 2).Draw(rt, "devices"))))
		}
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			for e := first(c.view().WorkView().PendingEvals()); e != nil; e = first(c.view().WorkView().PendingEvals()) {
				plan := c.schedule(e)
				switch rapid.IntRange(0, 2).Draw(rt, "change") {
				case 0:
					flap(rapid.IntRange(0, nodes-1).Draw(rt, "node"))
				case 1:
					c.progress()
				}
				c.apply(plan)
				for i := range nodes {
					ownersOn(c, cluster.NodeID(fmt.Sprint("n", i)))
				}
				for a := range c.view().Allocs() {
					if a.CreateIndex == c.index {
						for _, d := range a.Devices.All {
							for _, id := range d.IDs {
								must.True(rt, c.view().Node(a.NodeID).DeviceGroup(d.Kind).Device(id).Healthy)
							}
						}
					}
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
		for n := range c.view().Nodes() {
			used := cluster.DevicesInUse{}
			for a := range c.view().WorkView().LiveAllocsByNode(n.ID) {
				used.Add(a.Devices)
			}
			for _, k := range jobs {
				j := c.view().Job(k)
				_, fits := feasible.Of(j).Group(j.TaskGroups[0]).Devices().Assign(n, used)
				if here := len(pick(c.wanted(k), on(n.ID))); fits && !j.Stop && (j.Type == cluster.JobSystem || len(c.wanted(k)) == 0) {
					must.Eq(rt, 1, here, must.Sprint("node ", n.ID, " could take one of ", k))
				}
			}
		}
	})
}

// Plans in flight never give one device twice, and never one that an allocation has, for each outcome of
// their writes. No device is lost: when all writes have ended, each waiting allocation that fits is
// placed.
func TestDevices_OfPlansInFlight(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newCell(rt)
		for i := range rapid.IntRange(1, 2).Draw(rt, "nodes") {
			c.node(fmt.Sprint("n", i), gpus("a", "b", "c", "d"))
		}
		s, l := c.leader()
		l.lead(s)
		var jobs []cluster.JobKey
		start := func() {
			kind := rapid.SampledFrom([]cluster.JobType{cluster.JobService, cluster.JobService, cluster.JobSystem}).Draw(rt, "kind")
			jobs = append(jobs, c.job(fmt.Sprint("j", len(jobs)), kind, rapid.IntRange(1, 2).Draw(rt, "count"), requesting(rapid.IntRange(1, 2).Draw(rt, "devices"))))
		}
		start()
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "change") {
			case 0, 1:
				start()
			case 2:
				c.stopJob(rapid.SampledFrom(jobs).Draw(rt, "job"), false)
			case 3:
				c.progress()
			default:
				if len(l.queue) > 0 {
					l.answer(rapid.SampledFrom([]fate{fine, fine, fine, rejected, vanished, silent, late}).Draw(rt, "fate"))
				}
				l.now = l.now.Add(time.Second)
			}
			s.Step(l.now)
			l.oneOwner()
		}
		for range 20 {
			l.lead(s)
			c.progress()
			l.now = l.now.Add(time.Minute)
		}
		for n := range c.view().Nodes() {
			used := cluster.DevicesInUse{}
			for a := range c.view().WorkView().LiveAllocsByNode(n.ID) {
				used.Add(a.Devices)
			}
			for _, k := range jobs {
				j := c.view().Job(k)
				_, fits := feasible.Of(j).Group(j.TaskGroups[0]).Devices().Assign(n, used)
				waits := len(c.wanted(k)) < j.TaskGroups[0].Count
				if j.Type == cluster.JobSystem {
					waits = len(pick(c.wanted(k), on(n.ID))) == 0
				}
				must.False(rt, fits && waits && !j.Stop, must.Sprint("node ", n.ID, " could take one of ", k))
			}
		}
	})
}

// A plan is refused while a plan that had to wait for its device is in flight. Regression: the returned
// device was forgotten before the second plan was applied, and its evaluation stayed blocked.
func TestDevices_ReturnedWhileAPlanIsInFlight(t *testing.T) {
	c := parallel(t)
	c.node("n1", gpus("a"))
	s, l := c.leader()
	l.lead(s)
	first := c.job("first", cluster.JobService, 1, requesting(1))
	s.Step(l.now)
	second := c.job("second", cluster.JobService, 1, requesting(1))
	s.Step(l.now)
	must.Eq(t, []cluster.JobID{"first", "second"}, l.planned())
	c.stopJob(first, false)
	l.answer(fine)
	must.Eq(t, 1, l.refused)
	for range 3 {
		l.now = l.now.Add(time.Minute)
		s.Step(l.now)
	}
	for range 3 {
		l.lead(s)
		l.now = l.now.Add(time.Minute)
	}
	must.Len(t, 1, c.wanted(second))
	must.Eq(t, []string{"a of second.g[0]"}, ownersOn(c, "n1"))
}

// oneOwner fails if two allocations in the state and in the plans of the log have one device.
func (l *log) oneOwner() {
	type device struct {
		node cluster.NodeID
		id   string
	}
	owners := map[device]cluster.AllocID{}
	note := func(a *cluster.Allocation) {
		if a.Devices == nil {
			return
		}
		for _, d := range a.Devices.All {
			for _, id := range d.IDs {
				one := device{a.NodeID, id}
				must.True(l.t, owners[one] == "" || owners[one] == a.ID, must.Sprint("device ", one, " is given to ", owners[one], " and ", a.ID))
				owners[one] = a.ID
			}
		}
	}
	for a := range l.view().Allocs() {
		if !a.ClientTerminal() {
			note(a)
		}
	}
	for _, e := range slices.Concat(l.queue, l.delayed) {
		if e.plan == nil {
			continue
		}
		for _, a := range e.plan.Places {
			if l.view().Alloc(a.ID) == nil {
				note(a)
			}
		}
	}
}
