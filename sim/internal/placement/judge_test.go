//race:skip one goroutine
package placement_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/placement"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// world is a state with the nodes n1 to n3 and the job web with two allocations, a1 on n1 and a2 on
// n2. A test changes the rows before judge writes them. judge applies the plan without a check.
type world struct {
	nodes  map[cluster.NodeID]*cluster.Node
	job    *cluster.Job
	allocs []*cluster.Allocation
	evals  []*cluster.Evaluation
	// drain is applied before the plan, unless it has no node.
	drain cluster.DrainUpdate
	plan  cluster.Plan
}

func newWorld() *world {
	w := &world{nodes: map[cluster.NodeID]*cluster.Node{}}
	for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
		w.nodes[id] = &cluster.Node{
			ID: id, Name: string(id), Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible,
			Resources: cluster.Resources{CPU: 1000, MemoryMB: 1000}, Reserved: cluster.Resources{CPU: 100},
		}
	}
	w.job = &cluster.Job{ID: "web", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{
		Name: "web", Count: 2, Tasks: []*cluster.Task{{Name: "t", Resources: cluster.Resources{CPU: 300, MemoryMB: 100}}},
	}}}
	w.job.Canonicalize()
	w.allocs = []*cluster.Allocation{w.alloc("a1", "web.web[0]", "n1"), w.alloc("a2", "web.web[1]", "n2")}
	w.evals = []*cluster.Evaluation{w.eval("e1", cluster.EvalPending)}
	w.plan = cluster.Plan{At: start(), Eval: w.eval("e1", cluster.EvalComplete)}
	return w
}

func (w *world) alloc(id cluster.AllocID, name string, on cluster.NodeID) *cluster.Allocation {
	return &cluster.Allocation{
		ID: id, Namespace: "default", JobID: "web", TaskGroup: "web", Name: name, NodeID: on,
		Resources: cluster.Resources{CPU: 300, MemoryMB: 100}, DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
	}
}

func (w *world) eval(id cluster.EvalID, s cluster.EvalStatus) *cluster.Evaluation {
	return &cluster.Evaluation{ID: id, Namespace: "default", JobID: "web", Type: w.job.Type, Status: s}
}

// replace adds a stop of a1, and its replacement on n3, to the plan.
func (w *world) replace() *cluster.Allocation {
	a := w.alloc("a3", "web.web[0]", "n3")
	a.PreviousAllocation = "a1"
	w.plan.Stops = append(w.plan.Stops, cluster.PlanStop{Alloc: "a1", Description: cluster.DescMigrating})
	w.plan.Places = append(w.plan.Places, a)
	return a
}

// ports gives n1 to n3 two dynamic ports. It assigns the ports to an allocation whose group requests a static port 80
// and a dynamic one.
func (w *world) ports(a *cluster.Allocation, numbers ...int) *cluster.Allocation {
	for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
		w.nodes[id].Network = &cluster.NodeNetwork{IP: "10.0.0.1", MinDynamicPort: 100, MaxDynamicPort: 101}
	}
	w.job.TaskGroups[0].Ports = []cluster.PortRequest{{Label: "p0", Static: 80}, {Label: "p1"}}
	a.Ports = &cluster.AssignedPorts{IP: "10.0.0.1"}
	for i, number := range numbers {
		a.Ports.All = append(a.Ports.All, cluster.AssignedPort{Label: "p" + string(rune('0'+i)), Number: number})
	}
	return a
}

// cores gives n1 to n3 the cores 1 to 3. It assigns the cores to an allocation whose task requests two.
func (w *world) cores(a *cluster.Allocation, numbers ...int) *cluster.Allocation {
	for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
		w.nodes[id].Cores = cluster.Cores{1, 2, 3}
	}
	task := w.job.TaskGroups[0].Tasks[0]
	task.Cores = 2
	a.Cores = &cluster.AssignedCores{All: []cluster.TaskCores{{Task: task.Name, Cores: numbers}}}
	return a
}

// devices gives n3 the healthy device a and the unhealthy device b. It assigns the devices with the
// ids to the allocation, whose task requests as many.
func (w *world) devices(a *cluster.Allocation, ids ...string) *cluster.Allocation {
	kind := cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"}
	w.nodes["n3"].Devices = []*cluster.DeviceGroup{{Kind: kind, Devices: []cluster.Device{{ID: "a", Healthy: true}, {ID: "b"}}}}
	w.job.TaskGroups[0].Tasks[0].Devices = []cluster.DeviceRequest{{Name: "nvidia/gpu", Count: len(ids)}}
	a.Devices = &cluster.AssignedDevices{All: []cluster.AssignedDevice{{Task: "t", Kind: kind, IDs: ids}}}
	return a
}

