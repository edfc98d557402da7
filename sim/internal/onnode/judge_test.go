package onnode_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/onnode"
)

var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// toy is the kind of the devices d0 and d1 of the node.
var toy = cluster.DeviceKind{Vendor: "acme", Type: "toy", Name: "t1"}

// fixture is a node that runs one task of one allocation for a minute. The task has the device d0
// and the volume "data", which the storage plugin of the allocation "p" serves.
type fixture struct {
	node   *machine.Node
	judge  *onnode.Judge
	alloc  *cluster.Allocation
	plugin *cluster.Allocation
	away   bool
	// skip is the number of violations before the one that the test is about.
	skip int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{}
	f.node, f.judge = newNode(machine.Options{
		DevicePlugins: []machine.DevicePlugin{{Name: "toys", Groups: toys()}},
		Script: func(c *driver.TaskConfig) scripted.Script {
			if c.AllocID == "stuck" && c.Name == "web" {
				return scripted.Script{IgnoreSignals: true, KillTakes: time.Hour}
			}
			if c.AllocID == "slow" {
				return scripted.Script{StartDelay: time.Minute}
			}
			return scripted.Script{IgnoreSignals: true}
		},
		Reachable: func() bool { return !f.away },
		Storage: &machine.StorageOptions{
			Claim: func(q storage.Request, reply func(storage.Claimed, error)) {
				if q.Alloc == "unanswered" {
					return
				}
				reply(storage.Claimed{Plugin: "disks", ExternalID: "ext"}, nil)
			},
			Release: func(_ storage.Request, reply func(error)) { reply(nil) },
		},
	})
	must.NoError(t, f.node.StartClient())
	f.alloc, f.plugin = withVolume(gives(allocation("a1"), "d0")), disks("p")
	f.advance(t, time.Second)
	f.node.Servers(f.wanted())
	f.advance(t, time.Minute)
	must.SliceEmpty(t, f.judge.Violations())
	return f
}

// newNode returns a node with the driver "mock" and a judge, before its first client starts. Its tasks
// start at once, and the servers take its reports, unless the options differ.
func newNode(o machine.Options) (*machine.Node, *onnode.Judge) {
	judge := onnode.New("n1")
	o.ID, o.Start, o.Drivers, o.Observer = "n1", begin, []string{"mock"}, judge
	o.Report = func(_ []cluster.AllocReport, reply func(bool)) { reply(true) }
	if o.Script == nil {
		o.Script = func(*driver.TaskConfig) scripted.Script { return scripted.Script{} }
	}
	return machine.New(o), judge
}

func toys() []*cluster.DeviceGroup {
	return []*cluster.DeviceGroup{{Kind: toy, Devices: []cluster.Device{{ID: "d0", Healthy: true}, {ID: "d1", Healthy: true}}}}
}

// gives assigns a device to the task of an allocation.
func gives(a *cluster.Allocation, id string) *cluster.Allocation {
	a.Devices = &cluster.AssignedDevices{All: []cluster.AssignedDevice{{Task: "web", Kind: toy, IDs: []string{id}}}}
	return a
}

// slow places another allocation, with the device d1, and returns the start that its driver works
// on.
func (f *fixture) slow(t *testing.T) client.TaskRef {
	t.Helper()
	f.node.Servers(f.wanted(gives(allocation("slow"), "d1")))
	f.advance(t, 10*time.Second)
	must.SliceEmpty(t, f.judge.Violations())
	return client.TaskRef{Alloc: "slow", Task: "web", ID: f.node.Record("slow").Tasks[0].ID}
}

// checked returns an allocation with a check that restarts its task at the second failure after ten seconds.
func checked(id cluster.AllocID) *cluster.Allocation {
	a := allocation(id)
	a.Job.TaskGroups[0].Services = []cluster.Service{{Name: "web", PortLabel: "80", Checks: []cluster.ServiceCheck{{
		Name: "up", Type: cluster.CheckTCP, Interval: time.Minute, Timeout: time.Second, Restart: &cluster.CheckRestart{Limit: 2, Grace: 10 * time.Second},
	}}}}
	return a
}

func allocation(id cluster.AllocID) *cluster.Allocation {
	group := &cluster.TaskGroup{Name: "g", Count: 1, Tasks: []*cluster.Task{{Name: "web", Driver: "mock", KillTimeout: 5 * time.Second}}}
	job := &cluster.Job{ID: "web", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{group}}
	job.Canonicalize()
	return &cluster.Allocation{
		ID: id, Namespace: job.Namespace, JobID: job.ID, Job: job, TaskGroup: "g", NodeID: "n1", AllocModifyIndex: 1,
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending,
	}
}

// wanted is an answer of the servers with the allocations of the fixture and others.
func (f *fixture) wanted(others ...*cluster.Allocation) client.Changes {
	return wanted(append([]*cluster.Allocation{f.alloc, f.plugin}, others...)...)
}

