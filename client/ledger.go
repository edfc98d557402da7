package client

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// ledger states which start of a task holds which devices, ports and cores. It is derived only from the records, so
// it is the same after a restart of the client. A start holds the devices that the plan assigned to
// its task, and the ports and cores of its allocation. It holds them from the moment when the record names the start, until the remains of the
// start are removed and the record states it.
type ledger struct{ core *Core }

// devicesOf returns the devices that the plan assigned to a task, with one entry for each request.
func devicesOf(t *taskRunner) (assigned []cluster.AssignedDevice) {
	alloc := t.alloc.rec.Alloc
	if t.alloc.orphan() && t.alloc.pending != nil {
		alloc = t.alloc.pending
	}
	if alloc.Devices == nil {
		return nil
	}
	for _, d := range alloc.Devices.All {
		if d.Task == t.rec.State.Name && len(d.IDs) > 0 {
			assigned = append(assigned, d)
		}
	}
	return assigned
}

// mayHold reports whether a start of the task may have something on the node. Both the
// newest record and the record on the disk count, because the next client reads the record on the
// disk.
func mayHold(t *taskRunner) bool {
	switch t.rec.Phase {
	case PhaseStarting, PhaseRunning, PhaseCleaning:
		return true
	}
	return !t.durable()
}

// mustWait reports whether a start of the task must wait for its ports, cores and devices, and sets what it waits
// for.
func (l ledger) mustWait(t *taskRunner) bool {
	for _, numbers := range []struct {
		kind cluster.WaitKind
		of   func(*cluster.Allocation) []int
	}{{cluster.WaitPort, portsOf}, {cluster.WaitCore, coresOf}} {
		if holder, number := l.numberHolder(t, numbers.of); holder != nil {
			t.waits.set(numbers.kind, 0, fmt.Sprintf("the %s %d is held by task %s of allocation %s", numbers.kind, number, holder.rec.State.Name, holder.alloc.id()))
			return true
		}
	}
	needed := devicesOf(t)
	if len(needed) == 0 {
		return false
	}
	if holder, id := l.holder(t, needed); holder != nil {
		t.waits.set(cluster.WaitDevice, 0, fmt.Sprintf("the device %s is held by task %s of allocation %s", id, holder.rec.State.Name, holder.alloc.id()))
		return true
	}
	for _, d := range needed {
		if reason := l.core.devices.waitReason(d.Kind); reason != "" {
			t.waits.set(cluster.WaitDevice, 0, reason)
			return true
		}
	}
	return false
}

// holder returns another task that holds one of the devices and the name of this device, or nil. An
// orphan without a known allocation may hold any device.
func (l ledger) holder(t *taskRunner, needed []cluster.AssignedDevice) (*taskRunner, string) {
	for _, a := range l.core.allocs {
		if a.rec.Alloc.Devices == nil && !a.orphan() {
			continue
		}
		for _, other := range a.tasks {
			if other == t || !mayHold(other) {
				continue
			}
			if a.orphan() && a.pending == nil {
				return other, deviceName(needed[0].Kind, needed[0].IDs[0])
			}
			for _, held := range devicesOf(other) {
				if id := l.shared(needed, held); id != "" {
					return other, deviceName(held.Kind, id)
				}
			}
		}
	}
	return nil, ""
}

// shared returns the id of a device that is in both, or "".
func (l ledger) shared(needed []cluster.AssignedDevice, held cluster.AssignedDevice) string {
	for _, w := range needed {
		for _, id := range w.IDs {
			if slices.Contains(held.IDs, id) && l.mayBeSame(w.Kind, held.Kind) {
				return id
			}
		}
	}
	return ""
}

// mayBeSame reports whether the same id in both kinds may be the same device. Reserve gets ids but
// no kinds, and a newer version of a plugin may rename a kind.
func (l ledger) mayBeSame(needed, held cluster.DeviceKind) bool {
	if needed == held {
		return true
	}
	has, _ := l.core.devices.find(needed)
	had, _ := l.core.devices.find(held)
	return has != nil && (had == nil || had == has)
}

// deviceName is the name of a device for operators.
func deviceName(kind cluster.DeviceKind, id string) string { return kind.String() + "/" + id }

// waitsFor reports whether a task waits for a thing of the kind.
func (a *allocRunner) waitsFor(kind cluster.WaitKind) bool {
	return slices.ContainsFunc(a.tasks, func(t *taskRunner) bool { return t.waits.present.kind == kind })
}

// portsOf returns the ports that the plan assigned to an allocation.
func portsOf(a *cluster.Allocation) (ports []int) {
	if a.Ports != nil {
		for _, p := range a.Ports.All {
			ports = append(ports, p.Number)
		}
	}
	return ports
}

// coresOf returns the cores that the plan assigned to an allocation.
func coresOf(a *cluster.Allocation) (cores []int) {
	if a.Cores != nil {
		for _, t := range a.Cores.All {
			cores = append(cores, t.Cores...)
		}
	}
	return cores
}

// numberHolder returns a task of another allocation that may hold a port or core of the task's allocation, and its
// number, or nil. An orphan without a known allocation may hold any.
func (l ledger) numberHolder(t *taskRunner, of func(*cluster.Allocation) []int) (*taskRunner, int) {
	needed := of(t.alloc.known())
	if len(needed) == 0 {
		return nil, 0
	}
	for _, a := range l.core.allocs {
		if a == t.alloc {
			continue
		}
		held := of(a.known())
		i := slices.IndexFunc(needed, func(number int) bool { return slices.Contains(held, number) })
		if a.orphan() && a.pending == nil {
			i = 0
		}
		if i < 0 {
			continue
		}
		if k := slices.IndexFunc(a.tasks, mayHold); k >= 0 {
			return a.tasks[k], needed[i]
		}
	}
	return nil, 0
}

// known returns the allocation: that of its record, and of an orphan that of the servers if they list it.
func (a *allocRunner) known() *cluster.Allocation {
	if a.orphan() && a.pending != nil {
		return a.pending
	}
	return a.rec.Alloc
}