// write writes the state.
func (w *world) write(t *testing.T) *statestore.Store {
	t.Helper()
	store := statestore.New()
	txn := store.Begin(1)
	for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
		must.NoError(t, txn.UpsertNode(w.nodes[id], start()))
	}
	must.NoError(t, txn.UpsertJob(w.job))
	must.NoError(t, txn.UpsertEvals(w.evals))
	_, err := txn.ApplyPlan(&cluster.Plan{At: start(), Places: w.allocs})
	must.NoError(t, err)
	if w.drain.Node != "" {
		_, err := txn.UpdateNodeDrain(w.drain)
		must.NoError(t, err)
	}
	txn.Commit()
	return store
}

// still writes the state, in which nothing happens, and returns the names of the violations.
func (w *world) still(t *testing.T) []string {
	t.Helper()
	judge := &placement.Judge{}
	judge.Still(start(), w.write(t).Snapshot())
	return names(t, judge)
}

// judge writes the state, then the plan, and returns the names of the violations.
func (w *world) judge(t *testing.T) []string {
	t.Helper()
	if w.plan.SnapshotIndex == 0 {
		w.plan.SnapshotIndex = 1
	}
	store := w.write(t)
	before := store.Snapshot()
	txn := store.Begin(2)
	_, err := txn.ApplyPlan(&w.plan)
	must.NoError(t, err)
	txn.Commit()
	judge := &placement.Judge{}
	judge.Applied(start(), shims.Applied{Index: 2, Message: &shims.ApplyPlan{Plan: w.plan}, Before: before, After: store.Snapshot()})
	return names(t, judge)
}

func names(t *testing.T, judge *placement.Judge) (found []string) {
	t.Helper()
	for _, v := range judge.Violations() {
		must.SliceContains(t, placement.Checks(), invariant.Check(v.Guarantee+" "+v.Check))
		found = append(found, v.Check)
	}
	return found
}