func wanted(allocs ...*cluster.Allocation) client.Changes {
	w := client.Changes{ClusterID: "c1", Index: 1, Allocs: allocs}
	for _, a := range allocs {
		w.Known = append(w.Known, a.ID)
	}
	return w
}

// data is the volume of the allocation a1, in its usage.
var (
	data  = cluster.VolumeKey{Namespace: "default", ID: "data"}
	usage = storage.Usage{VolumeCapability: cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem}}
)

// withVolume makes the group of an allocation request the volume.
func withVolume(a *cluster.Allocation) *cluster.Allocation {
	a.Job.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "data", Type: cluster.VolumeCSI, Source: "data", Capability: usage.VolumeCapability}}
	return a
}

// disks is an allocation of the storage plugin.
func disks(id cluster.AllocID) *cluster.Allocation {
	a := allocation(id)
	t := a.Job.TaskGroups[0].Tasks[0]
	t.Name, t.StoragePlugin, t.CSIPlugin = "plugin", true, &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginMonolith}
	return a
}

// request is the request of an allocation for the volume.
func request(id cluster.AllocID) storage.Request {
	return storage.Request{Alloc: id, Volume: data, Usage: usage}
}

// call makes a call to the storage plugin that the client has not made.
func (f *fixture) call(t *testing.T, verb storage.Verb, q storage.Request) {
	t.Helper()
	c := storage.Call{Verb: verb, Volume: data, Plugin: "disks", ExternalID: "ext", Request: q, Staged: true}
	f.node.Storage().Do(f.pluginProcess().Task, c, func() bool { return false }, func(storage.Result) {})
	f.judge.Advanced(f.node)
	f.advance(t, time.Second)
}

// pluginProcess is the process of the storage plugin.
func (f *fixture) pluginProcess() scripted.Process { return f.node.Machine().LivingIn("p:plugin")[0] }

// stopPlugin sends the plugin its signal, as a driver does.
func (f *fixture) stopPlugin() {
	f.node.Machine().Signal(f.pluginProcess().Identity, scripted.SIGTERM, scripted.ByDriver)
	f.judge.Advanced(f.node)
}

// received passes to the judge, but not to the client, that an allocation must stop.
func (f *fixture) received(a *cluster.Allocation, others ...*cluster.Allocation) {
	stopped := a.Copy()
	stopped.DesiredStatus = cluster.DesiredStop
	f.judge.Received(f.node, wanted(append(others, stopped)...))
}

// settled judges the node at rest. The servers have the allocations as live.
func (f *fixture) settled(live ...*cluster.Allocation) {
	f.judge.Settled(f.node.Now(), f.node, slices.Values(live))
}

// observed lets the judge observe the machine, and again after a time.
func (f *fixture) observed(t *testing.T, after time.Duration) {
	t.Helper()
	f.judge.Advanced(f.node)
	f.advance(t, after)
	f.judge.Advanced(f.node)
}

// signal signals the task.
func (f *fixture) signal(s scripted.Signal, by scripted.Sender) {
	f.node.Machine().Signal(f.task(), s, by)
}

// brief makes the judge, but neither the client nor its watchdog, receive that the allocation must
// stop after a minute without servers. It returns when the judge has observed that the task runs on.
func (f *fixture) brief(t *testing.T, lose func()) {
	t.Helper()
	brief := f.alloc.Copy()
	brief.Job = brief.Job.Copy()
	brief.Job.TaskGroups[0].Disconnect.StopOnClientAfter = time.Minute
	f.judge.Received(f.node, wanted(f.plugin, brief))
	lose()
	f.advance(t, 2*time.Minute)
	f.judge.Advanced(f.node)
	f.advance(t, 3*time.Minute)
	f.judge.Still(f.node.Now(), f.node)
}

// deadReported kills the task, removes its cgroup, and reports its end with the volumes left.
func (f *fixture) deadReported(t *testing.T, left *cluster.VolumeHolds) {
	t.Helper()
	f.signal(scripted.SIGKILL, scripted.ByFault)
	must.NoError(t, f.node.Machine().RemoveCgroup("a1:web"))
	f.judge.Reported(f.node, []cluster.AllocReport{{Alloc: "a1", ClientStatus: cluster.ClientFailed, VolumeHolds: left}})
}

func (f *fixture) advance(t *testing.T, d time.Duration) {
	t.Helper()
	_, err := f.node.Advance(f.node.Now().Add(d))
	must.NoError(t, err)
}

// task returns the process of the task.
func (f *fixture) task() scripted.Identity {
	return f.node.Machine().LivingIn("a1:web")[0].Identity
}

