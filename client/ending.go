package client

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// ending gets the result of a start from the driver.
//
// Some drivers answer Wait as soon as a task is being stopped, with code 0, while its processes still
// run. So an answer of Wait is not the end of a task that a client has requested to stop. Such a
// task has ended when Stop has returned or its limit has passed, and Inspect then returns that the
// task has exited. The core then calls Wait once more for the exit code. The end of a task that no
// client has stopped needs one call only.
type ending struct {
	s     *taskStart
	state endState
	// restored: an earlier client has started the task. It may have made a call to stop the task that
	// its last saved record does not contain.
	restored bool
	// stopping is the process of the driver that has not answered the call to stop the task, or
	// zero.
	stopping Generation
	// openAtStop: the call of Wait was open when the core called Stop.
	openAtStop bool
	// exit is the result if the last call of Wait has none, or nil if it is unknown.
	exit *driver.ExitResult
	// early counts the answers of Wait while the task was running.
	early int
	// overdue: Inspect has returned that the task has ended, and Wait is open.
	overdue bool
	// collectBy is the latest time for the driver to return the result of a task that was killed or
	// has ended.
	collectBy time.Duration
}

// endState describes how far the driver has confirmed the end of a task.
type endState uint8

const (
	endOpen       endState = iota // Wait has not answered
	endAnswered                   // Wait has answered, but a call to stop the task is in flight
	endInspecting                 // Inspect is in flight
	endConfirmed                  // the task has ended, and another call of Wait gets the exit code
)

// wait opens a call of Wait.
func (e *ending) wait() {
	e.s.call, e.openAtStop = callWait, false
	e.s.t.core().options.Shell.Wait(e.s.t.ref(), replyPair(e.s, e.waited))
}

// stops notes that the core calls Stop of a process of the driver.
func (e *ending) stops(generation Generation) {
	e.stopping, e.openAtStop = generation, e.s.call == callWait && e.state == endOpen
}

// waited handles the answer of Wait. After an error the core calls Inspect, which may return the
// result.
func (e *ending) waited(exit driver.ExitResult, err error) {
	s := e.s
	switch {
	case err == nil && e.state == endConfirmed && exit.Unknown:
		s.t.exited(known(e.exit))
	case err == nil && (e.state == endConfirmed || !e.mayBeStopping()):
		s.t.exited(exit)
	// A new process of the driver does not have the task before it takes the task over.
	case err != nil && driver.ClassOf(err) == driver.Gone || s.heldBy != s.t.ref().Generation:
		s.gone()
	case e.state == endConfirmed:
		s.t.exited(known(e.exit))
	case e.mayBeStopping():
		if err == nil && e.openAtStop && s.kills.state != killNone && !exit.Successful() {
			e.exit = &exit // Wait has answered because of the kill, and not because of Stop
		}
		e.state = endAnswered
	default:
		e.inspect()
	}
}

// known returns a result, or an unknown result for nil.
func known(exit *driver.ExitResult) driver.ExitResult {
	if exit == nil {
		return driver.ExitResult{Unknown: true}
	}
	return *exit
}

// mayBeStopping reports whether a client may have requested the driver to stop the task.
func (e *ending) mayBeStopping() bool {
	return e.restored || e.s.t.rec.SignalAt != 0 || e.s.kills.state != killNone
}

// stopInFlight reports whether the driver or the client may still be stopping the task. A stop that an
// earlier client has requested is in flight until this client has repeated the request.
func (e *ending) stopInFlight() bool {
	s := e.s
	switch s.kills.state {
	case killNone:
		return e.stopping != 0 && e.stopping == s.heldBy || s.t.rec.SignalAt != 0 && !s.stopRequested
	case killCalled:
		return !s.kills.unkillable
	}
	return false
}

