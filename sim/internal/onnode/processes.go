package onnode

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// grace is a task process that got its kill signal.
type grace struct {
	process scripted.Identity
	alloc   cluster.AllocID
	// until is the latest time of SIGKILL. life is the number of the client that must ensure this.
	// watchdog: after the death of that client its watchdog must ensure it.
	until    time.Time
	life     int
	watchdog bool
}

// bounded limits a wait of a job to a century, so that sums do not overflow.
func bounded(d time.Duration) time.Duration { return min(d, 100*365*24*time.Hour) }

// killLate is how long after the grace SIGKILL must come. A client destroys a contained task later, because
// its driver should kill it, and loses the exit code if it is destroyed.
func killLate(p *scripted.Process) time.Duration {
	if p.Contained {
		return 6 * time.Second
	}
	return time.Second
}

// tasks judges the processes of a node: N1, N2 and N5. It is part of a [Judge].
type tasks struct {
	*facts
	devices *ledger
	volumes *porter
	graces  []grace
	// causeless are the kill signals without a known cause.
	causeless []causeless
	// lives counts the clients.
	lives int
	// launches are the last starts of each driver by the present client.
	launches map[string][]scripted.Identity
}

// Advanced implements [machine.Observer].
func (j *Judge) Advanced(n *machine.Node) {
	j.now = n.Now()
	m := n.Machine()
	j.tasks.noteAway(n)
	j.tasks.noteLongest(n)
	changes := m.Changes(j.changes)
	j.changes += len(changes)
	for _, c := range changes {
		p, _ := m.Process(c.Process)
		switch p.Kind {
		case scripted.TaskProcess:
			j.tasks.taskChanged(n, c, &p)
		case scripted.DriverProcess, scripted.PluginProcess:
			j.tasks.pluginChanged(n, c, &p)
		}
	}
	j.volumes.volumesChanged(n)
	j.tasks.checkGraces(n)
	j.tasks.checkCauses(n)
	j.tasks.checkLongest(n)
	verdicts{j}.check(n)
}

func (j *tasks) taskChanged(n *machine.Node, c scripted.Change, p *scripted.Process) {
	id, task := machine.SplitCgroup(p.Cgroup)
	switch {
	case c.What == scripted.Started:
		j.taskStarted(n, id, p)
	case c.What == scripted.Signalled && c.Signal != scripted.SIGKILL && (c.By == scripted.ByDriver || c.By == scripted.ByWatchdog):
		if first, _ := p.Signalled(c.Signal); first.At.Equal(c.At) && p.Signals[0].Signal == c.Signal {
			j.taskSignalled(n, id, task, p, c.By == scripted.ByWatchdog)
		}
	case c.What == scripted.Signalled && c.Signal == scripted.SIGKILL && (c.By == scripted.ByDriver || c.By == scripted.ByClient || c.By == scripted.ByWatchdog):
		if first, _ := p.Signalled(scripted.SIGKILL); first.At.Equal(c.At) && first.By == c.By {
			j.taskKilled(n, id, task, p)
		}
	}
}

// taskStarted judges N1 and N3 when a task's process starts.
func (j *tasks) taskStarted(n *machine.Node, id cluster.AllocID, p *scripted.Process) {
	a := j.alloc(id)
	j.starts[p.Cgroup] = append(j.starts[p.Cgroup], p.Identity)
	a.longest.began(p.StartedAt)
	for other := range n.Machine().EachLivingIn(p.Cgroup) {
		if other.Task != p.Task && !j.abandoned(&other) {
			j.find("N1 second copy", id, "%s starts while process %d of %s lives", p.Task, other.PID, other.Task)
		}
	}
	if t := a.task(taskOf(p)); t != nil {
		a.began(t)
	}
	if !names(n.Record(id), p.Task) && !a.lost {
		j.find("N1 no record", id, "%s starts, and no record on the disk names it", p.Task)
	}
	if a.ended && !j.diskFails(n) {
		j.find("N3 starts after its end", id, "%s starts after the allocation was reported as terminal", p.Task)
	}
	j.devices.deviceUser(n, id, p)
	portUser(j.facts, n, id, p)
	coreUser(j.facts, n, id, p)
	j.volumes.volumesAreThere(n, a, p)
	if t := a.task(taskOf(p)); t != nil && t.Poststop() {
		for _, other := range a.group().Tasks {
			if other != nil && !other.Poststop() && j.taskLives(n, id, other.Name) {
				j.find("N2 order", id, "the poststop task %s starts while %s runs", t.Name, other.Name)
			}
		}
	}
}

func taskOf(p *scripted.Process) string {
	_, task := machine.SplitCgroup(p.Cgroup)
	return task
}

// names reports whether a record names a start.
func names(r *client.Record, id driver.TaskID) bool {
	return r != nil && slices.ContainsFunc(r.Tasks, func(t client.TaskRecord) bool { return t.ID == id })
}

// place is the position of a task in the order in which an allocation stops.
func place(t *cluster.Task) int {
	switch {
	case t.Poststop():
		return 3
	case t.Sidecar():
		return 2
	case t.Leader:
		return 0
	}
	return 1
}