// Each mistake of a client is found, and named after its guarantee. The client of the fixture makes
// none: the test does to the machine, or passes to the judge, what a wrong client would do.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, check string
		do          func(t *testing.T, f *fixture)
	}{
		{"a record forgets a start", "N1 a process without a record", func(_ *testing.T, f *fixture) {
			f.judge.Saved(f.node, &client.Record{Alloc: f.alloc, Tasks: []client.TaskRecord{{State: cluster.TaskState{Name: "web"}}}})
		}},
		{"a record is removed too early", "N1 a process without a record", func(_ *testing.T, f *fixture) { f.judge.Discarded(f.node, "a1") }},
		{"a record is removed before the end is reported", "N4 its end is not reported", func(_ *testing.T, f *fixture) {
			f.judge.Reported(f.node, []cluster.AllocReport{{Alloc: "a2", ClientStatus: cluster.ClientComplete}}) // it is in flight
			f.judge.Taken(f.node, []cluster.AllocReport{{Alloc: "a2", ClientStatus: cluster.ClientRunning}})
			f.judge.Discarded(f.node, "a2")
		}},
		{"an allocation has no record", "N4 a report is lost", func(t *testing.T, f *fixture) {
			f.judge.Received(f.node, f.wanted(allocation("a2"))) // the client does not receive it
			f.advance(t, 2*time.Minute)
			f.settled(allocation("a2"))
		}},
		{"a record has a time of another boot", "N4 a time of another boot", func(_ *testing.T, f *fixture) {
			f.judge.Saved(f.node, &client.Record{Alloc: f.alloc, HoldBegan: time.Hour})
		}},
		{"a record of a task has a time of another boot", "N4 a time of another boot", func(_ *testing.T, f *fixture) {
			tasks := []client.TaskRecord{{ID: f.node.Record("a1").Tasks[0].ID, State: cluster.TaskState{Name: "web"}, WindowBegan: time.Hour}}
			f.judge.Saved(f.node, &client.Record{Alloc: f.alloc, Tasks: tasks})
		}},
		{"a restart waits for longer than its policy", "N4 a time of another boot", func(_ *testing.T, f *fixture) {
			tasks := []client.TaskRecord{{ID: f.node.Record("a1").Tasks[0].ID, State: cluster.TaskState{Name: "web"}, Phase: client.PhaseBackoff, RestartAt: time.Hour}}
			f.judge.Saved(f.node, &client.Record{Alloc: f.alloc, Tasks: tasks})
		}},
		{"devices are not reserved without a cause", "N8 not reserved without cause", func(_ *testing.T, f *fixture) {
			event := cluster.TaskEvent{Type: "Setup Failure", Time: f.node.Now(), Message: "failed to reserve devices: the task has 2 device requests"}
			states := &cluster.TaskStates{Tasks: []cluster.TaskState{{Name: "web", Events: []cluster.TaskEvent{event}}}}
			f.judge.Reported(f.node, []cluster.AllocReport{{Alloc: "a1", ClientStatus: cluster.ClientRunning, TaskStates: states}})
		}},
		{"an effect begins again and again", "N12 too many effects", func(_ *testing.T, f *fixture) {
			for range 51 {
				f.judge.Began(f.node, "Kill", "a1:web")
			}
		}},
		{"a task is killed without a signal", "N2 killed before the end of its grace", func(_ *testing.T, f *fixture) {
			f.signal(scripted.SIGKILL, scripted.ByClient)
			f.judge.Advanced(f.node)
		}},
		{"a task gets a signal without a request", "N2 stops without cause", func(t *testing.T, f *fixture) {
			f.signal(scripted.SIGTERM, scripted.ByDriver)
			f.observed(t, time.Second)
		}},
		{"a task outlives its grace", "N2 not killed after its grace", func(t *testing.T, f *fixture) {
			f.received(f.alloc, f.plugin)
			f.signal(scripted.SIGTERM, scripted.ByDriver)
			f.observed(t, 10*time.Second)
		}},
		{"a task outlives the absence of its node", "N2 runs while its node is away", func(t *testing.T, f *fixture) {
			f.brief(t, func() { f.away = true })
		}},
		{"a task outlives its client", "N2 runs while its node is away", func(t *testing.T, f *fixture) { f.brief(t, f.node.KillClient) }},
		{"a watchdog stops a task while its client lives", "N2 stops without cause", func(_ *testing.T, f *fixture) {
			f.signal(scripted.SIGTERM, scripted.ByWatchdog)
			f.judge.Advanced(f.node)
		}},
		{"a watchdog kills a task too early", "N2 killed before the end of its grace", func(_ *testing.T, f *fixture) {
			f.signal(scripted.SIGKILL, scripted.ByWatchdog)
			f.judge.Advanced(f.node)
		}},
		{"a task lives that was reported as ended", "N3 not the truth", func(_ *testing.T, f *fixture) {
			f.judge.Reported(f.node, []cluster.AllocReport{{Alloc: "a1", ClientStatus: cluster.ClientComplete}})
		}},
		{"an exit code that no process had", "N4 exit code wrong", func(_ *testing.T, f *fixture) {
			f.judge.Reported(f.node, exited("Exit Code: 3"))
		}},
		{"no exit code", "N4 exit code wrong", func(t *testing.T, f *fixture) { f.exits(t, "Exit Code: ") }},
		{"an exit code that is no number", "N4 exit code wrong", func(t *testing.T, f *fixture) { f.exits(t, "Exit Code: 137x, Signal: 9") }},
		{"an exit code that is cut", "N4 exit code wrong", func(t *testing.T, f *fixture) { f.exits(t, "Exit Code: 137 Signal: 9") }},
		{"an exit code is lost", "N4 exit code lost", func(_ *testing.T, f *fixture) {
			f.judge.Reported(f.node, exited("The exit code is unknown"))
		}},
		{"a report is lost", "N4 a report is lost", func(_ *testing.T, f *fixture) {
			f.settled(f.alloc)
		}},
		{"a driver does not come back", "N5 a driver does not come back", func(t *testing.T, f *fixture) {
			f.node.KillClient()
			f.node.KillDriver("mock")
			f.settled()
			must.SliceEmpty(t, f.judge.Violations(), must.Sprint("the client may wait before it starts the driver"))
			f.advance(t, 3*time.Minute)
			f.settled()
		}},
		{"a device plugin does not come back", "N5 a device plugin does not come back", func(_ *testing.T, f *fixture) {
			f.node.KillClient()
			f.node.Devices().Kill("toys")
			f.settled()
		}},
		{"devices are not free when the end is reported", "N3 not the truth", func(_ *testing.T, f *fixture) {
			f.signal(scripted.SIGKILL, scripted.ByFault) // its cgroup still exists
			f.judge.Reported(f.node, []cluster.AllocReport{{Alloc: "a1", ClientStatus: cluster.ClientFailed}})
		}},
		{"devices are reserved before the record", "N8 no record", func(_ *testing.T, f *fixture) {
			f.judge.Reserves(f.node, client.TaskRef{Alloc: "a1", Task: "web", ID: "a1/web/9"}, toy, []string{"d1"})
		}},
		{"devices are reserved for a task that runs", "N8 reserved again", func(_ *testing.T, f *fixture) {
			f.judge.Reserves(f.node, client.TaskRef{Alloc: "a1", Task: "web", ID: f.node.Record("a1").Tasks[0].ID}, toy, []string{"d0"})
		}},
		{"an unhealthy device is assigned", "N8 not healthy", func(t *testing.T, f *fixture) {
			ref, groups := f.slow(t), toys()
			groups[0].Devices[1].Healthy = false
			f.judge.DevicesReported(f.node, "toys", groups, nil) // the client does not receive it
			f.judge.Reserves(f.node, ref, toy, []string{"d1"})
		}},
		{"a device is assigned that is not there", "N8 not healthy", func(t *testing.T, f *fixture) {
			f.judge.Reserves(f.node, f.slow(t), toy, []string{"d9"})
		}},
		{"a device is assigned whose plugin reports nothing", "N8 not healthy", func(t *testing.T, f *fixture) {
			ref := f.slow(t)
			f.judge.DevicesReported(f.node, "toys", toys(), errors.New("the stream has ended"))
			f.judge.Reserves(f.node, ref, toy, []string{"d1"})
		}},
		{"a device is reserved for another start", "N8 two owners", func(t *testing.T, f *fixture) {
			f.judge.Reserves(f.node, f.slow(t), toy, []string{"d0"})
		}},
		{"a device is reserved before what is left of its owner is removed", "N8 two owners", func(t *testing.T, f *fixture) {
			ref := f.slow(t)
			f.signal(scripted.SIGKILL, scripted.ByFault) // its cgroup still exists
			f.judge.Reserves(f.node, ref, toy, []string{"d0"})
		}},
		{"a task starts with other devices than its own", "N8 other devices", func(t *testing.T, f *fixture) {
			f.slow(t)
			f.judge.Received(f.node, f.wanted(gives(allocation("slow"), "d0"))) // the client does not receive it
			f.advance(t, time.Minute)
		}},
		{"a task loses a device that is sick", "N8 a device is taken away", func(t *testing.T, f *fixture) {
			f.judge.DevicesReported(f.node, "toys", nil, nil)
			f.signal(scripted.SIGTERM, scripted.ByDriver)
			f.observed(t, time.Second)
		}},
		{"a free device is not given", "N8 a free device is not given", func(t *testing.T, f *fixture) {
			batch := gives(allocation("a2"), "d1")
			batch.Job.Type = cluster.JobBatch
			f.judge.Received(f.node, f.wanted(batch)) // the client does not receive it
			f.advance(t, 6*time.Minute)
			f.settled()
		}},
		{"a call is out of order", "N6 out of order", func(t *testing.T, f *fixture) {
			f.call(t, storage.Unstage, storage.Request{Volume: data, Usage: usage})
		}},
		{"a volume is claimed before its record", "N6 no record", func(_ *testing.T, f *fixture) {
			f.node.Storage().Claim(request("a2"), func() bool { return false }, func(storage.Claimed, error) {})
			f.judge.Advanced(f.node)
		}},
		{"a volume is staged before its record", "N6 no record", func(t *testing.T, f *fixture) {
			q := request("a1")
			q.Usage.ReadOnly = true
			f.call(t, storage.Stage, q)
		}},
		{"a volume is published before its record", "N6 no record", func(t *testing.T, f *fixture) {
			f.node.Storage().Adopt(request("a2"), storage.Claimed{Plugin: "disks", ExternalID: "ext"})
			f.call(t, storage.Publish, request("a2"))
		}},
		{"a volume is unstaged, and the record does not show it", "N6 no record", func(t *testing.T, f *fixture) {
			f.node.Storage().Lose(storage.TargetPath(f.node.Storage().Root(), "a1", data, usage))
			f.call(t, storage.Unstage, storage.Request{Volume: data, Usage: usage})
		}},
		{"a volume is taken from a task", "N6 taken from a task", func(t *testing.T, f *fixture) { f.call(t, storage.Unpublish, request("a1")) }},
		{"a task starts without its volume", "N6 starts without a volume", func(t *testing.T, f *fixture) {
			f.slow(t)
			f.judge.Received(f.node, f.wanted(withVolume(gives(allocation("slow"), "d1")))) // the client does not receive it
			f.advance(t, time.Minute)
		}},
		{"a volume is not mounted", "N6 a volume is not mounted", func(t *testing.T, f *fixture) {
			f.alloc.Devices = nil
			f.judge.Received(f.node, f.wanted())
			f.advance(t, 6*time.Minute)
			f.node.Storage().Lose(storage.TargetPath(f.node.Storage().Root(), "a1", data, usage))
			f.settled()
		}},
		{"a claim is left", "N6 a claim is not released", func(t *testing.T, f *fixture) {
			f.node.Storage().Adopt(request("a2"), storage.Claimed{Plugin: "disks", ExternalID: "ext"})
			f.advance(t, 6*time.Minute)
			f.settled()
		}},
		{"a mount is left", "N6 a mount is left", func(t *testing.T, f *fixture) {
			f.node.Storage().Adopt(request("a2"), storage.Claimed{Plugin: "disks", ExternalID: "ext"})
			f.node.Storage().Release(request("a2"), func() bool { return false }, func(error) {})
			f.advance(t, 6*time.Minute)
			f.settled()
			must.EqOp(t, "out of order", f.judge.Violations()[0].Check)
			f.skip = 1
		}},
		{"a storage plugin stops before its volumes", "N7 stopped before its volumes", func(_ *testing.T, f *fixture) {
			f.received(f.plugin, f.alloc)
			f.stopPlugin()
		}},
		{"a storage plugin is killed before its volumes", "N7 stopped before its volumes", func(_ *testing.T, f *fixture) {
			f.received(f.plugin, f.alloc)
			f.node.Machine().Signal(f.pluginProcess().Identity, scripted.SIGKILL, scripted.ByClient)
			f.judge.Advanced(f.node)
		}},
		{"a storage plugin stops a moment before the end of its hold", "N7 stopped before its volumes", func(t *testing.T, f *fixture) {
			f.received(f.plugin, f.alloc)
			f.advance(t, client.DefaultHoldLimit-time.Second)
			f.stopPlugin()
		}},
		{"a storage plugin stops although its successor must stop too", "N7 stopped before its volumes", func(_ *testing.T, f *fixture) {
			f.received(f.plugin, f.alloc, disks("p2"))
			f.received(disks("p2"), f.alloc)
			f.stopPlugin()
		}},
		{"a controller stops before a claim is released", "N7 stopped before its volumes", func(t *testing.T, f *fixture) {
			f.node.Storage().Lose(storage.TargetPath(f.node.Storage().Root(), "a1", data, usage))
			f.node.Storage().Lose(storage.StagePath(f.node.Storage().Root(), data, usage))
			f.node.Storage().Release(request("a1"), func() bool { return false }, func(error) {})
			f.received(f.plugin, f.alloc)
			f.stopPlugin()
		}},
		{"an end is not reported after the hold limit", "N7 its end is not reported", func(t *testing.T, f *fixture) {
			f.node.KillClient() // the record does not state that it has ended
			f.received(f.alloc, f.plugin)
			f.signal(scripted.SIGKILL, scripted.ByFault)
			must.NoError(t, f.node.Machine().RemoveCgroup("a1:web"))
			f.node.Storage().MakeBusy(f.node.Storage().Mounts()[0].Path, storage.Holder{PID: 7, Command: "tail"})
			f.advance(t, client.DefaultHoldLimit+2*time.Minute)
			f.settled()
		}},
		{"a volume is mounted when the end is reported", "N3 not the truth", func(t *testing.T, f *fixture) { f.deadReported(t, nil) }},
		{"a volume is named before the hold limit", "N3 not the truth", func(t *testing.T, f *fixture) {
			f.deadReported(t, &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{Namespace: data.Namespace, Volume: data.ID, Alloc: "a1"}}})
		}},
		{"a verdict does not come", "N9 no verdict", func(t *testing.T, f *fixture) {
			f.judge.Received(f.node, f.wanted(allocation("a2"))) // the client does not receive it
			f.advance(t, 6*time.Minute)
			f.judge.Advanced(f.node)
		}},
		{"a verdict for nothing", "N9 healthy without a process", func(_ *testing.T, f *fixture) {
			healthy, a := true, allocation("a2")
			f.judge.Received(f.node, f.wanted(a))
			f.judge.Saved(f.node, &client.Record{Alloc: a, History: verdict.History{Healthy: &healthy}, HealthyAt: f.node.Now()})
		}},
		{"healthy while its task is dead", "N9 healthy while it is dead", func(t *testing.T, f *fixture) {
			f.node.KillClient() // the next records come from the test
			f.signal(scripted.SIGKILL, scripted.ByFault)
			f.saved(f.alloc, false)
			f.advance(t, time.Minute)
			f.saved(f.alloc, true)
		}},
		{"healthy after the first minimum although it was unhealthy", "N9 healthy too early", func(t *testing.T, f *fixture) {
			f.skip = 1
			a := allocation("a3")
			f.node.Servers(f.wanted(a))
			f.advance(t, 15*time.Second)
			f.judge.Saved(f.node, &client.Record{Alloc: a, History: verdict.History{Healthy: new(false)}, HealthyAt: f.node.Now()})
			f.judge.Saved(f.node, &client.Record{Alloc: a, History: verdict.History{Healthy: new(true)}, HealthyAt: f.node.Now()})
		}},
		{"healthy twice in five seconds", "N9 healthy too often", func(t *testing.T, f *fixture) {
			f.skip = 2
			f.advance(t, 5*time.Minute)
			f.saved(f.alloc, false)
			f.saved(f.alloc, true)
			f.saved(f.alloc, false)
			f.saved(f.alloc, true)
		}},
		{"a verdict true does not come", "N9 healthy too late", func(t *testing.T, f *fixture) {
			f.skip = 1
			f.saved(f.alloc, false)
			f.advance(t, 6*time.Minute)
			f.judge.Advanced(f.node)
		}},
		{"healthy before its check has passed", "N9 healthy before its check", func(t *testing.T, f *fixture) {
			a := checked("a4")
			f.node.Servers(f.wanted(a))
			f.advance(t, 2*time.Second)
			f.judge.Saved(f.node, &client.Record{Alloc: a, History: verdict.History{Healthy: new(true)}, HealthyAt: f.node.Now()})
		}},
		{"a check does not restart its task", "N2 does not restart", func(t *testing.T, f *fixture) {
			f.node.Servers(f.wanted(checked("a4")))
			f.advance(t, 20*time.Second)
			for range 4 { // the client does not get these results
				f.judge.Checked(f.node, "a4", "up", false)
			}
		}},
		{"unhealthy without a cause", "N9 unhealthy without a cause", func(_ *testing.T, f *fixture) { f.saved(f.alloc, false) }},
		{"the rows are healthy and the task is dead", "N9 healthy in the rows", func(t *testing.T, f *fixture) {
			f.signal(scripted.SIGKILL, scripted.ByFault)
			f.advance(t, 4*time.Second)
			row := f.alloc.Copy()
			row.ClientStatus, row.DeploymentStatus = cluster.ClientRunning, &cluster.DeploymentStatus{Healthy: new(true)}
			f.judge.Rows(f.node.Now(), f.node, slices.Values([]*cluster.Allocation{row}), time.Second)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.do(t, f)
			violations := f.judge.Violations()
			must.Greater(t, f.skip, len(violations))
			must.EqOp(t, c.check, violations[f.skip].Guarantee+" "+violations[f.skip].Check)
		})
	}
}

