package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// schedule evaluates a job and applies the scheduler's plan.
func (w *fixture) schedule(j *cluster.Job) cluster.Plan {
	w.Helper()
	eval := w.eval(j, cluster.TriggerJobRegister, "")
	w.must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{eval}})
	ids := 0
	plan := scheduler.Schedule(w.State().WorkView(), w.State().Eval(eval.ID), w.Now(), scheduler.IDs{
		Alloc: func() cluster.AllocID { ids++; return cluster.AllocID(fmt.Sprintf("%s-%d", eval.ID, ids)) },
		Eval:  func() cluster.EvalID { return "blocked-by-" + eval.ID },
	})
	w.must(&shims.ApplyPlan{Plan: *plan})
	return *plan
}

// mixedNodes registers nodes that are full, small, of another class, of another pool, or not ready.
func (w *fixture) mixedNodes() *fixture {
	w.Helper()
	w.nodes(1)
	for i, change := range []func(*cluster.Node){
		func(n *cluster.Node) { n.Resources.CPU = 400 },
		func(n *cluster.Node) { n.Resources.CPU, n.Resources.MemoryMB = 100, 100 },
		func(n *cluster.Node) { n.NodeClass = "gpu" },
		func(n *cluster.Node) { n.NodePool = "other" },
		func(n *cluster.Node) { n.Datacenter = "dc2" },
		func(n *cluster.Node) { n.SchedulingEligibility = cluster.NodeIneligible },
		func(n *cluster.Node) { n.MaxAllocs = 1 },
	} {
		n := w.State().Node(nodeID(1)).Copy()
		n.ID, n.Name, n.SecretID = nodeID(i+2), fmt.Sprintf("n%d", i+2), secretOf(nodeID(i+2))
		change(n)
		w.must(&shims.NodeRegister{At: w.Now(), Node: n})
	}
	return w
}

// askFor reads an answer of the API.
func askFor[T any](t *testing.T, url string) (out T) {
	t.Helper()
	a := request(t, "GET", url, "")
	must.Eq(t, 200, a.code, must.Sprint(a.body))
	must.NoError(t, json.Unmarshal([]byte(a.body), &out))
	return out
}

// A blocked evaluation reports what is short on how many nodes, and so does the evaluation that created it.
func TestShortage(t *testing.T) {
	t.Parallel()
	w := newFixture(t).mixedNodes()
	filler := w.job("filler", cluster.JobService, 1)
	w.place(1, filler, nodeID(8)) // the only allocation that this node takes
	w.drain(nodeID(4), cluster.DrainSpec{})
	j := w.job("web", cluster.JobService, 3)
	g := j.TaskGroups[0]
	g.Tasks[0].Resources = cluster.Resources{CPU: 3000, MemoryMB: 3000, DiskMB: 100}
	j = w.Job(j.Copy())
	plan := w.schedule(j)
	must.SliceLen(t, 1, plan.Places, must.Sprint("the first node takes one"))
	must.NotNil(t, plan.Blocked)

	evals := w.client().Evaluations()
	for _, id := range []cluster.EvalID{plan.Blocked.ID, plan.Eval.ID} {
		e := result.Read(evals.Info(string(id), nil)).OK(t)
		m := e.FailedTGAllocs["web"]
		must.NotNil(t, m)
		must.Eq(t, 4, m.NodesEvaluated)
		must.Eq(t, 4, m.NodesExhausted)
		must.Eq(t, map[string]int{"cpu": 3, "memory": 2, "allocations": 1}, m.DimensionExhausted)
		must.Eq(t, 1, m.CoalescedFailures)
		must.Eq(t, map[string]int{"dc1": 4, "dc2": 1}, m.NodesAvailable)
	}
	url := w.serve(httpapi.Options{}).URL
	ours := askFor[wire.Evaluation](t, url+"/v1/evaluation/"+string(plan.Blocked.ID)).FailedTGAllocs["web"]
	must.Eq(t, map[string]int{"draining": 1, "ineligible": 1}, ours.NodesNotReady)
	must.Eq(t, &wire.NearestNode{ID: string(nodeID(2)), Name: "n2", Short: map[string]int64{"cpu": 2600}}, ours.Nearest)
	list := askFor[[]wire.Evaluation](t, url+"/v1/job/web/evaluations")
	must.SliceLen(t, 2, list)
	for _, e := range list {
		must.Eq(t, ours, e.FailedTGAllocs["web"])
	}

	w.must(&shims.JobDeregister{Job: j.Key()})
	must.MapEmpty(t, askFor[wire.Evaluation](t, url+"/v1/evaluation/"+string(plan.Eval.ID)).FailedTGAllocs)
}

