package machine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	devices "github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/onnode"
)

var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// fixture is a node with its judge and its servers.
type fixture struct {
	t     *testing.T
	node  *machine.Node
	judge *onnode.Judge
	now   time.Time
	// scripts are the scripts of tasks, by name.
	scripts map[string]scripted.Script
	fault   func(scripted.Call) scripted.Fault
	// deviceFault is the fault of the device plugin "toys", which has the devices d0 to d2.
	deviceFault func(devices.Call) scripted.Fault
	// storageFault is the fault of the storage plugin "disks" and of claims. stages: the plugin
	// stages volumes.
	storageFault func(double.Call) scripted.Fault
	stages       bool
	// kernel is the error of a call for a cgroup, and launch is what the launch of a plugin does.
	kernel func(machine.KernelCall) error
	launch func(client.Plugin) scripted.Launch
	// exclusive: a volume has one claim at a time.
	exclusive bool
	// late: the servers take this report at the next call of run only. held are such reports.
	late func() bool
	held []func()
	// away: the servers do not answer, since cutAt.
	away  bool
	cutAt time.Time
	// allocs are the rows of the servers, in the order of placement.
	allocs []*cluster.Allocation
	index  uint64
	// containers: the driver keeps tasks in containers.
	containers bool
	// effects counts started and answered effects. The client is killed at number dieAt.
	effects, dieAt int
}

// cut makes the servers silent if away is set, and answer otherwise.
func (f *fixture) cut(away bool) {
	if away && !f.away {
		f.cutAt = f.node.Now()
	}
	f.away = away
}

func newFixture(t *testing.T, rng *rand.Rand) *fixture { return newFixtureOf(t, rng, false) }

// newFixtureOf returns a fixture whose driver keeps tasks in containers, or does not.
func newFixtureOf(t *testing.T, rng *rand.Rand, containers bool) *fixture {
	return newFixtureKeeping(t, rng, containers, 0)
}

// newFixtureKeeping returns a fixture whose client keeps a number of ended allocations, as its options
// state it.
func newFixtureKeeping(t *testing.T, rng *rand.Rand, containers bool, keepEnded int) *fixture {
	f := &fixture{t: t, now: begin, scripts: map[string]scripted.Script{}, stages: true, containers: containers, judge: onnode.New("n1")}
	f.node = machine.New(machine.Options{
		ID: "n1", Start: begin, Uptime: 400 * 24 * time.Hour, Random: rng, Drivers: []string{"mock"}, Containers: containers, KeepEnded: keepEnded, Observer: f.judge,
		Script:    func(c *driver.TaskConfig) scripted.Script { return f.scripts[c.Name] },
		Reachable: func() bool { return !f.away },
		Contact:   func() time.Time { return f.cutAt },
		Report: func(reports []cluster.AllocReport, reply func(bool)) {
			if f.late != nil && f.late() {
				f.held = append(f.held, func() { f.report(reports, reply) })
				return
			}
			f.report(reports, reply)
		},
		Fault: func(_ string, c scripted.Call) scripted.Fault {
			if f.fault == nil {
				return scripted.Fault{}
			}
			return f.fault(c)
		},
		Kernel: func(c machine.KernelCall) error {
			if f.kernel == nil {
				return nil
			}
			return f.kernel(c)
		},
		Launch: func(p client.Plugin) scripted.Launch {
			if f.launch == nil {
				return scripted.Launch{}
			}
			return f.launch(p)
		},
		DevicePlugins: []machine.DevicePlugin{{Name: "toys", Groups: toys("d0", "d1", "d2")}},
		DeviceFault: func(_ string, c devices.Call) scripted.Fault {
			if f.deviceFault == nil {
				return scripted.Fault{}
			}
			return f.deviceFault(c)
		},
		Storage: &machine.StorageOptions{
			Claim: f.claim, Release: f.release, Claimed: claimed,
			Stages: func(cluster.PluginID) bool { return f.stages },
			Fault: func(c double.Call) scripted.Fault {
				if f.storageFault == nil {
					return scripted.Fault{}
				}
				return f.storageFault(c)
			},
		},
		Effect: func(string, bool) bool {
			f.effects++
			return f.effects != f.dieAt
		},
	})
	must.NoError(t, f.node.StartClient())
	f.run(time.Second)
	return f
}

// report accepts reports, unless the servers are down.
func (f *fixture) report(reports []cluster.AllocReport, reply func(bool)) {
	if !f.away {
		for _, r := range reports {
			f.takeBack(r)
			for i, a := range f.allocs {
				if a.ID == r.Alloc && !a.ClientTerminal() {
					changed := a.Copy()
					changed.ClientStatus = r.ClientStatus
					if r.Healthy != nil {
						changed.DeploymentStatus = &cluster.DeploymentStatus{Healthy: r.Healthy, Timestamp: r.HealthyAt}
					}
					f.index++
					changed.ModifyIndex = f.index
					f.allocs[i] = changed
				}
			}
		}
	}
	reply(!f.away)
}

// takeBack frees the claims of an ended allocation.
func (f *fixture) takeBack(r cluster.AllocReport) {
	for _, c := range f.node.Storage().Claims() {
		if c.Alloc == r.Alloc && (&cluster.Allocation{ClientStatus: r.ClientStatus}).ClientTerminal() && !r.VolumeHolds.Holds(c.Key()) {
			f.node.Storage().TakeBack(c.Key())
		}
	}
}

// claim grants a free claim. Servers that are down do not answer.
func (f *fixture) claim(q storage.Request, reply func(storage.Claimed, error)) {
	if f.away {
		return
	}
	for _, c := range f.node.Storage().Claims() {
		if f.exclusive && c.Volume == q.Volume && c.Alloc != q.Alloc {
			reply(storage.Claimed{}, errors.New("the volume is another allocation's"))
			return
		}
	}
	reply(claimed(q), nil)
}