// saved saves a record of the allocation with a verdict of now.
func (f *fixture) saved(a *cluster.Allocation, healthy bool) {
	r := *f.node.Record(a.ID)
	r.Healthy, r.HealthyAt = &healthy, f.node.Now()
	f.judge.Saved(f.node, &r)
}

// exits ends the task with the exit code 137, and reports its end with a text.
func (f *fixture) exits(t *testing.T, message string) {
	t.Helper()
	f.signal(scripted.SIGKILL, scripted.ByFault)
	f.judge.Reported(f.node, exited(message))
}

// A check fails just after the healthy verdict, before its record is saved. Bug: the judge had forgotten that the check had
// passed until then. It finds a verdict that comes after the failure.
func TestJudge_failsAsItIsHealthy(t *testing.T) {
	t.Parallel()
	for after, found := range map[time.Duration]int{0: 0, time.Millisecond: 1} {
		f := newFixture(t)
		a := checked("a4")
		f.node.Servers(f.wanted(a))
		f.advance(t, 5*time.Second)
		f.node.KillClient() // the record comes from the test
		f.judge.Checked(f.node, "a4", "up", true)
		f.advance(t, time.Minute)
		f.judge.Checked(f.node, "a4", "up", false)
		f.judge.Saved(f.node, &client.Record{Alloc: a, History: verdict.History{Healthy: new(true)}, HealthyAt: f.node.Now().Add(after)})
		must.Len(t, found, f.judge.Violations(), must.Sprint(f.judge.Violations()))
	}
}

