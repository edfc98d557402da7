package onnode

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// noteAway records which allocations the client, or the watchdog of a dead or frozen client, must stop
// because no client has reached the servers for the time that their group sets. A client has no
// allocation without a record.
func (j *tasks) noteAway(n *machine.Node) {
	var contact time.Time
	for _, a := range j.order {
		if a.leash <= 0 || !a.awayAt.IsZero() || n.Running() && n.Record(a.id) == nil {
			continue
		}
		if contact.IsZero() {
			contact = n.LastContact()
		}
		// A client that sends its heartbeats in time is not away.
		limit := max(a.leash, min(machine.TTL(n), a.leash+patience))
		if deadline := contact.Add(limit); !j.now.Before(deadline) {
			a.awayAt = deadline
		}
	}
}

// patience is by how much the time until the next heartbeat lengthens a stop_on_client_after, at most.
const patience = 30 * time.Second

// awaySlack is how long after the stop time of an allocation its tasks may still run, if its client
// had to stop it.
const awaySlack = time.Minute

// Still judges N2 in a pause without events: an allocation must stop while its node is cut off, or
// without a client, for too long. It does not judge nodes that had trouble meanwhile. The death of
// the client is no such trouble while no client works. A watchdog does not reach a container.
func (j *Judge) Still(now time.Time, n *machine.Node) {
	j.now = now
	j.tasks.checkLongest(n)
	if machine.Works(n) && n.Reachable() || n.DiskFull() {
		return
	}
	for _, a := range j.order {
		if a.awayAt.IsZero() || a.lost || a.row == nil || !j.now.After(a.awayAt.Add(bounded(a.row.StopTime())+a.hold(n)+awaySlack)) || j.tasks.awayExcused(n, a) {
			continue
		}
		for p := range n.Machine().EachLiving() {
			if of, _ := machine.SplitCgroup(p.Cgroup); of == a.id && p.Kind == scripted.TaskProcess && !p.Stuck && (machine.Works(n) || !p.Contained) {
				j.find("N2 runs while its node is away", a.id, "process %d of %s lives; the client had to stop it at %s", p.PID, p.Task, a.awayAt)
			}
		}
	}
}

// awayExcused reports whether trouble can be the reason that an allocation still runs. A watchdog
// needs no driver, and kills what a driver starts late. After a full disk the next client may have
// missed what a watchdog has stopped, and may have started it again.
func (j *tasks) awayExcused(n *machine.Node, a *alloc) bool {
	from := a.awayAt.Add(-startTakes)
	if !machine.Works(n) {
		return j.trouble.disk.After(from)
	}
	return j.since.After(a.awayAt) || j.trouble.since(from)
}

// Excused reports whether the node can be the reason that a process of an allocation runs although
// the servers have its end, or rely on the node to have stopped it: the process cannot die, the
// record of the allocation was lost, only a driver with trouble could end it, or there was trouble
// when the node had to stop it by itself. A watchdog does not reach a container.
func (j *Judge) Excused(n *machine.Node, p scripted.Process) bool {
	if stuck(n, p) || j.abandoned(&p) || n.DiskFull() || p.Contained && !machine.Works(n) {
		return true
	}
	id, _ := machine.SplitCgroup(p.Cgroup)
	a := j.allocs[id]
	return a != nil && (a.lost || !a.awayAt.IsZero() && j.tasks.awayExcused(n, a))
}

// since reports whether trouble occurred after a time.
func (t trouble) since(from time.Time) bool {
	return slices.ContainsFunc([]time.Time{t.client, t.driver, t.shim, t.boot, t.disk}, func(at time.Time) bool { return at.After(from) })
}

// stuck reports whether a process of p's allocation cannot die.
func stuck(n *machine.Node, p scripted.Process) bool {
	id, _ := machine.SplitCgroup(p.Cgroup)
	return lives(n, func(q scripted.Process) bool {
		of, _ := machine.SplitCgroup(q.Cgroup)
		return q.Stuck && of == id
	})
}
