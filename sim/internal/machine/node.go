package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
)

// Node is a machine with the real client. It is not safe for concurrent use.
type Node struct {
	options  Options
	clock    *clock
	machine  *scripted.Machine
	programs map[string]*scripted.Program
	disk     map[cluster.AllocID]*client.Record
	diskFull bool
	// hungUntil is the end of a hang, by driver.
	hungUntil map[string]time.Time
	equipment Equipment
	volumes   *Volumes
	disks     Disks
	targets   targets
	run       *run // of the present client, or nil while none runs
	// frozen: the client makes no steps and sends nothing. thawed: it was frozen, and no heartbeat of it
	// has been answered since.
	frozen, thawed bool
	wakeAt         time.Time
	starts         int // counts the starts of tasks
	// adopting: the tasks that start now count as started long ago.
	adopting bool
	// contact is when the servers last answered a heartbeat in this boot, as on the disk and in the
	// watchdog, or zero.
	contact  time.Duration
	watchdog *watchdog
	// started is when the last client of this boot started, or zero.
	started time.Time
}

// New returns a running machine without a client.
func New(o Options) *Node {
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	c := &clock{now: o.Start, rng: o.Random}
	n := &Node{
		options: o, clock: c, machine: scripted.NewMachine(c), programs: map[string]*scripted.Program{},
		disk: map[cluster.AllocID]*client.Record{}, hungUntil: map[string]time.Time{}, targets: targets{},
	}
	n.disks = Disks{node: n, all: map[cluster.AllocID]*Disk{}, incoming: map[cluster.AllocID]*Incoming{}}
	for _, name := range o.Drivers {
		options := scripted.Options{
			Capabilities: driver.Capabilities{SendSignals: true, Exec: true, HostCgroup: !o.Containers}, Script: o.Script,
			Containers: o.Containers, EarlyWait: o.Containers,
			Fault:  func(c scripted.Call) scripted.Fault { return n.fault(name, c) },
			Launch: func(int) scripted.Launch { return launch(n, client.Plugin{Type: client.DriverPlugin, Name: name}) },
		}
		if o.Containers {
			options.Parent = scripted.InDriver
		}
		n.programs[name] = n.machine.Install(name, options)
	}
	n.machine.RunFor(o.Uptime)
	n.watchdog = newWatchdog(n)
	n.equipment.install(n)
	if o.Storage != nil {
		n.volumes = &Volumes{}
		n.volumes.install(n)
	}
	return n
}

// fault returns the fault of a call. While a driver hangs, calls take effect at the end of the
// hang.
func (n *Node) fault(name string, c scripted.Call) scripted.Fault {
	if until := n.hungUntil[name]; until.After(n.clock.now) {
		return scripted.Fault{Delay: until.Sub(n.clock.now)}
	}
	if n.options.Fault == nil {
		return scripted.Fault{}
	}
	f := n.options.Fault(name, c)
	if f != (scripted.Fault{}) {
		n.options.Observer.Troubled(n, TroubleDriver, name)
	}
	return f
}

// launch returns what the launch of a plugin's process does. A process that dies at its launch is
// trouble of the plugin.
func launch(n *Node, p client.Plugin) scripted.Launch {
	if n.options.Launch == nil || n.adopting {
		return scripted.Launch{}
	}
	l := n.options.Launch(p)
	switch {
	case l == (scripted.Launch{}):
	case p.Type == client.DriverPlugin:
		n.options.Observer.Troubled(n, TroubleDriver, p.Name)
	default:
		n.equipment.troubled(p.Name)
	}
	return l
}

// kernel returns the error of a call for the cgroup of a task.
func kernel(n *Node, call KernelCall) error {
	if n.options.Kernel == nil {
		return nil
	}
	err := n.options.Kernel(call)
	if err != nil {
		n.options.Observer.Troubled(n, TroubleKernel, "")
	}
	return err
}

// ID returns the id of the node.
func (n *Node) ID() cluster.NodeID { return n.options.ID }

// Drivers returns the names of the node's drivers. The caller does not change them.
func (n *Node) Drivers() []string { return n.options.Drivers }

// Now returns the time of the node.
func (n *Node) Now() time.Time { return n.clock.now }

// Machine returns the machine, for judges. They do not change it.
func (n *Node) Machine() *scripted.Machine { return n.machine }

// Devices returns the device plugins of the node.
func (n *Node) Devices() *Equipment { return &n.equipment }

// Volumes returns the volumes of the node, or nil if the client mounts none.
func (n *Node) Volumes() *Volumes { return n.volumes }

// Storage returns the double of the node's storage, or nil if the client mounts no volumes.
func (n *Node) Storage() *double.Storage {
	if n.volumes == nil {
		return nil
	}
	return n.volumes.storage
}

// Record returns the record of an allocation on the disk, or nil. The caller does not change it.
func (n *Node) Record(id cluster.AllocID) *client.Record { return n.disk[id] }

