package client

import (
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// order is the order in which the tasks of an allocation start and stop. It is derived from the
// phases of the tasks.
type order struct{ alloc *allocRunner }

// oneShot reports whether the task must end by itself before the allocation ends.
func (t *taskRunner) oneShot() bool { return t.task.Lifecycle != nil && !t.task.Lifecycle.Sidecar }

func (o order) allDead() bool {
	for _, t := range o.alloc.tasks {
		if t.rec.Phase != PhaseDead {
			return false
		}
	}
	return true
}

// failed reports whether a task has failed. A failed poststop task does not count.
func (o order) failed() bool {
	for _, t := range o.alloc.tasks {
		if t.rec.State.Failed && !t.task.Poststop() {
			return true
		}
	}
	return false
}

// poststopFailure is a part of the description that names the failed poststop tasks, or empty. Their failure
// does not change the status of the allocation, as in the reference: its work was done before.
func (o order) poststopFailure() string {
	var names []string
	for _, t := range o.alloc.tasks {
		if t.rec.State.Failed && t.task.Poststop() {
			names = append(names, t.task.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; poststop failed: " + strings.Join(names, ", ")
}

// mainsStarted reports whether all main tasks have started.
func (o order) mainsStarted() bool {
	for _, t := range o.alloc.tasks {
		if t.task.Main() && t.rec.State.StartedAt.IsZero() {
			return false
		}
	}
	return true
}

// ending reports whether the allocation's tasks must stop. The tasks of an allocation that is held
// for volumes do not stop yet.
func (o order) ending() bool { return o.ends() && !o.alloc.mounts.held() }

// ends reports whether the allocation must end, apart from a hold for volumes: the servers or the
// client stop it, a task has failed, the leader task has ended, or all main tasks have ended.
func (o order) ends() bool {
	if o.alloc.rec.Stopping || o.alloc.rec.Ended || o.failed() {
		return true
	}
	allMain := true
	for _, t := range o.alloc.tasks {
		dead := t.rec.Phase == PhaseDead
		if t.task.Leader && dead {
			return true
		}
		if t.task.Main() && !dead {
			allMain = false
		}
	}
	return allMain
}

// delayed reports whether the group's shutdown delay is running.
func (o order) delayed() bool {
	return o.alloc.rec.Stopping && !o.failed() && !o.skipsDelays() && !o.alloc.core.reached(later(o.alloc.rec.StopBegan, o.alloc.group.ShutdownDelay))
}

// skipsDelays reports whether the stop request skips shutdown delays.
func (o order) skipsDelays() bool { return o.alloc.rec.Alloc.DesiredTransition.NoShutdownDelay }

// stoppingPhase is the phase whose tasks must stop now: all tasks of the earlier phases are dead or
// unkillable. Sidecars do not wait for a process that cannot be killed, because the servers rely on
// the stop time of the allocation. Poststop tasks wait for it. stoppingPhase is valid only for an
// allocation that is ending.
func (o order) stoppingPhase() cluster.StopPhase {
	now := cluster.StopPoststop
	for _, t := range o.alloc.tasks {
		if t.rec.Phase == PhaseDead {
			continue
		}
		phase := t.task.StopPhase()
		if t.start.kills.unkillable {
			phase = max(phase, cluster.StopSidecars)
		}
		now = min(now, phase)
	}
	return now
}

// mustStop reports whether the task must stop now, or must no longer start.
func (t *taskRunner) mustStop() bool {
	a := t.alloc
	if !a.order.ending() {
		return false
	}
	if !t.task.Poststop() {
		return !a.order.delayed() && t.task.StopPhase() <= a.order.stoppingPhase()
	}
	if a.order.stoppingPhase() != cluster.StopPoststop {
		return false
	}
	if t.rec.TurnAt == 0 {
		t.rec.TurnAt = max(1, a.core.now.Boot) // zero means not started
		a.touch()
	}
	return !a.order.anyStarted() || a.core.reached(t.rec.TurnAt+cluster.PoststopLimit)
}

// anyStarted reports whether a task of the allocation has ever started.
func (o order) anyStarted() bool {
	if o.alloc.rec.RestartedAll {
		return true
	}
	for _, t := range o.alloc.tasks {
		if !t.rec.State.StartedAt.IsZero() {
			return true
		}
	}
	return false
}

// mayStart reports whether the order of tasks permits a start of the task.
func (t *taskRunner) mayStart() bool {
	a := t.alloc
	if t.task.Poststop() {
		return a.order.ending() && a.order.stoppingPhase() == cluster.StopPoststop && a.order.anyStarted()
	}
	if a.order.ending() {
		return false
	}
	if a.order.predecessor() != nil || a.in.pending() {
		return false
	}
	switch {
	case t.task.Main():
		return prestartDone(a)
	case t.task.Lifecycle.Hook == cluster.HookPoststart:
		return a.order.mainsStarted()
	}
	return true
}

// prestartDone reports whether the prestart tasks of an allocation have succeeded, and all prestart
// sidecars have started.
func prestartDone(a *allocRunner) bool {
	for _, t := range a.tasks {
		if l := t.task.Lifecycle; l == nil || l.Hook != cluster.HookPrestart {
			continue
		}
		switch {
		case t.oneShot() && t.rec.Phase != PhaseDead,
			!t.oneShot() && t.rec.State.StartedAt.IsZero():
			return false
		}
	}
	return true
}

// predecessor returns the allocation that this one replaces, or one before that, if it still runs
// on this node, or nil.
func (o order) predecessor() *allocRunner {
	previous := o.alloc
	for range o.alloc.core.allocs { // the bound protects from a cycle in data of the servers
		if previous.rec.Alloc.PreviousAllocation == "" {
			return nil
		}
		previous = o.alloc.core.alloc(previous.rec.Alloc.PreviousAllocation)
		if previous == nil || previous == o.alloc {
			return nil
		}
		if !previous.rec.Ended {
			return previous
		}
	}
	return nil
}
