package onnode

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	devices "github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// ledger judges the devices of a node. It is part of a [Judge].
type ledger struct {
	*facts
	// reported are the devices that each device plugin has reported to the present client.
	reported map[string][]*cluster.DeviceGroup
}

// DevicesReported implements [machine.Observer].
func (j *Judge) DevicesReported(n *machine.Node, plugin string, groups []*cluster.DeviceGroup, err error) {
	j.now = n.Now()
	if j.devices.reported[plugin] = nil; err == nil {
		for _, g := range groups {
			j.devices.reported[plugin] = append(j.devices.reported[plugin], g.Copy())
		}
	}
}

// healthy reports whether a plugin has reported a device as healthy to the present client.
func (l *ledger) healthy(n *machine.Node, kind cluster.DeviceKind, id string) bool {
	for _, plugin := range n.Devices().Programs() {
		for _, g := range l.reported[plugin.Name()] {
			if g.Kind == kind && slices.ContainsFunc(g.Devices, func(d cluster.Device) bool { return d.ID == id && d.Healthy }) {
				return true
			}
		}
	}
	return false
}

// Reserves implements [machine.Observer].
func (j *Judge) Reserves(n *machine.Node, task client.TaskRef, kind cluster.DeviceKind, ids []string) {
	j.now = n.Now()
	j.devices.reserves(n, task, kind, ids)
}

// reserves judges N8 when a start reserves devices.
func (l *ledger) reserves(n *machine.Node, task client.TaskRef, kind cluster.DeviceKind, ids []string) {
	a := l.alloc(task.Alloc)
	if !names(n.Record(task.Alloc), task.ID) && !a.lost {
		l.find("N8 no record", task.Alloc, "devices are reserved for %s, and no record on the disk names it", task.ID)
	}
	for _, s := range l.starts[string(task.Alloc)+":"+task.Task] {
		if p, _ := n.Machine().Process(s); p.Task == task.ID {
			l.find("N8 reserved again", task.Alloc, "devices are reserved for %s, whose process %d has started", task.ID, p.PID)
		}
	}
	for _, id := range ids {
		if !l.healthy(n, kind, id) {
			l.find("N8 not healthy", task.Alloc, "%s/%s is reserved for %s, and no device plugin has reported it as healthy", kind, id, task.ID)
		}
		for _, row := range n.Devices().Rows() {
			if row.Kind == kind && row.ID == id && row.Owner != task.ID && l.holds(n, row.Owner) {
				l.find("N8 two owners", task.Alloc, "%s/%s is reserved for %s, and %s has it", kind, id, task.ID, row.Owner)
			}
		}
	}
}

// judgeFailures judges N8 when the client reports that it has not reserved the devices of a task. The
// event is from the last minutes, so trouble may have ended meanwhile.
func (l *ledger) judgeFailures(n *machine.Node, a *alloc, t cluster.TaskState) {
	if a.row == nil || a.row.Devices == nil || a.lost {
		return
	}
	for _, e := range t.Events {
		if e.Type != "Setup Failure" || !strings.HasPrefix(e.Message, "failed to reserve devices") || !e.Time.After(a.unreserved[t.Name]) {
			continue
		}
		a.unreserved[t.Name] = e.Time
		if troubled := []time.Time{l.trouble.devices, l.trouble.boot, l.trouble.client}; slices.ContainsFunc(troubled, func(at time.Time) bool { return at.After(e.Time.Add(-startTakes)) }) {
			continue
		}
		if slices.ContainsFunc(a.row.Devices.All, func(d cluster.AssignedDevice) bool {
			return d.Task == t.Name && slices.ContainsFunc(d.IDs, func(id string) bool { return !l.healthy(n, d.Kind, id) })
		}) {
			continue
		}
		l.find("N8 not reserved without cause", a.id, "%s: %q, and its devices are healthy", t.Name, e.Message)
	}
}

// exists reports whether the cgroup or a process of a start is on the machine.
func exists(n *machine.Node, id driver.TaskID) bool {
	return isThere(n, id, func(*scripted.Process) bool { return true })
}

// holds is like exists, apart from processes that only a driver with trouble can end.
func (l *ledger) holds(n *machine.Node, id driver.TaskID) bool {
	return isThere(n, id, func(p *scripted.Process) bool { return !l.abandoned(p) })
}

// isThere reports whether the cgroup of a start, or a process of it that counts, is on the machine.
func isThere(n *machine.Node, id driver.TaskID, counts func(*scripted.Process) bool) bool {
	alloc, task := split(id)
	if slices.Contains(n.Machine().Cgroups(), string(alloc)+":"+task) {
		return true
	}
	return lives(n, func(p scripted.Process) bool { return p.Task == id && p.Kind != scripted.ShimProcess && counts(&p) })
}

// split returns the allocation and the task of a start.
func split(id driver.TaskID) (cluster.AllocID, string) {
	alloc, rest, _ := strings.Cut(string(id), "/")
	return cluster.AllocID(alloc), rest[:max(0, strings.LastIndexByte(rest, '/'))]
}

