package client_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
)

// deviceTable is the device plugin "toys" with the owners of its devices. It does not use the
// records: a Reserve call sets the owner, and the removal of the start by the machine clears it.
type deviceTable struct {
	installed bool
	process   *pluginProcess
	// rows are by id. ids are the devices that the plugin reports.
	rows map[string]*deviceRow
	ids  []cluster.Device
	// last is what the next core gets of an earlier client.
	last []*cluster.DeviceGroup
	// scripts state what reservations do, by the name of the task.
	scripts map[string]deviceScript
	// mute: the plugin reports no devices.
	mute bool
}

type deviceRow struct {
	owner    client.TaskRef
	reserved int // counts the calls
}

// deviceScript states what a reservation does. The zero value succeeds at once.
type deviceScript struct {
	errors []error // of the first calls; nil is a success
	takes  time.Duration
	hangs  bool
	dies   bool // the plugin dies once, after the calls with errors
}

var toy = cluster.DeviceKind{Vendor: "acme", Type: "toy", Name: "t1"}

// install installs a device plugin with healthy devices on the node.
func (n *node) install(ids ...string) {
	n.devices.installed = true
	for _, id := range ids {
		n.devices.ids = append(n.devices.ids, cluster.Device{ID: id, Healthy: true})
	}
	n.startCore()
}

func (d *deviceTable) plugins() []string {
	if d.installed {
		return []string{"toys"}
	}
	return nil
}

func (d *deviceTable) groups() []*cluster.DeviceGroup {
	if len(d.ids) == 0 {
		return nil
	}
	return []*cluster.DeviceGroup{{Kind: toy, Devices: slices.Clone(d.ids)}}
}

// ownedBy returns the devices whose owner is a task of the allocation.
func (d *deviceTable) ownedBy(alloc cluster.AllocID) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(d.rows)) {
		if d.rows[id].owner.Alloc == alloc {
			ids = append(ids, id)
		}
	}
	return ids
}

func (d *deviceTable) clean(ref client.TaskRef) {
	for _, row := range d.rows {
		if row.owner.Alloc == ref.Alloc && row.owner.Task == ref.Task {
			row.owner = client.TaskRef{}
		}
	}
}

// reboot ends the plugin and all owners.
func (d *deviceTable) reboot() {
	d.process.generation, d.process.down, d.process.hanging = d.process.generation+1, false, nil
	for _, row := range d.rows {
		row.owner = client.TaskRef{}
	}
}

// post posts the plugin's devices to the core.
func (n *node) post() {
	n.core.Devices("toys", n.devices.process.generation, client.DeviceReport{Groups: n.devices.groups()})
}

// killDevicePlugin ends the process of the device plugin.
func (n *node) killDevicePlugin(generation client.Generation) {
	if n.devices.process.runs(generation) {
		n.devices.process.die(func() {})
	}
}

func (s *shell) Reserve(ref client.TaskRef, devices client.DevicesRef, reply func(device.Reservation, error)) {
	n, d := s.node, s.node.devices
	if !s.effect() {
		return
	}
	// The write-ahead rule, and the rule of one owner.
	rec := n.disk[ref.Alloc]
	must.NotNil(n.t, rec)
	must.True(n.t, slices.ContainsFunc(rec.Tasks, func(t client.TaskRecord) bool { return t.ID == ref.ID && t.Phase == client.PhaseStarting }), must.Sprint("no record of ", ref.ID))
	for _, id := range devices.IDs {
		n.noOtherRecord(ref, id)
		row := d.rows[id]
		if row == nil {
			row = new(deviceRow)
			d.rows[id] = row
		}
		if row.owner.ID != "" && row.owner.ID != ref.ID {
			must.Unreachable(n.t, must.Sprintf("%s is reserved for %s, and its owner is %s", id, ref.ID, row.owner.ID))
		}
		row.owner = ref
		row.reserved++
	}
	answer := func(r device.Reservation, err error) {
		if s.effect() {
			reply(r, err)
		}
	}
	script := d.scripts[ref.Task]
	if script.hangs && d.process.runs(devices.Generation) {
		d.process.hang(s, "Reserve", callLimit, func(err error) { reply(device.Reservation{}, err) })
		return
	}
	n.after(max(script.takes, time.Millisecond), 0, func() {
		script := d.scripts[ref.Task]
		switch {
		case !d.process.runs(devices.Generation):
			answer(device.Reservation{}, gone("Reserve"))
		case len(script.errors) > 0 && script.errors[0] != nil:
			err := script.errors[0]
			script.errors = script.errors[1:]
			d.scripts[ref.Task] = script
			answer(device.Reservation{}, err)
		case len(script.errors) == 0 && script.dies:
			script.dies = false
			d.scripts[ref.Task] = script
			n.killDevicePlugin(devices.Generation)
			answer(device.Reservation{}, gone("Reserve"))
		default:
			script.errors = script.errors[min(1, len(script.errors)):]
			d.scripts[ref.Task] = script
			answer(device.Reservation{Env: map[string]string{"TOYS": strings.Join(devices.IDs, ",")}}, nil)
		}
	})
}

// noOtherRecord checks that in the records on the disk no other start has the device. The next
// client would read these records.
func (n *node) noOtherRecord(ref client.TaskRef, id string) {
	for _, alloc := range slices.Sorted(maps.Keys(n.disk)) {
		rec := n.disk[alloc]
		for _, t := range rec.Tasks {
			if t.ID == "" || t.ID == ref.ID || rec.Alloc.Devices == nil {
				continue
			}
			for _, assigned := range rec.Alloc.Devices.All {
				must.False(n.t, assigned.Task == t.State.Name && slices.Contains(assigned.IDs, id), must.Sprintf("%s is reserved for %s, and by the disk %s has it", id, ref.ID, t.ID))
			}
		}
	}
}

// useDevices records the devices of a starting process. It checks that the servers assigned each
// device to the task, and that no other running process uses it.
func (n *node) useDevices(t *task, parts []device.Part) {
	for _, p := range parts {
		t.devices = append(t.devices, strings.Split(p.Env["TOYS"], ",")...)
	}
	var assigned []string
	for _, a := range n.allocs {
		if a.ID != t.alloc || a.Devices == nil {
			continue
		}
		for _, g := range a.Devices.All {
			if g.Task == t.name {
				assigned = append(assigned, g.IDs...)
			}
		}
	}
	must.Eq(n.t, assigned, t.devices, must.Sprint(t.id))
	for _, other := range n.live("") {
		for _, id := range other.devices {
			must.SliceNotContains(n.t, t.devices, id, must.Sprintf("%s starts while %s has the device", t.id, other.id))
		}
	}
}

// withDevices adds a request of a task for devices, which the servers have assigned. A task may have
// several requests.
func withDevices(a *cluster.Allocation, task string, ids ...string) *cluster.Allocation {
	if a.Devices == nil {
		a.Devices = &cluster.AssignedDevices{}
	}
	a.Devices.All = append(a.Devices.All, cluster.AssignedDevice{Task: task, Kind: toy, IDs: ids})
	for _, t := range a.Job.TaskGroups[0].Tasks {
		if t.Name == task {
			t.Devices = append(t.Devices, cluster.DeviceRequest{Name: toy.String(), Count: len(ids)})
		}
	}
	return a
}

// reserved returns how often each device was reserved.
func (d *deviceTable) reserved() string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(d.rows)) {
		all = append(all, fmt.Sprint(id, " ", d.rows[id].reserved))
	}
	return strings.Join(all, ", ")
}
