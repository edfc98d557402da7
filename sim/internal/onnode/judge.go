package onnode

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// maxViolations is the largest number of violations that a judge keeps.
const maxViolations = 20

// Judge judges the clients of one node. Create it with [New] and use it as the observer of the
// node. It never changes what it reads.
type Judge struct {
	*facts
	tasks   *tasks
	devices *ledger
	volumes *porter
	effects *effects

	// cluster and index name the newest answer of the servers that a client must obey.
	cluster string
	index   uint64
	// changes is the number of changes of the process table that are judged already.
	changes int
	// away: the servers have not answered lately.
	away bool
	// checked is when the verdicts were last checked.
	checked time.Time
}

var _ machine.Observer = (*Judge)(nil)

// alloc is a judge's state of an allocation.
type alloc struct {
	id  cluster.AllocID
	row *cluster.Allocation
	// received is when a client first received it in this boot, and stopAt is when a client was
	// first received its stop.
	received, stopAt time.Time
	// lastStopAt is the time of the last stop that the client received.
	lastStopAt time.Time
	// leash is how long it may run while its client does not reach the servers. Zero means no
	// limit.
	leash time.Duration
	// awayAt is when a client had to stop it because of leash, or zero.
	awayAt  time.Time
	longest longest
	// waits: its record states that it waits for the data of an ephemeral disk. waited is when such a wait ended.
	waits  bool
	waited time.Time
	// endTaken: the servers have taken a report of its end.
	endTaken bool
	// ended: it was reported as terminal. lost: its record was lost. judged: it has a verdict.
	// failed: a task was reported as failed.
	ended, lost, judged, failed bool
	health                      health
	// terminated and unreserved are the times of the events that were judged, by task.
	terminated, unreserved map[string]time.Time
	// toRestart are the starts that restart, by the last record before its loss.
	toRestart []driver.TaskID
	// results are those of its checks, by name.
	results map[string]results
}

// trouble are the times of the last faults.
type trouble struct{ client, driver, shim, boot, disk, devices, kernel time.Time }

// New returns a judge of a node.
func New(node cluster.NodeID) *Judge {
	f := &facts{node: node, allocs: map[cluster.AllocID]*alloc{}, starts: map[string][]scripted.Identity{}}
	devices, volumes := &ledger{facts: f, reported: map[string][]*cluster.DeviceGroup{}}, &porter{facts: f, lost: map[string]bool{}}
	return &Judge{
		facts: f, devices: devices, volumes: volumes, effects: &effects{facts: f, counts: map[effect]int{}},
		tasks: &tasks{facts: f, devices: devices, volumes: volumes, launches: map[string][]scripted.Identity{}},
	}
}

// update stores the row of the servers.
func (a *alloc) update(row *cluster.Allocation) {
	a.row = row
	a.leash = bounded(a.group().Disconnect.StopOnClientAfter)
}

// group returns the task group of an allocation, or an empty one.
func (a *alloc) group() *cluster.TaskGroup {
	if a.row != nil {
		if g := a.row.Job.Group(a.row.TaskGroup); g != nil {
			return g
		}
	}
	return &cluster.TaskGroup{}
}

// task returns a task of the allocation, or nil.
func (a *alloc) task(name string) *cluster.Task {
	for _, t := range a.group().Tasks {
		if t != nil && t.Name == name {
			return t
		}
	}
	return nil
}

// Started implements [machine.Observer].
func (j *Judge) Started(n *machine.Node) {
	j.now = n.Now()
	j.since = j.now
	j.tasks.lives++
	clear(j.tasks.launches)
	clear(j.devices.reported)
	for _, r := range n.Records() { // the records of allocations that ran at the start of the simulation
		if a := j.alloc(r.Alloc.ID); a.row == nil {
			a.update(r.Alloc)
			a.received, a.judged, a.health.good = j.now, r.Healthy != nil, r.Healthy
		}
	}
	boot := n.BootID()
	for _, a := range j.order { // a client has no allocation without a record
		clear(a.results)
		if r := n.Record(a.id); r == nil {
			a.received = time.Time{}
		} else if r.BootID != boot {
			a.received = j.now
		}
	}
}

