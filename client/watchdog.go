package client

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// watchdogEvent is the type of the event of a task that a watchdog has stopped.
const watchdogEvent = "Watchdog"

// stoppedByWatchdog continues the stop of an allocation that a watchdog has started: that of an earlier
// client, or that of this client while it was frozen. Tasks that still run get the rest of their kill
// timeout. The note of the watchdog stays until the allocation has ended, so later clients get it again.
func stoppedByWatchdog(a *allocRunner, s *guard.Stopped) {
	if a.rec.Ended {
		return
	}
	if !a.rec.Stopping {
		a.stop(s.Reason())
		a.rec.StopBegan = watchdogBegan(a, s)
	}
	noted := false
	for _, t := range a.tasks {
		at, signalled := s.Signals[t.task.Name]
		if !signalled || t.rec.State.State == cluster.TaskDead || slices.ContainsFunc(t.rec.State.Events, isWatchdogEvent) {
			continue
		}
		noted = true
		t.event(watchdogEvent, s.Reason())
		if t.rec.Phase == PhaseRunning && t.rec.SignalAt == 0 && s.BootID == a.rec.BootID {
			t.rec.Stopping, t.rec.StopBegan, t.rec.SignalAt = true, at, at
		}
	}
	if noted {
		a.core.options.Logger.Warn("the watchdog has stopped an allocation", "alloc", a.id(), "why", s.Reason())
	}
}

func isWatchdogEvent(e cluster.TaskEvent) bool { return e.Type == watchdogEvent }

// watchdogBegan is when the stop began: the group's shutdown delay is over at the first signal.
func watchdogBegan(a *allocRunner, s *guard.Stopped) time.Duration {
	began := a.core.now.Boot
	for _, t := range a.tasks {
		if at, signalled := s.Signals[t.task.Name]; signalled && s.BootID == a.rec.BootID {
			began = min(began, max(0, at-a.group.ShutdownDelay))
		}
	}
	return began
}