// taskSignalled judges N2 when a task gets its kill signal.
func (j *tasks) taskSignalled(n *machine.Node, id cluster.AllocID, name string, p *scripted.Process, watchdog bool) {
	a := j.alloc(id)
	j.volumes.storageStops(n, a, p)
	task := a.task(name)
	if task == nil {
		return
	}
	j.graces = append(j.graces, grace{process: p.Identity, alloc: id, until: j.now.Add(bounded(task.KillTimeout) + killLate(p)), life: j.lives, watchdog: watchdog})
	alone := a.restarts(n, p) && len(a.restarting(task)) > 0
	for _, other := range a.group().Tasks {
		if other != nil && !alone && place(other) < place(task) && j.taskRuns(n, id, other.Name) {
			j.find("N2 order", id, "%s must stop before %s, which runs", name, other.Name)
		}
	}
	if j.mustStop(n, id, a, task, p) {
		return
	}
	c := causeless{process: p.Identity, alloc: id, sick: j.devices.deviceIsSick(n, p), until: j.now.Add(saveWait), life: j.lives}
	if watchdog { // it saves no records
		// A client without a record of the allocation does not pass its contacts on, so they are not known here.
		if !a.lost {
			j.noCause(n, c)
		}
		return
	}
	j.causeless = append(j.causeless, c)
}

// causeless is a kill signal without a known cause. The client may have decided that another task
// has failed, and may be saving the record of that.
type causeless struct {
	process scripted.Identity
	alloc   cluster.AllocID
	// sick: one of the devices of the process was unhealthy or gone.
	sick  bool
	until time.Time
	life  int
}

// saveWait is longer than a client needs to save a record while it saves an earlier version of it.
const saveWait = 10 * time.Millisecond

// checkCauses judges kill signals without a cause when a record of the cause would be on the disk.
// A cause that the client could not save is unknown.
func (j *tasks) checkCauses(n *machine.Node) {
	j.causeless = slices.DeleteFunc(j.causeless, func(c causeless) bool {
		switch r := n.Record(c.alloc); {
		case n.DiskFull() || !machine.Works(n) || j.lives != c.life,
			r != nil && slices.ContainsFunc(r.Tasks, func(t client.TaskRecord) bool { return t.State.Failed && !j.wasSignalled(n, c.alloc, t.State.Name) }):
			return true
		case !j.now.After(c.until):
			return false
		}
		j.noCause(n, c)
		return true
	})
}

func (f *facts) noCause(n *machine.Node, c causeless) {
	p, _ := n.Machine().Process(c.process)
	if c.sick {
		f.find("N8 a device is taken away", c.alloc, "%s got its kill signal at %s, and one of its devices %v is unhealthy or gone", p.Task, p.Signals[0].At, p.Devices)
		return
	}
	f.find("N2 stops without cause", c.alloc, "%s got its kill signal at %s; the stop reached the client at %s", p.Task, p.Signals[0].At, f.alloc(c.alloc).stopAt)
}

// wasSignalled reports whether the last process of a task got a signal, so that its end may be the
// effect of that.
func (f *facts) wasSignalled(n *machine.Node, id cluster.AllocID, task string) bool {
	starts := f.starts[string(id)+":"+task]
	if len(starts) == 0 {
		return false
	}
	p, _ := n.Machine().Process(starts[len(starts)-1])
	return len(p.Signals) > 0
}

// mustStop reports whether the delays before a task's kill signal are over.
func (j *tasks) mustStop(n *machine.Node, id cluster.AllocID, a *alloc, task *cluster.Task, p *scripted.Process) bool {
	group, own := bounded(a.group().ShutdownDelay), bounded(task.ShutdownDelay)
	if a.row.DesiredTransition.NoShutdownDelay {
		group, own = 0, 0
	}
	for _, at := range []time.Time{a.stopAt, a.awayAt} {
		if !at.IsZero() && !j.now.Before(at.Add(group+own)) {
			return true
		}
	}
	if task.Poststop() {
		return !j.now.Before(p.StartedAt.Add(cluster.PoststopLimit))
	}
	for _, other := range a.group().Tasks {
		if other == nil || other == task { // it would not run if its own end were the cause
			continue
		}
		for _, start := range j.starts[string(id)+":"+other.Name] {
			if q, _ := n.Machine().Process(start); q.Ended && !j.now.Before(q.EndedAt.Add(own)) {
				return true
			}
		}
	}
	r := n.Record(id)
	return n.DiskFull() || a.failed || a.restarts(n, p) && j.mayRestart(a, task, p) || r != nil && slices.ContainsFunc(r.Tasks, func(t client.TaskRecord) bool { return t.State.Failed }) || a.longest.overruns(j.now, group+own)
}

// stopSlack is longer than a client waits for a driver that is down, after the grace.
const stopSlack = time.Minute

