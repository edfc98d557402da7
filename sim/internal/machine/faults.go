package machine

import (
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// KillClient kills the client. Its drivers and tasks continue to run, and its watchdog counts from
// the last answered heartbeat.
func (n *Node) KillClient() {
	if n.run != nil {
		recordContact(n)
		n.run, n.frozen, n.thawed = nil, false, false
		n.options.Observer.Killed(n)
		n.watchdog.gone()
	}
}

// Freeze stops the process of the client like SIGSTOP. Its drivers, its tasks and its watchdog continue
// to run, and so do the calls that it has made. The servers must not answer heartbeats of a frozen client.
func Freeze(n *Node) {
	if Works(n) {
		postContact(n)
		n.frozen = true
		n.options.Observer.Troubled(n, TroubleFreeze, "")
		n.watchdog.beside()
	}
}

// Thaw continues a client that is frozen.
func Thaw(n *Node) {
	if n.frozen {
		n.options.Observer.Advanced(n) // a deadline may have passed without an event
		n.frozen, n.thawed, n.wakeAt = false, true, n.clock.now
		n.options.Observer.Troubled(n, TroubleFreeze, "")
	}
}

// KillDriver kills the processes of a driver. It reports whether there was one.
func (n *Node) KillDriver(name string) bool {
	p := n.programs[name]
	if p == nil || len(p.Living()) == 0 {
		return false
	}
	n.options.Observer.Troubled(n, TroubleDriver, name)
	for _, d := range p.Living() {
		d.Kill(scripted.ByFault)
	}
	return true
}

// HangDriver makes the processes of a driver hang: calls take effect after the duration.
func (n *Node) HangDriver(name string, d time.Duration) {
	n.hungUntil[name] = n.clock.now.Add(d)
	n.options.Observer.Troubled(n, TroubleDriver, name)
}

// KillShims kills the shims of an allocation's tasks. It reports whether there were any.
func (n *Node) KillShims(id cluster.AllocID) bool {
	found := false
	for _, p := range n.machine.Living() {
		if p.Kind == scripted.ShimProcess && strings.HasPrefix(string(p.Task), string(id)+"/") {
			found = true
			n.options.Observer.Troubled(n, TroubleShim, string(p.Task))
			n.machine.Signal(p.Identity, scripted.SIGKILL, scripted.ByFault)
		}
	}
	return found
}

// Halt kills all processes of the machine, like a power failure. The disk stays.
func (n *Node) Halt() {
	n.KillClient()
	n.options.Observer.Troubled(n, TroubleReboot, "")
	n.contact, n.started = 0, time.Time{}
	n.watchdog.end()
	n.machine.Halt()
	if n.volumes != nil {
		n.volumes.storage.Halt()
	}
}

// Boot starts a machine that was halted, without a client.
func (n *Node) Boot() { n.machine.Boot() }

// FillDisk makes all writes to the disk fail if full is set, and succeed otherwise.
func (n *Node) FillDisk(full bool) {
	n.diskFull = full
	n.options.Observer.Troubled(n, TroubleDisk, "")
}

// LoseRecord removes the record of an allocation from the disk, like a damaged record. Only the
// next client detects it.
func (n *Node) LoseRecord(id cluster.AllocID) {
	delete(n.disk, id)
	n.options.Observer.Troubled(n, TroubleRecord, string(id))
}

// WipeDisk kills the client and removes all that it has on the disk: the records of allocations and
// volumes, the ephemeral disks, the last answered heartbeat, and the notes of its watchdog. Processes, mounts and cgroups stay.
func WipeDisk(n *Node) {
	n.KillClient()
	for _, r := range n.Records() {
		n.LoseRecord(r.Alloc.ID)
	}
	if n.volumes != nil {
		for _, key := range n.volumes.Records() {
			n.volumes.LoseRecord(key)
		}
	}
	for disk := range n.disks.All() {
		n.disks.remove(disk.Alloc)
	}
	n.contact = 0
	clear(n.watchdog.notes)
}

// SplitCgroup returns the allocation and the task of a cgroup.
func SplitCgroup(path string) (alloc cluster.AllocID, task string) {
	a, task, _ := strings.Cut(path, ":")
	return cluster.AllocID(a), task
}