// The reason of an allocation that waits for a blocked evaluation names what is short: it named the
// evaluation alone.
func TestShortage_ofDrain(t *testing.T) {
	t.Parallel()
	w := newFixture(t).mixedNodes()
	j := w.job("web", cluster.JobService, 3)
	w.place(1, j, nodeID(1))
	j = j.Copy()
	j.TaskGroups[0].NodeClasses = []string{"tpu"}
	j = w.Job(j)
	w.drain(nodeID(1), cluster.DrainSpec{})
	plan := w.schedule(j)
	must.NotNil(t, plan.Blocked)
	a := askFor[wire.NodeDrain](t, w.serve(httpapi.Options{}).URL+"/v1/node/"+uuid('a', 1)+"/drain").Allocs[0]
	must.Eq(t, string(plan.Blocked.ID), a.EvalID)
	must.Eq(t, "evaluation "+a.EvalID+" is blocked: 2 allocations of the group cannot be placed: "+
		`constraint "${node.class} = tpu" excludes 4 nodes, not ready (draining): 1 node, not ready (ineligible): 1 node`, a.Cause)
	must.Eq(t, "nodedrain eval status "+a.EvalID, a.See)
}

// A constraint that excludes every node is named.
func TestShortage_constraint(t *testing.T) {
	t.Parallel()
	w := newFixture(t).mixedNodes()
	j := w.job("web", cluster.JobService, 1).Copy()
	j.TaskGroups[0].NodeClasses = []string{"tpu"}
	plan := w.schedule(w.Job(j))
	e := result.Read(w.client().Evaluations().Info(string(plan.Blocked.ID), nil)).OK(t)
	must.Eq(t, map[string]int{"${node.class} = tpu": 5}, e.FailedTGAllocs["web"].ConstraintFiltered)
	must.Eq(t, 5, e.FailedTGAllocs["web"].NodesFiltered)
	must.Zero(t, e.FailedTGAllocs["web"].NodesExhausted)
}

// gpus gives a node GPUs with the ids. A "!" after an id makes it unhealthy.
func gpus(ids ...string) *cluster.DeviceGroup {
	g := &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"}}
	for _, id := range ids {
		name, sick := strings.CutSuffix(id, "!")
		g.Devices = append(g.Devices, cluster.Device{ID: name, Healthy: !sick})
	}
	return g
}

// train is a job whose task needs GPUs.
func train(w *fixture, name string, count, gpus int) *cluster.Job {
	w.Helper()
	j := w.job(name, cluster.JobService, count).Copy()
	j.TaskGroups[0].Tasks[0].Driver = "raw_exec"
	j.TaskGroups[0].Tasks[0].Devices = []cluster.DeviceRequest{{Name: "nvidia/gpu", Count: gpus}}
	return w.Job(j)
}

// A blocked evaluation names the devices that no node has, and how many are in use or unhealthy.
func TestShortage_devices(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(4)
	for i, ids := range [][]string{{"a", "b"}, {"a", "b!"}, {"a"}} {
		n := w.State().Node(nodeID(i + 1)).Copy()
		n.Devices = []*cluster.DeviceGroup{gpus(ids...)}
		w.must(&shims.NodeRegister{At: w.Now(), Node: n})
	}
	first := w.schedule(train(w, "first", 1, 1))
	must.Len(t, 1, first.Places)
	plan := w.schedule(train(w, "train", 2, 2))
	must.NotNil(t, plan.Blocked)
	e := result.Read(w.client().Evaluations().Info(string(plan.Blocked.ID), nil)).OK(t)
	m := e.FailedTGAllocs["train"]
	must.Eq(t, 4, m.NodesEvaluated)
	must.Eq(t, map[string]int{"missing devices: 2 nvidia/gpu": 2}, m.ConstraintFiltered)
	must.Eq(t, map[string]int{"devices": 1, "healthy devices": 1}, m.DimensionExhausted)
	ours := askFor[wire.Evaluation](t, w.serve(httpapi.Options{}).URL+"/v1/evaluation/"+string(plan.Blocked.ID)).FailedTGAllocs["train"]
	must.Eq(t, 1, len(ours.Nearest.Short))
}

// A blocked evaluation and a plan name the static port that is taken, with its holder, and count the nodes without
// enough dynamic ports, and those that keep the port.
func TestShortage_ports(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(4)
	for i, network := range []*cluster.NodeNetwork{
		{IP: "10.0.0.1", MinDynamicPort: 20000, MaxDynamicPort: 20009},
		{IP: "10.0.0.2", MinDynamicPort: 20000, MaxDynamicPort: 20000},
		{IP: "10.0.0.3", MinDynamicPort: 20000, MaxDynamicPort: 20009, Reserved: cluster.PortRanges{{First: 80, Last: 80}}},
	} {
		n := w.State().Node(nodeID(i + 1)).Copy()
		n.Network = network
		w.must(&shims.NodeRegister{At: w.Now(), Node: n})
	}
	withPorts := func(name string, dynamic int) *cluster.Job {
		j := w.job(name, cluster.JobService, 1).Copy()
		j.TaskGroups[0].Ports = []cluster.PortRequest{{Label: "http", Static: 80}}
		for i := range dynamic {
			j.TaskGroups[0].Ports = append(j.TaskGroups[0].Ports, cluster.PortRequest{Label: fmt.Sprint("p", i)})
		}
		return w.Job(j)
	}
	first := w.schedule(withPorts("first", 2))
	must.Eq(t, nodeID(1), first.Places[0].NodeID)
	plan := w.schedule(withPorts("second", 2))
	must.NotNil(t, plan.Blocked)
	m := result.Read(w.client().Evaluations().Info(string(plan.Blocked.ID), nil)).OK(t).FailedTGAllocs["second"]
	must.Eq(t, map[string]int{"port 80 is reserved on the node": 1, "the node reports no network for ports": 1}, m.ConstraintFiltered)
	must.Eq(t, map[string]int{"free ports (80 is held by group first of job first)": 1, "dynamic ports": 1}, m.DimensionExhausted)
	alloc := result.Read(w.client().Allocations().Info(string(first.Places[0].ID), nil)).OK(t)
	must.Eq(t, "10.0.0.1", alloc.AllocatedResources.Shared.Ports[0].HostIP)
	must.Len(t, 2, alloc.AllocatedResources.Shared.Networks[0].DynamicPorts)
}