// taskKilled judges N2 when a client or driver kills a task.
func (j *tasks) taskKilled(n *machine.Node, id cluster.AllocID, name string, p *scripted.Process) {
	a := j.alloc(id)
	task := a.task(name)
	if task == nil || a.lost {
		return
	}
	if !j.calledLost(n, id, p) && !isStarting(n, id, p) {
		j.volumes.storageStops(n, a, p)
	}
	if first := p.Signals[0]; first.Signal != scripted.SIGKILL && !j.now.Before(first.At.Add(bounded(task.KillTimeout))) {
		return
	}
	if c := p.Signals[len(p.Signals)-1]; c.By == scripted.ByWatchdog && j.overdue(a, task) {
		return
	}
	if j.calledLost(n, id, p) || driverDown(n, p.Driver) || j.driverAway(bounded(task.KillTimeout)+stopSlack) || j.signalLost(n, a, id, p) {
		return
	}
	j.find("N2 killed before the end of its grace", id, "%s got SIGKILL; its kill timeout is %s and its signals were %v", p.Task, task.KillTimeout, p.Signals)
}

// driverDown reports whether no process of the driver lives. A client waits longer and longer
// before it starts a driver that dies at each start, and a driver that is down sends no signal.
func driverDown(n *machine.Node, name string) bool {
	return !lives(n, func(p scripted.Process) bool { return p.Kind == scripted.DriverProcess && p.Driver == name })
}

// overdue reports whether a task that must stop without servers should have ended before. A
// watchdog then kills it with its signal.
func (j *tasks) overdue(a *alloc, task *cluster.Task) bool {
	return !a.awayAt.IsZero() && !j.now.Before(a.awayAt.Add(bounded(a.group().ShutdownDelay)+bounded(task.ShutdownDelay)+bounded(task.KillTimeout)))
}

// calledLost reports whether the record states that the client could not keep a start.
func (j *tasks) calledLost(n *machine.Node, id cluster.AllocID, p *scripted.Process) bool {
	if !j.excused(p) {
		return false
	}
	r := n.Record(id)
	return j.diskFails(n) || r != nil && slices.ContainsFunc(r.Tasks, func(t client.TaskRecord) bool {
		return t.ID == p.Task && t.Phase == client.PhaseCleaning && t.End == client.EndLost
	})
}

// isStarting reports whether no record states that a start has succeeded, so that a later client
// does not keep it.
func isStarting(n *machine.Node, id cluster.AllocID, p *scripted.Process) bool {
	r := n.Record(id)
	return r != nil && slices.ContainsFunc(r.Tasks, func(t client.TaskRecord) bool { return t.ID == p.Task && t.Phase == client.PhaseStarting })
}

// signalLost reports whether a client has called a driver for the signal, and the driver had
// trouble since the task had to stop. The grace counts from that request, also while no client
// runs.
func (j *tasks) signalLost(n *machine.Node, a *alloc, id cluster.AllocID, p *scripted.Process) bool {
	since := a.stopAt
	if since.IsZero() {
		since = a.longest.endAt
	}
	if since.IsZero() || j.trouble.driver.Before(since) {
		return false
	}
	r := n.Record(id)
	return r != nil && slices.ContainsFunc(r.Tasks, func(t client.TaskRecord) bool { return t.ID == p.Task && t.SignalAt != 0 })
}

// checkGraces judges N2 when the grace of tasks is over.
func (j *tasks) checkGraces(n *machine.Node) {
	j.graces = slices.DeleteFunc(j.graces, func(g grace) bool {
		if !j.now.After(g.until) {
			return false
		}
		p, _ := n.Machine().Process(g.process)
		kill, killed := p.Signalled(scripted.SIGKILL)
		onTime := p.Ended && !p.EndedAt.After(g.until) || killed && !kill.At.After(g.until)
		refused := !j.trouble.kernel.Before(g.until.Add(-killLate(&p))) // and the next attempt is a second later
		if !onTime && !refused && machine.Works(n) != g.watchdog && j.lives == g.life && !j.abandoned(&p) {
			j.find("N2 not killed after its grace", g.alloc, "%s lives %s after its grace", p.Task, killLate(&p))
		}
		return true
	})
}

// pluginChanged judges N5 for drivers and device plugins.
func (j *tasks) pluginChanged(n *machine.Node, c scripted.Change, p *scripted.Process) {
	if c.What == scripted.Ended && p.Kind == scripted.DriverProcess {
		j.trouble.driver = j.now
	}
	if c.What != scripted.Started || !n.Running() {
		return
	}
	for other := range n.Machine().EachLiving() {
		if other.Kind == p.Kind && other.Command == p.Command && other.Identity != p.Identity {
			j.find("N5 two drivers", "", "%s starts while its process %d lives", p.Command, other.PID)
		}
	}
	name := p.Kind.String() + " " + p.Command
	last := append(j.launches[name], p.Identity)
	last = last[max(0, len(last)-3):]
	j.launches[name] = last
	if len(last) < 3 {
		return
	}
	const least, lived = 5 * time.Second, 2 * time.Minute
	first, _ := n.Machine().Process(last[0])
	if first.EndedAt.Sub(first.StartedAt) < lived && p.StartedAt.Sub(first.StartedAt) < least {
		j.find("N5 starts in a loop", "", "%s was started three times in %s", p.Command, p.StartedAt.Sub(first.StartedAt))
	}
}