// An allocation waits for its volume, and not for its devices. Bug: the judge missed the devices.
func TestJudge_waitsForItsVolume(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.node.Servers(f.wanted(withVolume(gives(allocation("unanswered"), "d1"))))
	f.advance(t, 10*time.Minute)
	f.settled()
	for _, v := range f.judge.Violations() {
		must.NotEqOp(t, "N8", v.Guarantee, must.Sprint(v))
	}
}

// A driver refuses a task, and the other task of the allocation must stop. Bug: with a short
// shutdown delay it gets its signal before the record of the failure is saved, and the judge
// observed no cause.
func TestJudge_failureIsBeingSaved(t *testing.T) {
	t.Parallel()
	for delay := time.Duration(0); delay < 6*time.Millisecond; delay += 100 * time.Microsecond {
		signalled := false
		node, judge := newNode(machine.Options{
			Fault: func(_ string, c scripted.Call) scripted.Fault {
				if c.Name == scripted.CallStart && strings.HasPrefix(string(c.Task), "a1/bad/") {
					return scripted.Fault{Delay: time.Second, Action: scripted.Fail}
				}
				return scripted.Fault{}
			},
		})
		must.NoError(t, node.StartClient())
		a := allocation("a1")
		g := a.Job.TaskGroups[0]
		g.Tasks[0].ShutdownDelay = delay
		g.Tasks = append(g.Tasks, &cluster.Task{Name: "bad", Driver: "mock", KillTimeout: time.Second})
		node.Servers(wanted(a))
		_, err := node.Advance(begin.Add(time.Minute))
		must.NoError(t, err)
		for _, p := range node.Machine().Processes() {
			signalled = signalled || p.Kind == scripted.TaskProcess && len(p.Signals) > 0
		}
		must.True(t, signalled)
		must.SliceEmpty(t, judge.Violations(), must.Sprint(delay))
	}
}

