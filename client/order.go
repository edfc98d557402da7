package client

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// The order of the tasks of an allocation. Everything here is derived from the phases of the tasks.

// oneShot reports whether the task must end by itself before the allocation ends.
func (t *taskRunner) oneShot() bool { return t.task.Lifecycle != nil && !t.task.Lifecycle.Sidecar }

func (a *allocRunner) allDead() bool {
	for _, t := range a.tasks {
		if t.rec.Phase != PhaseDead {
			return false
		}
	}
	return true
}

// failed reports whether a task has failed. A failed poststop task does not count.
func (a *allocRunner) failed() bool {
	for _, t := range a.tasks {
		if t.rec.State.Failed && !t.task.Poststop() {
			return true
		}
	}
	return false
}

// mainsStarted reports whether all main tasks have started.
func (a *allocRunner) mainsStarted() bool {
	for _, t := range a.tasks {
		if t.task.Main() && t.rec.State.StartedAt.IsZero() {
			return false
		}
	}
	return true
}

// ending reports whether the allocation's tasks must stop. The tasks of an allocation that is held
// for volumes do not stop yet.
func (a *allocRunner) ending() bool { return a.ends() && !a.mounts.held() }

// ends reports whether the allocation must end, apart from a hold for volumes: the servers or the
// client stop it, a task has failed, the leader task has ended, or all main tasks have ended.
func (a *allocRunner) ends() bool {
	if a.rec.Stopping || a.rec.Ended || a.failed() {
		return true
	}
	allMain := true
	for _, t := range a.tasks {
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
func (a *allocRunner) delayed() bool {
	return a.rec.Stopping && !a.failed() && !a.skipsDelays() && !a.core.reached(later(a.rec.StopBegan, a.group.ShutdownDelay))
}

// skipsDelays reports whether the stop request skips shutdown delays.
func (a *allocRunner) skipsDelays() bool { return a.rec.Alloc.DesiredTransition.NoShutdownDelay }

// stoppingPhase is the phase whose tasks must stop now: all tasks of the earlier phases are dead or
// unkillable. Sidecars do not wait for a process that cannot be killed, because the servers rely on
// the stop time of the allocation. Poststop tasks wait for it. stoppingPhase is valid only for an
// allocation that is ending.
func (a *allocRunner) stoppingPhase() cluster.StopPhase {
	now := cluster.StopPoststop
	for _, t := range a.tasks {
		if t.rec.Phase == PhaseDead {
			continue
		}
		phase := t.task.StopPhase()
		if t.start.unkillable {
			phase = max(phase, cluster.StopSidecars)
		}
		now = min(now, phase)
	}
	return now
}

// mustStop reports whether the task must stop now, or must no longer start.
func (t *taskRunner) mustStop() bool {
	a := t.alloc
	if !a.ending() {
		return false
	}
	if !t.task.Poststop() {
		return !a.delayed() && t.task.StopPhase() <= a.stoppingPhase()
	}
	if a.stoppingPhase() != cluster.StopPoststop {
		return false
	}
	if t.rec.TurnAt == 0 {
		t.rec.TurnAt = max(1, a.core.now.Boot) // zero means not started
		a.touch()
	}
	return !a.anyStarted() || a.core.reached(t.rec.TurnAt+cluster.PoststopLimit)
}

// anyStarted reports whether a task of the allocation has ever started.
func (a *allocRunner) anyStarted() bool {
	if a.rec.RestartedAll {
		return true
	}
	for _, t := range a.tasks {
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
		return a.ending() && a.stoppingPhase() == cluster.StopPoststop && a.anyStarted()
	}
	if a.ending() {
		return false
	}
	if a.predecessor() != nil {
		return false
	}
	switch {
	case t.task.Main():
		return prestartDone(a)
	case t.task.Lifecycle.Hook == cluster.HookPoststart:
		return a.mainsStarted()
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
func (a *allocRunner) predecessor() *allocRunner {
	previous := a
	for range a.core.allocs { // the bound protects from a cycle in data of the servers
		if previous.rec.Alloc.PreviousAllocation == "" {
			return nil
		}
		previous = a.core.alloc(previous.rec.Alloc.PreviousAllocation)
		if previous == nil || previous == a {
			return nil
		}
		if !previous.rec.Ended {
			return previous
		}
	}
	return nil
}