func claimed(q storage.Request) storage.Claimed {
	return storage.Claimed{Plugin: "disks", ExternalID: "ext-" + string(q.Volume.ID)}
}

// release releases each claim.
func (f *fixture) release(_ storage.Request, reply func(error)) {
	if !f.away {
		reply(nil)
	}
}

// run lets time pass. A dead client restarts after a second.
func (f *fixture) run(d time.Duration) {
	f.t.Helper()
	held := f.held
	f.held = nil
	for _, take := range held {
		take()
	}
	for end := f.now.Add(d); ; {
		next, err := f.node.Advance(f.now)
		must.NoError(f.t, err)
		if !f.node.Running() {
			f.now = f.now.Add(time.Second)
			_, err := f.node.Advance(f.now)
			must.NoError(f.t, err)
			must.NoError(f.t, f.node.StartClient())
			f.answer()
			continue
		}
		if next.IsZero() || next.After(end) {
			if end.After(f.now) { // the restart of a client may have ended later
				f.now = end
			}
			_, err := f.node.Advance(f.now)
			must.NoError(f.t, err)
			return
		}
		f.now = next
	}
}

// place places an allocation.
func (f *fixture) place(a *cluster.Allocation) {
	f.index++
	a.AllocModifyIndex, a.ModifyIndex = f.index, f.index
	f.allocs = append(f.allocs, a)
	f.answer()
}

// stop makes the client stop an allocation.
func (f *fixture) stop(id cluster.AllocID) {
	for i, a := range f.allocs {
		if a.ID == id && !a.ServerTerminal() {
			f.index++
			changed := a.Copy()
			changed.DesiredStatus, changed.AllocModifyIndex, changed.ModifyIndex = cluster.DesiredStop, f.index, f.index
			f.allocs[i] = changed
		}
	}
	f.answer()
}

// answer sends the live allocations to the client.
func (f *fixture) answer() {
	if f.away {
		return
	}
	w := client.Changes{ClusterID: "c1", Index: f.index, Complete: true}
	for _, a := range f.allocs {
		if !a.ClientTerminal() {
			w.Allocs, w.Known = append(w.Allocs, a), append(w.Known, a.ID)
		}
	}
	f.node.Servers(w)
}

func (f *fixture) row(id cluster.AllocID) *cluster.Allocation {
	for _, a := range f.allocs {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// settle waits until the node is idle, and judges it.
func (f *fixture) settle() {
	f.t.Helper()
	f.run(10 * time.Minute)
	live := slices.DeleteFunc(slices.Clone(f.allocs), (*cluster.Allocation).ClientTerminal)
	f.judge.Settled(f.now, f.node, slices.Values(live))
	f.noViolations()
}

func (f *fixture) noViolations() {
	f.t.Helper()
	for _, v := range f.judge.Violations() {
		f.t.Errorf("%s %s", v.At.Sub(begin), v)
	}
}

// allocation is an allocation of a service, with its tasks in one group.
func allocation(id cluster.AllocID, tasks ...*cluster.Task) *cluster.Allocation {
	group := &cluster.TaskGroup{Name: "g", Count: 1, Tasks: tasks}
	for _, t := range tasks {
		t.Driver = "mock"
	}
	job := &cluster.Job{ID: "job-" + cluster.JobID(id), Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{group}}
	job.Canonicalize()
	return &cluster.Allocation{
		ID: id, Namespace: job.Namespace, JobID: job.ID, Job: job, TaskGroup: "g", Name: fmt.Sprintf("%s.g[0]", job.ID), NodeID: "n1",
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending,
	}
}

// toys are healthy devices of one kind.
func toys(ids ...string) []*cluster.DeviceGroup {
	g := &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: "acme", Type: "toy", Name: "t1"}}
	for _, id := range ids {
		g.Devices = append(g.Devices, cluster.Device{ID: id, Healthy: true})
	}
	return []*cluster.DeviceGroup{g}
}

// gives adds a request of a task for devices, which the servers have assigned. A task may have several
// requests.
func gives(a *cluster.Allocation, task string, ids ...string) *cluster.Allocation {
	if a.Devices == nil {
		a.Devices = &cluster.AssignedDevices{}
	}
	kind := toys()[0].Kind
	a.Devices.All = append(a.Devices.All, cluster.AssignedDevice{Task: task, Kind: kind, IDs: ids})
	for _, t := range a.Job.TaskGroups[0].Tasks {
		if t.Name == task {
			t.Devices = append(t.Devices, cluster.DeviceRequest{Name: kind.String(), Count: len(ids)})
		}
	}
	return a
}

// mounts adds requests for volumes to the group of an allocation.
func mounts(a *cluster.Allocation, ids ...cluster.VolumeID) *cluster.Allocation {
	g := a.Job.TaskGroups[0]
	for _, id := range ids {
		g.Volumes = append(g.Volumes, cluster.VolumeRequest{
			Name: string(id), Type: cluster.VolumeCSI, Source: id,
			Capability: cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem},
		})
	}
	return a
}

// disks returns an allocation of the storage plugin, which is a system job.
func disks(id cluster.AllocID) *cluster.Allocation {
	a := allocation(id, &cluster.Task{Name: "plugin", KillTimeout: 5 * time.Second, StoragePlugin: true, CSIPlugin: &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginMonolith}})
	a.Job.Type = cluster.JobSystem
	return a
}

// wiped is an answer of servers that have lost their state.
func wiped() client.Changes { return client.Changes{ClusterID: "c2", Index: 1000, Complete: true} }