// leashed is a node that runs an allocation. The allocation must stop when its client has not
// reached the servers for a minute, and its task gets its signal half a minute later.
type leashed struct {
	node   *machine.Node
	judge  *onnode.Judge
	wanted client.Changes
	silent bool // the servers do not answer
}

func newLeashed(t *testing.T) *leashed {
	t.Helper()
	l := &leashed{}
	l.node, l.judge = newNode(machine.Options{Reachable: func() bool { return !l.silent }})
	must.NoError(t, l.node.StartClient())
	l.wanted = wanted(onLeash("a1"))
	l.node.Servers(l.wanted)
	l.advance(t, time.Minute)
	must.Len(t, 1, l.node.Machine().LivingIn("a1:web"))
	return l
}

func onLeash(id cluster.AllocID) *cluster.Allocation {
	a := allocation(id)
	g := a.Job.TaskGroups[0]
	g.Disconnect.StopOnClientAfter, g.Tasks[0].ShutdownDelay = time.Minute, 30*time.Second
	return a
}

func (l *leashed) advance(t *testing.T, d time.Duration) {
	t.Helper()
	_, err := l.node.Advance(l.node.Now().Add(d))
	must.NoError(t, err)
}

// The client is dead for longer than an allocation may run without it, and the record is lost. The
// next client runs the allocation again. Small seed 3320013339: when this client died, the judge
// expected that the watchdog had stopped the allocation because of the first absence.
func TestJudge_runsAgainAfterItsAbsence(t *testing.T) {
	t.Parallel()
	for _, silent := range []time.Duration{0, time.Minute} {
		l := newLeashed(t)
		l.node.LoseRecord("a1")
		l.node.KillClient()
		l.advance(t, 80*time.Second)
		must.NoError(t, l.node.StartClient())
		l.silent = true
		l.advance(t, silent)
		l.silent = false
		l.node.Servers(l.wanted)
		l.advance(t, 90*time.Second)
		must.EqOp(t, "a1/web/2", l.node.Machine().LivingIn("a1:web")[0].Task)
		l.node.KillClient()
		l.advance(t, 50*time.Second)
		l.judge.Still(l.node.Now(), l.node)
		must.SliceEmpty(t, l.judge.Violations(), must.Sprint(silent))
	}
}