// A blocked evaluation counts the nodes whose free cores are too few, and those that have too few in any case. The
// row of an allocation has the cores of each task, and the node has all.
func TestShortage_cores(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	for i, cores := range []cluster.Cores{{0, 1, 2}, {7}} {
		n := w.State().Node(nodeID(i + 1)).Copy()
		n.Cores, n.Resources.CPU = cores, 16_000
		w.must(&shims.NodeRegister{At: w.Now(), Node: n})
	}
	withCores := func(name string) *cluster.Job {
		j := w.job(name, cluster.JobService, 1).Copy()
		j.TaskGroups[0].Tasks[0].Cores = 2
		return w.Job(j)
	}
	first := w.schedule(withCores("first"))
	must.Eq(t, nodeID(1), first.Places[0].NodeID)
	plan := w.schedule(withCores("second"))
	must.NotNil(t, plan.Blocked)
	m := result.Read(w.client().Evaluations().Info(string(plan.Blocked.ID), nil)).OK(t).FailedTGAllocs["second"]
	must.Eq(t, map[string]int{"the node has 1 cores for tasks, and the group needs 2": 1, "the node reports no cores for tasks": 1}, m.ConstraintFiltered)
	must.Eq(t, map[string]int{"cores": 1}, m.DimensionExhausted)
	node := result.Read(w.client().Nodes().Info(string(nodeID(1)), nil)).OK(t)
	must.Eq(t, []uint16{0, 1, 2}, node.NodeResources.Cpu.ReservableCpuCores)
	raw := request(t, "GET", w.serve(httpapi.Options{}).URL+"/v1/allocation/"+string(first.Places[0].ID), "")
	must.StrContains(t, raw.body, `"CpuShares":2000,"ReservedCores":[0,1]`)
}

// The API judges nodes as the scheduler does: a node that takes an allocation is never called
// exhausted or filtered, and the others always are.
func TestShortage_agreesWithTheScheduler(t *testing.T) {
	t.Parallel()
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobBatch, cluster.JobSystem} {
		for cpu := int64(100); cpu <= 4100; cpu += 500 {
			w := newFixture(t).mixedNodes()
			j := w.job("web", kind, 1).Copy()
			if kind != cluster.JobSystem {
				j.TaskGroups[0].Count = 60
			}
			j.TaskGroups[0].Tasks[0].Resources = cluster.Resources{CPU: cpu, MemoryMB: 50}
			plan := w.schedule(w.Job(j))
			if plan.Blocked == nil {
				continue
			}
			e := result.Read(w.client().Evaluations().Info(string(plan.Blocked.ID), nil)).OK(t)
			m := e.FailedTGAllocs["web"]
			must.Eq(t, m.NodesEvaluated, m.NodesFiltered+m.NodesExhausted, must.Sprintf("%s with %d MHz: %+v", kind, cpu, m))
			if kind == cluster.JobSystem {
				must.Eq(t, plan.Blocked.Queued["web"], m.NodesExhausted)
			}
		}
	}
}

// It does so for devices too.
func TestShortage_agreesWithTheSchedulerOnDevices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newFixture(t).nodes(3)
		for i := range 3 {
			n := w.State().Node(nodeID(i + 1)).Copy()
			var ids []string
			for _, id := range []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(rt, "devices")] {
				ids = append(ids, id+rapid.SampledFrom([]string{"", "", "!"}).Draw(rt, "health"))
			}
			n.Devices = []*cluster.DeviceGroup{gpus(ids...)}
			w.must(&shims.NodeRegister{At: w.Now(), Node: n})
		}
		w.schedule(train(w, "first", rapid.IntRange(0, 2).Draw(rt, "first"), 1))
		plan := w.schedule(train(w, "train", 10, rapid.IntRange(1, 3).Draw(rt, "needs")))
		must.NotNil(rt, plan.Blocked)
		m := askFor[wire.Evaluation](t, w.serve(httpapi.Options{}).URL+"/v1/evaluation/"+string(plan.Blocked.ID)).FailedTGAllocs["train"]
		must.Eq(rt, m.NodesEvaluated, m.NodesFiltered+m.NodesExhausted, must.Sprintf("%+v", m))
	})
}