func TestJudge(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*world)
		want   []string
	}{
		"a replacement": {func(w *world) { w.replace() }, nil},
		"not enough CPU": {func(w *world) {
			w.nodes["n3"].Resources.CPU = 399
			w.replace()
		}, []string{"overcommitted"}},
		"capacity for exactly one": {func(w *world) {
			w.nodes["n3"].Resources.CPU = 400
			w.replace()
		}, nil},
		"a stopping allocation uses its resources": {func(w *world) {
			w.nodes["n1"].Resources.CPU = 600
			w.replace().NodeID = "n1"
		}, []string{"overcommitted"}},
		"too many for the node": {func(w *world) {
			w.nodes["n2"].MaxAllocs = 1
			w.replace().NodeID = "n2"
		}, []string{"overcommitted"}},
		"node is ineligible": {func(w *world) {
			w.nodes["n3"].SchedulingEligibility = cluster.NodeIneligible
			w.replace()
		}, []string{"not ready"}},
		"node is down": {func(w *world) {
			w.nodes["n3"].Status = cluster.NodeDown
			w.replace()
		}, []string{"not ready"}},
		"node drains": {func(w *world) {
			w.drain = cluster.DrainUpdate{Node: "n3", Drain: "d1", Spec: &cluster.DrainSpec{}, At: start()}
			w.replace()
		}, []string{"not ready"}},
		"node does not exist": {func(w *world) { w.replace().NodeID = "n9" }, []string{"not ready"}},
		"another datacenter": {func(w *world) {
			w.job.Datacenters = []string{"dc1"}
			w.replace()
		}, []string{"unsuitable"}},
		"another class": {func(w *world) {
			w.job.TaskGroups[0].NodeClasses = []string{"large"}
			w.replace()
		}, []string{"unsuitable"}},
		"another pool": {func(w *world) {
			w.nodes["n3"].NodePool = "gpu"
			w.replace()
		}, []string{"unsuitable"}},
		"every pool": {func(w *world) {
			w.nodes["n3"].NodePool, w.job.NodePool = "gpu", "all"
			w.replace()
		}, nil},
		"an older version": {func(w *world) {
			old := w.job.Copy()
			old.Version = 7
			w.replace().Job = old
		}, []string{"other version"}},
		"other resources": {func(w *world) { w.replace().Resources.CPU = 1 }, []string{"other resources"}},
		"its ports":       {func(w *world) { w.ports(w.replace(), 80, 101) }, nil},
		"a port of another that stops": {func(w *world) {
			w.ports(w.replace(), 80, 100).NodeID = "n2"
			w.allocs[1].Ports = &cluster.AssignedPorts{All: []cluster.AssignedPort{{Label: "x", Number: 100}}}
		}, []string{"port given twice"}},
		"another static port":         {func(w *world) { w.ports(w.replace(), 81, 100) }, []string{"wrong ports"}},
		"a port outside its range":    {func(w *world) { w.ports(w.replace(), 80, 102) }, []string{"wrong ports"}},
		"a port is missing":           {func(w *world) { w.ports(w.replace(), 80) }, []string{"wrong ports"}},
		"no ports":                    {func(w *world) { w.ports(w.replace(), 80, 100).Ports = nil }, []string{"wrong ports"}},
		"ports that nothing requests": {func(w *world) { w.ports(w.replace(), 80, 100); w.job.TaskGroups[0].Ports = nil }, []string{"wrong ports"}},
		"its cores":                   {func(w *world) { w.cores(w.replace(), 3, 1) }, nil},
		"a core of another that stops": {func(w *world) {
			w.cores(w.replace(), 1, 2).NodeID = "n2"
			w.allocs[1].Cores = &cluster.AssignedCores{All: []cluster.TaskCores{{Task: "x", Cores: cluster.Cores{2}}}}
		}, []string{"core given twice"}},
		"a core twice":                {func(w *world) { w.cores(w.replace(), 1, 1) }, []string{"core given twice"}},
		"a core that is none":         {func(w *world) { w.cores(w.replace(), 1, 4) }, []string{"wrong cores"}},
		"too few cores":               {func(w *world) { w.cores(w.replace(), 1) }, []string{"wrong cores"}},
		"no cores":                    {func(w *world) { w.cores(w.replace(), 1, 2).Cores = nil }, []string{"wrong cores"}},
		"cores that nothing requests": {func(w *world) { w.cores(w.replace(), 1, 2); w.job.TaskGroups[0].Tasks[0].Cores = 0 }, []string{"wrong cores"}},
		"cores of no task":            {func(w *world) { w.cores(w.replace(), 1, 2).Cores.All[0].Task = "x" }, []string{"wrong cores", "wrong cores"}},
		"its devices":                 {func(w *world) { w.devices(w.replace(), "a") }, nil},
		"a device of another that stops": {func(w *world) {
			w.devices(w.replace(), "a").NodeID = "n2"
			w.nodes["n2"].Devices, w.allocs[1].Devices = w.nodes["n3"].Devices, w.plan.Places[0].Devices
		}, []string{"device given twice"}},
		"a device of an ended one": {func(w *world) {
			w.devices(w.replace(), "a").NodeID = "n1"
			w.nodes["n1"].Devices, w.allocs[0].Devices = w.nodes["n3"].Devices, w.plan.Places[0].Devices
			w.allocs[0].ClientStatus = cluster.ClientFailed
		}, nil},
		"one device twice":          {func(w *world) { w.devices(w.replace(), "a", "a") }, []string{"device given twice"}},
		"an unhealthy device":       {func(w *world) { w.devices(w.replace(), "b") }, []string{"wrong devices"}},
		"a device that is gone":     {func(w *world) { w.devices(w.replace(), "c") }, []string{"wrong devices"}},
		"no devices":                {func(w *world) { w.devices(w.replace(), "a").Devices = nil }, []string{"wrong devices"}},
		"too few":                   {func(w *world) { w.devices(w.replace(), "a"); w.job.TaskGroups[0].Tasks[0].Devices[0].Count = 2 }, []string{"wrong devices"}},
		"devices of another type":   {func(w *world) { w.devices(w.replace(), "a"); w.job.TaskGroups[0].Tasks[0].Devices[0].Name = "fpga" }, []string{"wrong devices"}},
		"devices of another task":   {func(w *world) { w.devices(w.replace(), "a").Devices.All[0].Task = "u" }, []string{"wrong devices"}},
		"devices without a request": {func(w *world) { w.devices(w.replace(), "a"); w.job.TaskGroups[0].Tasks[0].Devices = nil }, []string{"wrong devices"}},
		"one above the count": {func(w *world) {
			w.plan.Places = append(w.plan.Places, w.alloc("a3", "web.web[2]", "n3"))
		}, []string{"above count", "not stopped"}},
		"two allocations with one name": {func(w *world) { w.replace().Name = "web.web[1]" }, []string{"name twice"}},
		"a canary has a slot of its own": {func(w *world) {
			canary := w.alloc("c1", "web.web[0]", "n3")
			canary.DeploymentStatus = &cluster.DeploymentStatus{Canary: true}
			w.allocs = append(w.allocs, canary)
			w.replace()
		}, nil},
		"unknown on an unreachable node": {func(w *world) {
			w.nodes["n1"].Status = cluster.NodeDisconnected
			w.allocs[0].ClientStatus = cluster.ClientUnknown
			w.replace()
			w.plan.Stops = nil
		}, nil},
		"replaced twice": {func(w *world) {
			w.job.TaskGroups[0].Count = 3
			w.replace()
			w.replace().ID, w.plan.Places[1].Name = "a4", "web.web[2]"
		}, []string{"replaced twice"}},
		"replaced before": {func(w *world) {
			w.allocs[0].NextAllocation = "a0"
			w.replace()
		}, []string{"replaced twice"}},
		"replaces an allocation of another group": {func(w *world) {
			w.allocs[0].TaskGroup = "other"
			w.replace()
		}, []string{"broken lineage"}},
		"a canary without a predecessor": {func(w *world) {
			canary := w.alloc("c1", "web.web[2]", "n3")
			canary.DeploymentStatus = &cluster.DeploymentStatus{Canary: true}
			w.plan.Places = append(w.plan.Places, canary)
		}, []string{"broken lineage"}},
		"the predecessor still runs": {func(w *world) {
			w.job.TaskGroups[0].Count = 3
			w.replace().Name = "web.web[2]"
			w.plan.Stops = nil
		}, []string{"still running"}},
		"ten failures in a row": {func(w *world) {
			w.failures(10)
			w.replace()
		}, nil},
		"eleven failures in a row": {func(w *world) {
			w.failures(11)
			w.replace()
		}, []string{"replaced too often"}},
		"eleven failures in a row, ten of them with other tasks": {func(w *world) {
			w.failures(11)
			other := *w.job
			group := *other.TaskGroups[0]
			group.Tasks = []*cluster.Task{{Name: "other"}}
			other.TaskGroups = []*cluster.TaskGroup{&group}
			for _, a := range w.allocs[3:] {
				a.Job = &other
			}
			w.replace()
		}, nil},
		"a stop without a replacement": {func(w *world) {
			w.replace()
			w.plan.Places = nil
		}, []string{"left short"}},
		"the evaluation stays pending": {func(w *world) {
			w.replace()
			w.plan.Places, w.plan.Eval.Status = nil, cluster.EvalPending
		}, nil},
		"one is missing and counted": {func(w *world) {
			w.replace()
			w.plan.Places, w.plan.Blocked = nil, w.blocked("b1", 1)
		}, nil},
		"one is missing, and two are counted": {func(w *world) {
			w.replace()
			w.plan.Places, w.plan.Blocked = nil, w.blocked("b1", 2)
		}, []string{"miscounted"}},
		"one is missing, two are counted, and a retry is due": {func(w *world) {
			w.replace()
			w.plan.Places, w.plan.Blocked = nil, w.blocked("b1", 2)
			w.plan.Blocked.SnapshotIndex = 0
		}, nil},
		"a group shrinks: a moved allocation takes the slot of one that failed for good": {func(w *world) { w.shrink(1) }, nil},
		"a group shrinks, and a slot too many is counted":                                {func(w *world) { w.shrink(2) }, []string{"miscounted"}},
		"one that came back moves on, beside one that ended for good":                    {func(w *world) { w.moveOn(1) }, nil},
		"one that came back moves on, and a slot too many is counted":                    {func(w *world) { w.moveOn(2) }, []string{"miscounted"}},
		"one of a service ended for good, and others run in all slots": {func(w *world) {
			w.failures(10)
			w.allocs[0].ClientStatus = cluster.ClientComplete
			w.allocs = append(w.allocs, w.alloc("a3", "web.web[2]", "n3"))
		}, nil},
		"two are missing, and one is counted": {func(w *world) {
			w.job.TaskGroups[0].Count = 3
			w.replace()
			w.plan.Places, w.plan.Blocked = nil, w.blocked("b1", 1)
			w.plan.Blocked.SnapshotIndex = 0
		}, []string{"miscounted"}},
		"two blocked evaluations": {func(w *world) {
			w.job.TaskGroups[0].Count = 4
			w.evals = append(w.evals, w.blocked("b1", 1))
			w.plan.Blocked = w.blocked("b2", 1)
		}, []string{"two blocked evaluations"}},
		"stopped job runs": {func(w *world) { w.job.Stop, w.allocs = true, nil }, nil},
		"an unreachable allocation without a replacement": {func(w *world) { w.away(cluster.ClientUnknown) }, []string{"left short"}},
		"an unreachable allocation that nothing may replace": {func(w *world) {
			w.away(cluster.ClientUnknown)
			w.job.TaskGroups[0].Disconnect.NoReplace = true
		}, nil},
		"a lost allocation that nothing may replace": {func(w *world) {
			w.away(cluster.ClientLost)
			w.job.TaskGroups[0].Disconnect.NoReplace = true
		}, nil},
		"a lost allocation whose end is confirmed": {func(w *world) {
			w.away(cluster.ClientLost)
			w.job.TaskGroups[0].Disconnect.NoReplace = true
			w.allocs[0].ConfirmedAt = start()
		}, []string{"left short"}},
		"a marked allocation that nothing else may replace": {func(w *world) {
			w.away(cluster.ClientLost)
			w.job.TaskGroups[0].Disconnect.NoReplace = true
			w.allocs[0].DesiredTransition.Migrate = true
		}, []string{"left short"}},
		"a replacement that the group does not permit": {func(w *world) {
			w.away(cluster.ClientUnknown)
			w.job.TaskGroups[0].Disconnect.NoReplace = true
			w.plan.Places = append(w.plan.Places, w.alloc("a3", "web.web[2]", "n3"))
		}, []string{"above count"}},
		"a group shrinks below a lost allocation": {func(w *world) {
			w.away(cluster.ClientLost)
			w.job.TaskGroups[0].Disconnect.NoReplace, w.job.TaskGroups[0].Count = true, 1
		}, nil},
		"a batch allocation stopped by a deadline keeps its slot": {func(w *world) {
			w.batch()
			w.allocs[0].DesiredStatus, w.allocs[0].DesiredDescription = cluster.DesiredStop, cluster.DescMigrating
			w.allocs[0].DesiredTransition.MigrateDisablePlacement = true
		}, nil},
		"a surplus batch allocation that was stopped keeps no slot": {func(w *world) {
			w.batch()
			w.allocs[0].DesiredStatus, w.allocs[0].DesiredDescription = cluster.DesiredStop, cluster.DescNotNeeded
			w.allocs[0].DesiredTransition.MigrateDisablePlacement = true
		}, []string{"left short"}},
		"a completed batch allocation runs again": {func(w *world) {
			w.batch()
			w.allocs[0].ClientStatus = cluster.ClientComplete
			w.plan.Places = append(w.plan.Places, w.alloc("a3", "web.web[2]", "n3"))
		}, []string{"above count", "not stopped"}},
		"a system job lacks a node": {func(w *world) {
			w.job.Type = cluster.JobSystem
			w.allocs[1].NodeID = "n3"
		}, []string{"left short"}},
		"a system job runs twice on a node": {func(w *world) {
			w.job.Type = cluster.JobSystem
			w.allocs = append(w.allocs, w.alloc("a3", "web.web[0]", "n3"))
			w.plan.Places = append(w.plan.Places, w.alloc("a4", "web.web[0]", "n3"))
		}, []string{"above count", "not stopped"}},
		"a system job runs on a node of another pool": {func(w *world) {
			w.job.Type = cluster.JobSystem
			w.allocs = append(w.allocs, w.alloc("a3", "web.web[0]", "n3"))
			w.nodes["n3"].NodePool = "gpu"
		}, []string{"not stopped"}},
		"a system job runs on a node with too few cores": {func(w *world) {
			w.job.Type = cluster.JobSystem
			w.allocs = append(w.allocs, w.cores(w.alloc("a3", "web.web[0]", "n3"), 1, 2))
			w.nodes["n3"].Cores = cluster.Cores{1}
		}, nil},
		"too few cores on the node": {func(w *world) {
			w.cores(w.replace(), 1, 2)
			w.nodes["n3"].Cores = cluster.Cores{1}
		}, []string{"unsuitable", "wrong cores"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.change(w)
			must.Eq(t, c.want, w.judge(t))
		})
	}
}