// Records returns the records on the disk by allocation. The caller does not change them.
func (n *Node) Records() []*client.Record {
	records := make([]*client.Record, 0, len(n.disk))
	for _, id := range slices.Sorted(maps.Keys(n.disk)) {
		records = append(records, n.disk[id])
	}
	return records
}

// Running reports whether a client runs.
func (n *Node) Running() bool { return n.run != nil }

// Works reports whether a client runs that is not frozen.
func Works(n *Node) bool { return n.run != nil && !n.frozen }

// Reachable reports whether the servers answer heartbeats.
func (n *Node) Reachable() bool { return n.options.Reachable == nil || n.options.Reachable() }

// LastContact returns when the servers last answered a heartbeat of a client. In a boot without
// such an answer it is the last start of a client. In a boot without a client it is the present
// time, because no task runs.
func (n *Node) LastContact() time.Time {
	if at, ok := answered(n); ok {
		return at
	}
	if n.contact == 0 && n.started.IsZero() {
		return n.clock.now
	}
	if n.contact == 0 {
		return n.started
	}
	return n.machine.BootedAt().Add(n.contact)
}

// TTL returns the time from [Node.LastContact] until the servers must have the next heartbeat, as in their answer. It is zero
// in a boot without an answer.
func TTL(n *Node) time.Duration {
	if _, ok := answered(n); ok || n.contact != 0 {
		return n.options.TTL
	}
	return 0
}

// answeredAt returns the contact of an answered heartbeat, or the zero value for zero.
func answeredAt(n *Node, at time.Duration) guard.Contact {
	if at == 0 {
		return guard.Contact{}
	}
	return guard.Contact{Sent: at, TTL: n.options.TTL}
}

// answered returns when the servers last answered a heartbeat of the client that runs. It reports
// false if they have answered none.
func answered(n *Node) (at time.Time, ok bool) {
	switch {
	case !Works(n):
		return at, false
	case n.Reachable():
		return n.clock.now, n.run.stepped // the first step comes before the first answer
	case n.options.Contact == nil:
		return at, false
	}
	at = n.options.Contact()
	return at, at.After(n.started)
}

// recordContact records the last answered heartbeat, and reports whether it is a new one. Heartbeats
// are not events of the node: the client is assumed to have sent all of them up to the last answered
// one.
func recordContact(n *Node) bool {
	at, ok := answered(n)
	contact := at.Sub(n.machine.BootedAt())
	if !ok || contact <= n.contact {
		return false
	}
	n.contact = contact
	return true
}

// postContact posts the last answered heartbeat to the client, if it is a new one.
func postContact(n *Node) {
	before := n.contact
	if !recordContact(n) {
		return
	}
	if !n.thawed { // it has sent heartbeats since
		before = n.contact
	}
	n.run.core.Contact(answeredAt(n, before), answeredAt(n, n.contact))
	n.thawed = false
}

// DiskFull reports whether writes to the disk fail.
func (n *Node) DiskFull() bool { return n.diskFull }

// boot returns the time since the boot of the machine.
func (n *Node) boot() time.Duration { return n.clock.now.Sub(n.machine.BootedAt()) }

// BootID names the present boot.
func (n *Node) BootID() string { return fmt.Sprint("boot-", n.machine.BootNumber()) }

// StartClient starts a client, which continues with the disk and the processes of the machine. It
// has no effect if one runs.
func (n *Node) StartClient() error {
	if n.run != nil {
		return nil
	}
	n.started = n.clock.now
	r := &run{node: n, processes: map[client.Plugin]process{}}
	r.served.run, r.probes, r.disks = r, probes{r, map[probed]func(){}}, disks{run: r, copies: map[cluster.AllocID]*Copy{}}
	records := append(readDisk(n), orphans(n)...)
	n.disks.restart(records)
	o := client.Options{
		Node: n.options.ID, Shell: r, BootID: n.BootID(), Drivers: n.options.Drivers, DevicePlugins: n.equipment.names(),
		Records: records, DataRetention: n.options.Retention, KeepEnded: n.options.KeepEnded, LastContact: answeredAt(n, n.contact), Stopped: n.watchdog.replace(),
		NewTaskID: n.newTaskID, Volumes: n.volumes.volumes(r),
	}
	if n.volumes != nil {
		o.HoldLimit = n.volumes.HoldLimit()
	}
	core, err := client.New(o)
	if err != nil {
		return fmt.Errorf("starting the client of %s: %w", n.options.ID, err)
	}
	r.core, n.run, n.wakeAt = core, r, n.clock.now
	n.options.Observer.Started(n)
	return nil
}

func (n *Node) newTaskID(alloc cluster.AllocID, task string) driver.TaskID {
	n.starts++
	return driver.TaskID(string(alloc) + "/" + task + "/" + strconv.Itoa(n.starts))
}

