package onnode

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// Saved implements [machine.Observer].
func (j *Judge) Saved(n *machine.Node, r *client.Record) {
	j.now = n.Now()
	a := j.alloc(r.Alloc.ID)
	for _, t := range r.Tasks {
		for p := range n.Machine().EachLivingIn(string(r.Alloc.ID) + ":" + t.State.Name) {
			if t.ID != p.Task && !a.lost && !j.abandoned(&p) {
				j.find("N1 a process without a record", r.Alloc.ID, "process %d of %s lives, and the record has %q", p.PID, p.Task, t.ID)
			}
		}
	}
	if !a.lost {
		a.toRestart = restartsOf(r)
	}
	checkTimes(j, n, a, r)
	verdicts{j}.saved(n, a, r)
}

// Discarded implements [machine.Observer].
func (j *Judge) Discarded(n *machine.Node, id cluster.AllocID) {
	j.now = n.Now()
	noneLives(j, n, "N1 a process without a record", id, "the record was removed")
	a := j.alloc(id)
	if !a.endTaken && !a.lost {
		j.find("N4 its end is not reported", id, "the record was removed, and the servers have no report that contains its end")
	}
	if a.lost { // the client may run it again
		a.lost, a.judged, a.waits, a.awayAt, a.health = false, false, false, time.Time{}, health{}
		a.longest = longest{}
		if !a.received.IsZero() { // it had the allocation while it destroyed what was left of the earlier run
			a.received = j.now
		}
	}
}

// noneLives adds a violation if a process of the allocation runs.
func noneLives(j *Judge, n *machine.Node, c invariant.Check, id cluster.AllocID, why string) {
	a := j.alloc(id)
	for _, t := range a.group().Tasks {
		if t == nil {
			continue
		}
		for p := range n.Machine().EachLivingIn(string(id) + ":" + t.Name) {
			if !j.abandoned(&p) {
				j.find(c, id, "%s, and process %d of %s lives", why, p.PID, p.Task)
			}
		}
	}
}

// Reported implements [machine.Observer].
func (j *Judge) Reported(n *machine.Node, reports []cluster.AllocReport) {
	j.now = n.Now()
	for _, r := range reports {
		a := j.alloc(r.Alloc)
		if terminal(r) {
			noneLives(j, n, "N3 not the truth", r.Alloc, "it is reported as "+string(r.ClientStatus))
			j.devices.devicesAreFree(n, r.Alloc, r.ClientStatus)
			j.volumes.volumesAreOff(n, a, &r)
			if a.longest.overran && r.ClientStatus == cluster.ClientComplete && !a.lost {
				j.find("N3 not the truth", r.Alloc, "it is reported as complete, and it was stopped because it had run for its longest time")
			}
			a.ended = true
		}
		a.judged = a.judged || r.Healthy != nil
		if r.TaskStates != nil {
			for _, t := range r.TaskStates.Tasks {
				a.failed = a.failed || t.Failed
				judgeExits(j, n, a, r.Alloc, t)
				j.devices.judgeFailures(n, a, t)
			}
		}
	}
}

// terminal reports whether a report contains the end of its allocation.
func terminal(r cluster.AllocReport) bool {
	return r.ClientStatus == cluster.ClientComplete || r.ClientStatus == cluster.ClientFailed || r.ClientStatus == cluster.ClientLost
}

// Taken implements [machine.Observer].
func (j *Judge) Taken(n *machine.Node, reports []cluster.AllocReport) {
	j.now = n.Now()
	for _, r := range reports {
		if a := j.alloc(r.Alloc); terminal(r) {
			a.endTaken = true
		}
	}
}

// judgeExits judges N4: the reported exit codes.
func judgeExits(j *Judge, n *machine.Node, a *alloc, id cluster.AllocID, t cluster.TaskState) {
	judged := a.terminated[t.Name]
	for _, e := range t.Events {
		if e.Type != "Terminated" || !e.Time.After(judged) {
			continue
		}
		judged = e.Time
		a.terminated[t.Name] = judged
		starts := j.starts[string(id)+":"+t.Name]
		if len(starts) == 0 {
			continue // it ran before the simulation
		}
		var last scripted.Process // the process of the event
		for _, start := range starts {
			if p, _ := n.Machine().Process(start); !p.StartedAt.After(e.Time) {
				last = p
			}
		}
		code, found := exitCode(e.Message)
		if !found {
			if !j.excused(&last) && !a.lost && !destroyed(a.task(t.Name), &last) && strings.Contains(e.Message, "unknown") {
				j.find("N4 exit code lost", id, "%s: %q, and there was no trouble", t.Name, e.Message)
			}
			continue
		}
		started := slices.ContainsFunc(starts, func(s scripted.Identity) bool {
			p, _ := n.Machine().Process(s)
			return p.Ended && p.Exit.Code == code
		})
		if !started {
			j.find("N4 exit code wrong", id, "%s: %q, and no process of it ended with this code", t.Name, e.Message)
		}
	}
}