// away makes n1 unreachable. a1 is unknown, or lost and stopped.
func (w *world) away(s cluster.ClientStatus) {
	w.nodes["n1"].Status = cluster.NodeDisconnected
	w.allocs[0].ClientStatus = s
	if s == cluster.ClientLost {
		w.allocs[0].DesiredStatus, w.allocs[0].DesiredDescription = cluster.DesiredStop, cluster.DescLost
	}
}

func (w *world) blocked(id cluster.EvalID, queued int) *cluster.Evaluation {
	e := w.eval(id, cluster.EvalBlocked)
	e.Queued, e.SnapshotIndex = map[string]int{"web": queued}, 1
	return e
}

// shrink sets up a group with two slots and three allocations: one has failed for good, one runs,
// and the plan stops one. The blocked evaluation counts a number of slots.
func (w *world) shrink(counted int) {
	w.failures(10)
	w.allocs[0].ClientStatus = cluster.ClientFailed
	w.allocs = append(w.allocs, w.alloc("a3", "web.web[2]", "n3"))
	w.plan.Stops = []cluster.PlanStop{{Alloc: "a3", Description: cluster.DescMigrating}}
	w.plan.Blocked = w.blocked("b1", counted)
}

// moveOn sets up a group with two slots and three allocations: one has ended for good, one came back after
// its replacement, and the plan stops this one. The blocked evaluation counts a number of slots.
func (w *world) moveOn(counted int) {
	w.failures(10)
	w.allocs[0].ClientStatus = cluster.ClientComplete
	a := w.alloc("a3", "web.web[1]", "n3")
	a.PreviousAllocation, w.allocs[1].NextAllocation = "a2", "a3"
	w.allocs = append(w.allocs, a)
	w.plan.Stops = []cluster.PlanStop{{Alloc: "a2", Description: cluster.DescMigrating}}
	w.plan.Blocked = w.blocked("b1", counted)
}

