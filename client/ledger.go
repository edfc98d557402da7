package client

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// ledger says which start of a task holds which devices. It is derived from the records alone, so it is
// the same after a restart of the client: a start holds the devices that the plan gave to its task, from
// the moment when the record names the start until what is left of the start is removed and the record
// says so.
type ledger struct{ core *Core }

// devicesOf returns the devices that the plan gave to a task, one entry for each request.
func devicesOf(t *taskRunner) (given []cluster.AssignedDevice) {
	alloc := t.alloc.rec.Alloc
	if t.alloc.orphan() && t.alloc.pending != nil {
		alloc = t.alloc.pending
	}
	if alloc.Devices == nil {
		return nil
	}
	for _, d := range alloc.Devices.All {
		if d.Task == t.rec.State.Name && len(d.IDs) > 0 {
			given = append(given, d)
		}
	}
	return given
}

// mayExist reports whether a start of the task may have something on the node, by the newest record or by
// the one on the disk, which the next client would read.
func mayExist(t *taskRunner) bool {
	switch t.rec.Phase {
	case PhaseStarting, PhaseRunning, PhaseCleaning:
		return true
	}
	return !t.durable()
}

// await reports whether a start of the task must wait for its devices, and notes what it waits for.
func (l ledger) await(t *taskRunner) bool {
	wanted := devicesOf(t)
	if len(wanted) == 0 {
		return false
	}
	if holder, id := l.holder(t, wanted); holder != nil {
		t.waitFor(cluster.WaitDevice, 0, fmt.Sprintf("the device %s is held by task %s of allocation %s", id, holder.rec.State.Name, holder.alloc.id()))
		return true
	}
	for _, d := range wanted {
		if away := l.core.devices.away(d.Kind); away != "" {
			t.waitFor(cluster.WaitDevice, 0, away)
			return true
		}
	}
	return false
}

// holder returns another task that holds one of the devices, and which one, or nil. An orphan whose
// allocation is not known may hold any.
func (l ledger) holder(t *taskRunner, wanted []cluster.AssignedDevice) (*taskRunner, string) {
	for _, a := range l.core.allocs {
		if a.rec.Alloc.Devices == nil && !a.orphan() {
			continue
		}
		for _, other := range a.tasks {
			if other == t || !mayExist(other) {
				continue
			}
			if a.orphan() && a.pending == nil {
				return other, deviceName(wanted[0].Kind, wanted[0].IDs[0])
			}
			for _, held := range devicesOf(other) {
				if id := l.shared(wanted, held); id != "" {
					return other, deviceName(held.Kind, id)
				}
			}
		}
	}
	return nil, ""
}

// shared returns the id of a device that is in both, or nothing.
func (l ledger) shared(wanted []cluster.AssignedDevice, held cluster.AssignedDevice) string {
	for _, w := range wanted {
		for _, id := range w.IDs {
			if slices.Contains(held.IDs, id) && l.alike(w.Kind, held.Kind) {
				return id
			}
		}
	}
	return ""
}

// alike reports whether one id may name one device in both kinds. A plugin is asked for ids and not for
// kinds, and its newer version may name a kind otherwise.
func (l ledger) alike(wanted, held cluster.DeviceKind) bool {
	if wanted == held {
		return true
	}
	has, _ := l.core.devices.find(wanted)
	had, _ := l.core.devices.find(held)
	return has != nil && (had == nil || had == has)
}

// deviceName is a device as operators see it.
func deviceName(kind cluster.DeviceKind, id string) string { return kind.String() + "/" + id }

// waitsForDevices reports whether a task waits for a device.
func (a *allocRunner) waitsForDevices() bool {
	return slices.ContainsFunc(a.tasks, func(t *taskRunner) bool { return t.wait.kind == cluster.WaitDevice })
}