// The machine restarts a long time after the start of its client, and the allocation runs again. A
// regression: the judge took the start of the client for the last contact, and expected that the
// allocation stops.
func TestJudge_runsAgainAfterAReboot(t *testing.T) {
	t.Parallel()
	l := newLeashed(t)
	l.advance(t, 10*time.Minute)
	l.node.Halt()
	l.judge.Advanced(l.node)
	l.advance(t, 2*time.Minute)
	l.node.Boot()
	must.NoError(t, l.node.StartClient())
	l.node.Servers(l.wanted)
	l.advance(t, 5*time.Minute)
	must.Len(t, 1, l.node.Machine().LivingIn("a1:web"))
	l.node.KillClient()
	l.advance(t, 50*time.Second)
	l.judge.Still(l.node.Now(), l.node)
	must.SliceEmpty(t, l.judge.Violations())
}

// A client comes back after the allocation had to stop, and before the watchdog has sent a signal.
// It stops the allocation: its first step comes before the answer to a heartbeat. Bug: the answer
// came at once, the allocation ran on, and the judge still expected that it stops. A new allocation
// comes with an answer, and runs.
func TestJudge_clientComesBackLate(t *testing.T) {
	t.Parallel()
	l := newLeashed(t)
	l.node.KillClient()
	l.advance(t, 70*time.Second)
	must.NoError(t, l.node.StartClient())
	l.advance(t, 0)
	l.node.Servers(wanted(append(l.wanted.Allocs, onLeash("a2"))...))
	l.advance(t, time.Minute)
	must.SliceEmpty(t, l.node.Machine().LivingIn("a1:web"))
	must.Len(t, 1, l.node.Machine().LivingIn("a2:web"))
	must.True(t, l.node.Record("a1").Ended)
	must.SliceEmpty(t, l.judge.Violations())
}