func (w *world) batch() {
	w.job.Type, w.job.TaskGroups[0].Migrate = cluster.JobBatch, nil
}

// failures gives a1 a chain of n predecessors that failed and were replaced.
func (w *world) failures(n int) {
	last := w.allocs[0]
	for i := range n {
		a := w.alloc(cluster.AllocID("f"+string(rune('a'+i))), "web.web[0]", "n1")
		a.DesiredStatus, a.ClientStatus, a.DesiredDescription = cluster.DesiredStop, cluster.ClientFailed, cluster.DescRescheduled
		last.PreviousAllocation = a.ID
		w.allocs = append(w.allocs, a)
		last = a
	}
	w.plan.Stops = nil
}

// A blocked evaluation waits for room. Bug: one waited for ever although a node was empty.
func TestJudge_still(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*world)
		want   []string
	}{
		"room for one more":  {func(*world) {}, []string{"blocked with room"}},
		"no room":            {(*world).full, nil},
		"nothing is blocked": {func(w *world) { w.evals = nil }, nil},
		"a node that drains": {func(w *world) {
			w.full()
			w.nodes["n3"].Resources.CPU = 4000
			w.drain = cluster.DrainUpdate{Node: "n3", Drain: "d1", Spec: &cluster.DrainSpec{}, At: start()}
		}, nil},
		"a system job on all nodes but one": {func(w *world) {
			w.job.Type, w.job.TaskGroups[0].Migrate = cluster.JobSystem, nil
		}, []string{"blocked with room"}},
		"a group that requests a driver": {func(w *world) { w.job.TaskGroups[0].Tasks[0].Driver = "mock" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.evals = append(w.evals, w.blocked("e9", 1))
			test.change(w)
			must.Eq(t, test.want, w.still(t))
		})
	}
}

// full fills all nodes: none has room for another allocation.
func (w *world) full() {
	for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
		w.nodes[id].Resources.CPU = 600
	}
	w.nodes["n3"].Resources.CPU = 399
}