// Killed implements [machine.Observer].
func (j *Judge) Killed(n *machine.Node) {
	j.now = n.Now()
	j.since, j.trouble.client = time.Time{}, j.now
}

// Received implements [machine.Observer].
func (j *Judge) Received(n *machine.Node, w client.Changes) {
	j.now = n.Now()
	if j.cluster == "" {
		j.cluster = w.ClusterID
	}
	if w.ClusterID != j.cluster || w.Index < j.index {
		return // the client must ignore this answer
	}
	j.index = w.Index
	if j.away {
		j.away, j.blocked = false, j.now
	}
	for _, row := range w.Allocs {
		if a := j.alloc(row.ID); row.NodeID == j.node {
			a.update(row)
			if a.received.IsZero() {
				a.received = j.now
			}
			a.judged = a.judged || row.HasVerdict()
			if row.ServerTerminal() {
				a.stop(j.now)
			}
		}
	}
	if !w.Complete {
		return
	}
	listed := map[cluster.AllocID]bool{}
	for _, id := range w.Known {
		listed[id] = true
	}
	for _, a := range j.order {
		if !listed[a.id] {
			a.stop(j.now)
		}
	}
}

// Stopped reports whether a client has received the stop of an allocation.
func Stopped(j *Judge, id cluster.AllocID) bool {
	return j.allocs[id] != nil && !j.allocs[id].stopAt.IsZero()
}

// stop records that a client receives the stop of the allocation.
func (a *alloc) stop(now time.Time) {
	a.lastStopAt = now
	if a.stopAt.IsZero() {
		a.stopAt = now
	}
}

// Troubled implements [machine.Observer].
func (j *Judge) Troubled(n *machine.Node, kind machine.Trouble, subject string) {
	j.now = n.Now()
	switch kind {
	case machine.TroubleReboot:
		j.trouble.boot = j.now
		for _, a := range j.order {
			a.received, a.health.trueAt, a.longest = time.Time{}, time.Time{}, longest{}
		}
	case machine.TroubleFreeze:
		j.blocked = j.now
		j.tasks.lives++ // what it had begun takes longer
		switch frozenAt := j.trouble.client; {
		case !machine.Works(n):
			j.trouble.client = j.now
		case !j.trouble.driver.IsZero() && !j.trouble.driver.Before(frozenAt.Add(-stopSlack)):
			j.trouble.driver = j.now // the client had no time to wait for the driver
		}
	case machine.TroubleDriver:
		j.trouble.driver = j.now
	case machine.TroubleShim:
		j.trouble.shim = j.now
	case machine.TroubleDisk:
		j.trouble.disk, j.blocked = j.now, j.now
	case machine.TroubleRecord:
		a := j.alloc(cluster.AllocID(subject))
		a.lost, a.ended, a.health = true, false, health{}
	case machine.TroubleVolumeRecord:
		j.volumes.lost[subject] = true
	case machine.TroubleDevices:
		j.trouble.devices = j.now
	case machine.TroubleKernel:
		j.trouble.kernel = j.now
	case machine.TroubleStorage: // tasks and drivers are not affected
	}
}

// startTakes is longer than a driver may take to start a task.
const startTakes = 3 * time.Minute

// excused reports whether trouble can be the reason for a present event of a process.
func (f *facts) excused(p *scripted.Process) bool {
	from := p.StartedAt.Add(-startTakes)
	for _, at := range []time.Time{f.trouble.client, f.trouble.driver, f.trouble.shim, f.trouble.boot} {
		if !at.IsZero() && !at.Before(from) {
			return true
		}
	}
	return false
}

// abandoned reports whether a process is in a container whose driver had trouble in the life of the
// process. Only the driver can end the process, and its table may not contain it.
func (f *facts) abandoned(p *scripted.Process) bool {
	return p.Contained && !f.trouble.driver.IsZero() && !f.trouble.driver.Before(p.StartedAt.Add(-startTakes))
}

// driverAway reports whether a driver had trouble in the last duration.
func (f *facts) driverAway(d time.Duration) bool {
	return !f.trouble.driver.IsZero() && !f.trouble.driver.Before(f.now.Add(-d))
}

// diskFails reports whether records may be missing because of a full disk.
func (f *facts) diskFails(n *machine.Node) bool { return n.DiskFull() || !f.trouble.disk.IsZero() }
