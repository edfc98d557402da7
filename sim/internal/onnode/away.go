package onnode

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// noteAway notes the allocations that the client must stop because it has not reached the servers for as
// long as their group allows.
func (j *Judge) noteAway(n *machine.Node) {
	if !n.Running() {
		return
	}
	for _, id := range j.order {
		a := j.allocs[id]
		after := a.group().Disconnect.StopOnClientAfter
		if after > 0 && a.awayAt.IsZero() && !j.now.Before(n.LastContact().Add(bounded(after))) {
			a.awayAt = j.now
		}
	}
}

// awaySlack is how long beyond the stop time of an allocation its tasks may live after its client had to
// stop it.
const awaySlack = time.Minute

// checkAway judges N2: an allocation stops while its node is away for too long. It does not judge nodes
// with trouble on the way.
func (j *Judge) checkAway(n *machine.Node) {
	if n.Reachable() || !n.Running() || n.DiskFull() {
		return
	}
	for _, id := range j.order {
		a := j.allocs[id]
		if a.awayAt.IsZero() || a.lost || a.row == nil || !j.now.After(a.awayAt.Add(bounded(a.row.StopTime())+awaySlack)) || j.troubledSince(a.awayAt.Add(-startTakes)) {
			continue
		}
		for _, p := range n.Machine().Living() {
			if of, _ := machine.SplitCgroup(p.Cgroup); of == id && p.Kind == scripted.TaskProcess && !j.stuck(n, p) {
				j.find("N2", "runs while its node is away", id, "process %d of %s lives; the client had to stop it at %s", p.PID, p.Task, a.awayAt)
			}
		}
	}
}

// Still judges a node in a pause in which nothing has happened.
func (j *Judge) Still(now time.Time, n *machine.Node) {
	j.now = now
	j.checkAway(n)
}

// troubledSince reports whether a fault has disturbed the client, its drivers or their tasks since a time.
func (j *Judge) troubledSince(from time.Time) bool {
	return j.since.After(from) || slices.ContainsFunc([]time.Time{j.trouble.client, j.trouble.driver, j.trouble.shim, j.trouble.boot, j.trouble.disk},
		func(at time.Time) bool { return at.After(from) })
}

// stuck reports whether a process of the allocation of another one cannot die. Later tasks wait for it.
func (j *Judge) stuck(n *machine.Node, p scripted.Process) bool {
	id, _ := machine.SplitCgroup(p.Cgroup)
	return slices.ContainsFunc(n.Machine().Living(), func(q scripted.Process) bool {
		of, _ := machine.SplitCgroup(q.Cgroup)
		return q.Stuck && of == id
	})
}