// destroyed reports whether the client had to have a contained task destroyed, because its driver
// did not kill the task at the end of the grace. The driver then forgets the exit code.
func destroyed(task *cluster.Task, p *scripted.Process) bool {
	if !p.Contained || task == nil || len(p.Signals) == 0 {
		return false
	}
	kill, killed := p.Signalled(scripted.SIGKILL)
	if !killed {
		kill.At = p.EndedAt
	}
	return kill.At.After(p.Signals[0].At.Add(bounded(task.KillTimeout)))
}

// exitCode returns the exit code in a text such as "Exit Code: 137, Signal: 9", and whether the
// text has this form. Without a number it returns -1, which no process returns.
func exitCode(message string) (code int, found bool) {
	text, found := strings.CutPrefix(message, "Exit Code: ")
	number, _, _ := strings.Cut(text, ",")
	code, err := strconv.Atoi(number)
	if err != nil {
		code = -1
	}
	return code, found
}

// recordWait is longer than a client needs to write the record of an allocation that it receives.
const recordWait = time.Minute

// relaunchWait is longer than a client waits before it starts a plugin again. A client kills a driver that is still
// starting a task at the end of the task's kill timeout, also without other trouble.
const relaunchWait = 3 * time.Minute

// Settled judges N4 and N5 on a node that has had no trouble for some minutes, and whose client
// runs and is connected. live are the allocations of the node that have not ended for the servers.
func (j *Judge) Settled(now time.Time, n *machine.Node, live iter.Seq[*cluster.Allocation]) {
	j.now = now
	for _, name := range n.Drivers() {
		waits := j.now.Before(j.trouble.driver.Add(relaunchWait))
		if !waits && !lives(n, func(p scripted.Process) bool { return p.Kind == scripted.DriverProcess && p.Driver == name }) {
			j.find("N5 a driver does not come back", "", "%s has no process", name)
		}
	}
	j.tasks.checkLongest(n)
	j.devices.settledDevices(n)
	j.volumes.settledVolumes(n)
	for p := range n.Machine().EachLiving() {
		if p.Kind != scripted.TaskProcess {
			continue
		}
		id, name := machine.SplitCgroup(p.Cgroup)
		a := j.alloc(id)
		if !names(n.Record(id), p.Task) && !(a.lost && stuck(n, p)) {
			j.find("N4 a process without a record", id, "process %d of %s lives", p.PID, p.Task)
		}
		if !a.stopAt.IsZero() && a.row != nil && j.now.Sub(a.stopAt) > bounded(a.row.StopTime())+a.hold(n)+5*time.Minute && !p.Stuck {
			j.find("N4 a task is not stopped", id, "%s runs, and the stop reached the client at %s", name, a.stopAt)
		}
	}
	for stored := range live {
		r := n.Record(stored.ID)
		a := j.alloc(stored.ID)
		switch {
		case r == nil && !a.lost && !a.received.IsZero() && j.now.Sub(a.received) > recordWait:
			j.find("N4 a report is lost", stored.ID, "the client has no record, and the servers have %s", stored.ClientStatus)
		case r == nil:
		case r.Alloc.Job == nil && j.alloc(r.Alloc.ID).lost: // an orphan reports nothing
		case stored.ClientStatus != r.ClientStatus:
			j.find("N4 a report is lost", r.Alloc.ID, "the record states %s, and the servers have %s", r.ClientStatus, stored.ClientStatus)
		case r.Healthy != nil && !stored.HasVerdict():
			j.find("N4 a report is lost", r.Alloc.ID, "the record has a verdict, and the servers have none")
		}
	}
}

// lives reports whether a living process matches.
func lives(n *machine.Node, matches func(scripted.Process) bool) bool {
	for p := range n.Machine().EachLiving() {
		if matches(p) {
			return true
		}
	}
	return false
}