// step confirms an end when no stop is in flight.
func (e *ending) step() {
	s := e.s
	switch {
	case e.state == endAnswered && s.heldBy != s.t.ref().Generation:
		s.gone()
	case e.state == endAnswered && !e.stopInFlight():
		e.state = endInspecting
		e.inspect()
	case e.state == endConfirmed && s.t.core().reached(e.collectBy):
		s.t.exited(known(e.exit))
	}
}

// inspect requests the state of the task. No new call of Wait starts before the answer.
func (e *ending) inspect() {
	e.s.t.core().options.Shell.Inspect(e.s.t.ref(), replyPair(e.s, e.inspected))
}

func (e *ending) inspected(status driver.Status, err error) {
	s := e.s
	answered := e.state == endInspecting
	e.state = endOpen
	switch class := driver.ClassOf(err); {
	case err == nil && status.State == driver.TaskExited && answered:
		e.confirmed(status.Exit)
	case err == nil && status.State == driver.TaskExited:
		s.t.exited(known(status.Exit))
	case err != nil && class == driver.NotFound:
		s.t.exited(known(e.exit))
	case err != nil && class == driver.Gone:
		s.gone()
	case err == nil:
		if answered {
			e.early++
		}
		s.call, s.failures, s.confirmedRunning = callNone, e.early, true
		if s.t.rec.SignalAt != 0 && !s.kills.unkillable {
			s.failures = min(e.early, maxEarly) // the stop must not take much longer than the task
		}
		if status.State == driver.TaskRunning {
			s.remains(status.Attributes[driver.WaitsFor])
			s.t.alloc.mounts.confirm()
		}
		s.retry()
		s.failures = 0
	case s.failures < maxWaitFailures:
		s.call = callNone
		s.retry()
	case !s.abandoned:
		s.call, s.failures, s.abandoned = callNone, 0, true
		s.t.event("Driver Failure", "The driver did not report whether the task runs, and the client restarts the driver")
		s.t.core().options.Shell.Abandon(s.driverPlugin(), s.heldBy)
	default:
		s.t.event("Driver Failure", "The driver did not report how the task ended")
		s.t.over(EndLost, nil)
	}
}

// found handles an end that Inspect returns while the task should run. The answer of Wait may be on its way.
// If it has not come after a while, the driver does not send it, and the result of Inspect counts. During a
// stop the kill limits the wait.
func (e *ending) found(exit *driver.ExitResult) {
	s := e.s
	switch {
	case s.t.rec.Phase != PhaseRunning || s.t.rec.SignalAt != 0 || s.kills.state != killNone:
	case s.call != callWait || e.state != endOpen || !e.overdue:
		e.overdue = s.call == callWait && e.state == endOpen
		s.confirmAfter(StopSlack)
	default:
		s.t.exited(known(exit))
	}
}

// confirmed gets the exit code of a task that has ended. The result of Inspect may be older than the
// end of the task, so it is used only if Wait has none.
func (e *ending) confirmed(exit *driver.ExitResult) {
	e.state = endConfirmed
	if exit != nil {
		e.exit = exit
	}
	e.collectBy = e.s.t.core().now.Boot + StopSlack
	e.wait()
}

// maxEarly limits the wait before the next call of Wait during a stop.
const maxEarly = 2

// keepsExit reports whether only the driver can end the processes of the task, and has confirmed
// that they have ended. DestroyTask would lose the exit code.
func (e *ending) keepsExit() bool { return e.state == endConfirmed && !e.s.t.rec.HostCgroup }

// giveUp ends the start of a task that was killed if the driver has not returned its result.
func (e *ending) giveUp() {
	s := e.s
	if s.t.ref().Generation == 0 || e.state == endInspecting {
		s.t.exited(known(e.exit))
		return
	}
	s.t.core().options.Shell.Inspect(s.t.ref(), replyPair(s, func(status driver.Status, err error) {
		exit := e.exit
		if err == nil && status.Exit != nil {
			exit = status.Exit
		}
		s.t.exited(known(exit))
	}))
}