func exited(message string) []cluster.AllocReport {
	event := cluster.TaskEvent{Type: "Terminated", Time: begin.Add(time.Hour), Message: message}
	states := &cluster.TaskStates{Tasks: []cluster.TaskState{{Name: "web", Events: []cluster.TaskEvent{event}}}}
	return []cluster.AllocReport{{Alloc: "a1", ClientStatus: cluster.ClientRunning, TaskStates: states}}
}

// The true exit code of a task is no violation.
func TestJudge_trueExitCode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exits(t, "Exit Code: 137, Signal: 9")
	must.SliceEmpty(t, f.judge.Violations())
}

// What the other checks accept: an end that the servers have taken, fifty effects in a second and fifty
// in the next one, and devices that are sick.
func TestJudge_accepts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.judge.Taken(f.node, []cluster.AllocReport{{Alloc: "a2", ClientStatus: cluster.ClientFailed}})
	f.judge.Discarded(f.node, "a2")
	for range 2 {
		for range 50 {
			f.judge.Began(f.node, "Kill", "a1:web")
			f.judge.Began(f.node, "Kill", "a2:web")
		}
		f.advance(t, time.Second)
	}
	f.judge.DevicesReported(f.node, "toys", nil, nil)
	event := cluster.TaskEvent{Type: "Setup Failure", Time: f.node.Now(), Message: "failed to reserve devices: the node has no device"}
	states := &cluster.TaskStates{Tasks: []cluster.TaskState{{Name: "web", Events: []cluster.TaskEvent{event}}}}
	f.judge.Reported(f.node, []cluster.AllocReport{{Alloc: "a1", ClientStatus: cluster.ClientRunning, TaskStates: states}})
	must.SliceEmpty(t, f.judge.Violations())
}

// Two allocations run with one device at the beginning.
func TestJudge_oneDeviceTwice(t *testing.T) {
	t.Parallel()
	node, judge := newNode(machine.Options{DevicePlugins: []machine.DevicePlugin{{Name: "toys", Groups: toys()}}})
	must.NoError(t, node.Adopt("c1", []*cluster.Allocation{gives(allocation("a1"), "d0"), gives(allocation("a2"), "d0")}))
	var found []string
	for _, v := range judge.Violations() {
		must.EqOp(t, "N8 two owners", v.Guarantee+" "+v.Check)
		found = append(found, v.Text)
	}
	must.Eq(t, []string{
		"a1/web/1 starts with /dev/acme/toy/t1/d0, which is reserved for a2/web/2",
		"a1/web/1 starts with /dev/acme/toy/t1/d0, which process 6 of a2/web/2 uses",
		"a2/web/2 starts with /dev/acme/toy/t1/d0, which process 4 of a1/web/1 uses",
	}, found)
}