// readDisk returns copies of the records on the disk.
func readDisk(n *Node) []*client.Record {
	var records []*client.Record
	for _, r := range n.Records() {
		read := *r
		read.Tasks = slices.Clone(r.Tasks)
		for i := range read.Tasks {
			read.Tasks[i].State.Events = slices.Clone(read.Tasks[i].State.Events)
		}
		records = append(records, &read)
	}
	return records
}

// orphans returns records for the cgroups and folders without a record on the disk, as a client finds them by their
// owner and name. All cgroups of this machine are of this node.
func orphans(n *Node) (records []*client.Record) {
	tasks := map[cluster.AllocID][]string{}
	for _, path := range n.machine.Cgroups() {
		alloc, task := SplitCgroup(path)
		if n.disk[alloc] == nil {
			tasks[alloc] = append(tasks[alloc], task)
		}
	}
	for disk := range n.disks.All() {
		if disk.Removed.IsZero() && n.disk[disk.Alloc] == nil && tasks[disk.Alloc] == nil {
			tasks[disk.Alloc] = nil
		}
	}
	for _, alloc := range slices.Sorted(maps.Keys(tasks)) {
		r := client.OrphanRecord(alloc, tasks[alloc], n.BootID())
		if disk := n.disks.all[alloc]; disk != nil && disk.Removed.IsZero() {
			r.Disk = client.DiskFound
		}
		records = append(records, r)
	}
	return records
}

// Servers gives the client an answer of the servers.
func (n *Node) Servers(w client.Changes) {
	if n.run == nil {
		return
	}
	n.options.Observer.Received(n, w)
	w.Allocs = slices.Clone(w.Allocs)
	for i, a := range w.Allocs {
		w.Allocs[i] = a.Copy()
	}
	n.run.core.Servers(w)
}

// Forget informs the client that the servers do not have the node.
func Forget(n *Node) {
	if n.run != nil {
		n.run.core.Forgotten()
	}
}

// livelock is the number of steps and events at one time that counts as an endless loop of the
// client.
const livelock = 100_000

// Advance lets time pass until a time, and returns when the node must be advanced again at the
// latest, or the zero time. It returns an error if the client takes steps without end.
func (n *Node) Advance(to time.Time) (wake time.Time, err error) {
	for count := 0; ; count++ {
		if count > livelock {
			return time.Time{}, fmt.Errorf("the client of %s does not come to rest at %s", n.options.ID, n.clock.now)
		}
		if due(n) && (n.clock.coin() || !n.clock.runOne()) {
			n.step()
		} else if !due(n) && !n.clock.runOne() {
			at := next(n)
			if at.IsZero() || at.After(to) {
				n.clock.now = to
				return at, nil
			}
			n.clock.now, count = at, 0
			continue
		}
		n.disks.write()
		n.options.Observer.Advanced(n)
	}
}

// due reports whether the client needs a step now.
func due(n *Node) bool {
	return Works(n) && (len(n.run.core.Woken()) > 0 || !n.wakeAt.IsZero() && !n.wakeAt.After(n.clock.now))
}

// next is the time of the next event or step of a node, or zero.
func next(n *Node) time.Time {
	at := n.clock.next()
	if Works(n) && !n.wakeAt.IsZero() && (at.IsZero() || n.wakeAt.Before(at)) {
		return n.wakeAt
	}
	return at
}

// step steps the client.
func (n *Node) step() {
	postContact(n)
	n.watchdog.beside()
	select {
	case <-n.run.core.Woken():
	default:
	}
	r := n.run
	at := r.core.Step(client.Time{Boot: n.boot(), Wall: n.clock.now})
	r.stepped = true
	n.wakeAt = time.Time{}
	if n.run != nil && at != client.Never {
		n.wakeAt = n.machine.BootedAt().Add(at)
	}
}

// cgroup is the path of a task's cgroup.
func cgroup(alloc cluster.AllocID, task string) string { return string(alloc) + ":" + task }

type noObserver struct{}

var _ Observer = noObserver{}

func (noObserver) Started(*Node)                                                {}
func (noObserver) Killed(*Node)                                                 {}
func (noObserver) Received(*Node, client.Changes)                               {}
func (noObserver) Began(*Node, string, string)                                  {}
func (noObserver) Reported(*Node, []cluster.AllocReport)                        {}
func (noObserver) Taken(*Node, []cluster.AllocReport)                           {}
func (noObserver) Saved(*Node, *client.Record)                                  {}
func (noObserver) Discarded(*Node, cluster.AllocID)                             {}
func (noObserver) Checked(*Node, cluster.AllocID, string, bool)                 {}
func (noObserver) Advanced(*Node)                                               {}
func (noObserver) DevicesReported(*Node, string, []*cluster.DeviceGroup, error) {}
func (noObserver) Reserves(*Node, client.TaskRef, cluster.DeviceKind, []string) {}
func (noObserver) Troubled(*Node, Trouble, string)                              {}