// deviceUser judges N8 when a task's process starts.
func (l *ledger) deviceUser(n *machine.Node, id cluster.AllocID, p *scripted.Process) {
	if row := l.alloc(id).row; row != nil {
		assigned, has := assigned(row, taskOf(p)), slices.Sorted(slices.Values(p.Devices))
		if !slices.Equal(assigned, has) {
			l.find("N8 other devices", id, "%s starts with the devices %v, and the servers gave it %v", p.Task, has, assigned)
		}
	}
	if len(p.Devices) == 0 {
		return
	}
	for _, row := range n.Devices().Rows() {
		if slices.Contains(p.Devices, row.Path()) && row.Owner != p.Task {
			l.find("N8 two owners", id, "%s starts with %s, which is reserved for %s", p.Task, row.Path(), row.Owner)
		}
	}
	for other := range n.Machine().EachLiving() {
		if other.Task == p.Task || l.abandoned(&other) {
			continue
		}
		for _, path := range other.Devices {
			if slices.Contains(p.Devices, path) {
				l.find("N8 two owners", id, "%s starts with %s, which process %d of %s uses", p.Task, path, other.PID, other.Task)
			}
		}
	}
}

// assigned returns the device files that the servers assigned to a task, sorted.
func assigned(row *cluster.Allocation, task string) (paths []string) {
	if row.Devices == nil {
		return nil
	}
	for _, d := range row.Devices.All {
		if d.Task == task {
			for _, id := range d.IDs {
				paths = append(paths, devices.Path(d.Kind, id))
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// deviceIsSick reports whether a process uses a device that is not healthy for the client.
func (l *ledger) deviceIsSick(n *machine.Node, p *scripted.Process) bool {
	return slices.ContainsFunc(n.Devices().Rows(), func(row devices.Row) bool {
		return slices.Contains(p.Devices, row.Path()) && !l.healthy(n, row.Kind, row.ID)
	})
}

// devicesAreFree judges N3 for the devices of an allocation that is reported as terminal.
func (l *ledger) devicesAreFree(n *machine.Node, id cluster.AllocID, status cluster.ClientStatus) {
	for _, row := range n.Devices().Rows() {
		if alloc, _ := split(row.Owner); alloc == id && l.holds(n, row.Owner) {
			l.find("N3 not the truth", id, "it is reported as %s, and %s has %s", status, row.Owner, row.Path())
		}
	}
}

// deviceWait is longer than a client needs to give a free device to a task.
const deviceWait = 5 * time.Minute

// settledDevices judges N5 for device plugins, and N8 for free devices for which an allocation
// waits.
func (l *ledger) settledDevices(n *machine.Node) {
	for _, plugin := range n.Devices().Programs() {
		if !lives(n, func(p scripted.Process) bool { return p.Kind == scripted.PluginProcess && p.Command == plugin.Name() }) {
			l.find("N5 a device plugin does not come back", "", "%s has no process", plugin.Name())
		}
	}
	for _, a := range l.order {
		if l.waits(a) && !a.waits && l.now.Sub(a.received) > deviceWait && l.now.Sub(a.waited) > deviceWait && l.couldHave(n, a.id, a) {
			l.find("N8 a free device is not given", a.id, "no task has started, and nothing else has its devices")
		}
	}
}

// waits reports whether an allocation has devices and should run now. An allocation with a prestart
// task may have to wait for that task, so it does not count.
func (l *ledger) waits(a *alloc) bool {
	if a.row == nil || a.row.Devices == nil || a.received.IsZero() || a.stops() || a.ended || a.lost || a.failed {
		return false
	}
	return !slices.ContainsFunc(a.group().Tasks, func(t *cluster.Task) bool { return t != nil && !t.Main() && !t.Poststop() })
}

// couldHave reports whether the allocation has made no start although its devices are healthy and
// free. An allocation may wait for its ports and cores, for its volumes, for the end of the allocation that it replaces, and
// for the end of an allocation whose record was lost: without the record the client has lost
// the devices of that allocation.
func (l *ledger) couldHave(n *machine.Node, id cluster.AllocID, a *alloc) bool {
	for p := range n.Machine().EachLiving() {
		if of, _ := machine.SplitCgroup(p.Cgroup); of != "" && (of == a.row.PreviousAllocation || l.alloc(of).lost) {
			return false
		}
	}
	if isTaken(l.facts, n, a) {
		return false
	}
	for _, q := range a.requests() {
		if s := n.Storage(); s == nil || !published(s, q) {
			return false
		}
	}
	for _, d := range a.row.Devices.All {
		if len(l.starts[string(id)+":"+d.Task]) > 0 || l.taskLives(n, id, d.Task) {
			return false
		}
		for _, dev := range d.IDs {
			if !l.healthy(n, d.Kind, dev) {
				return false
			}
			for _, row := range n.Devices().Rows() {
				owner, _ := split(row.Owner)
				if row.Kind == d.Kind && row.ID == dev && (owner == id || exists(n, row.Owner)) {
					return false
				}
			}
		}
	}
	return true
}
