package client

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// taskStart is the state of one start of a task that is not in the record: mainly the effects in
// flight. The core replaces it when the start has ended. Answers to effects of an earlier start are
// dropped.
type taskStart struct {
	t *taskRunner
	// needs is the version of the record that must be on disk before the next effect.
	needs uint64
	call  call
	// retryAt is when the core retries a failed call, and failures counts the failed calls.
	retryAt  time.Duration
	failures int
	// queued: the start waits for its turn in [starts].
	queued bool
	// mounting: the volumes are being mounted for the start.
	mounting bool

	// parts are the answers of the device plugins, in the order of the task's devices.
	parts []device.Part
	// deadline is the latest time for the answer of the driver to the start, or for a driver to
	// come back that must remove the start's remains.
	deadline time.Duration
	// abandoned: the driver did not answer, and the core has requested the shell to kill it.
	abandoned bool
	// heldBy is the process of the driver that has the task. confirmedRunning: this process has
	// confirmed that the task runs.
	heldBy           Generation
	confirmedRunning bool
	// confirmAt is when the core checks with this process whether the task runs, or zero. confirms counts
	// the checks without an answer.
	confirmAt time.Duration
	confirms  int
	// silentSince is when the core restarted the driver because it did not answer calls about the task, or zero.
	// The end of the silence is an answer about the task, at answeredAt.
	silentSince, answeredAt time.Duration
	// remaining are the processes that keep the task from its end, as its driver describes them, or empty.
	remaining string

	ending ending

	// stopRequested: a call to stop the task was made, with the driver's default signal if
	// defaultSignal is set.
	stopRequested, defaultSignal bool
	kills                        killing
	driverEvents                 driverEvents

	// announced is when the restart of the task began to wait until the servers have the verdict, or zero.
	announced time.Duration

	// followers are called when the start ends.
	followers []*follower
}

func newStart(t *taskRunner) *taskStart {
	s := &taskStart{t: t}
	s.ending.s, s.kills.s = s, s
	return s
}

// call is the call in flight that brings a start to its next phase. There is at most one, and it
// belongs to the phase of the record.
type call uint8

const (
	callNone call = iota
	// In PhaseStarting a device plugin prepares devices, and then the driver starts the task.
	callReserve
	callStart
	// In PhaseRunning a later process of the driver takes the task over. The driver waits for the
	// end of the task, and after an error it states whether the task runs.
	callRecover
	callWait
	// In PhaseCleaning the remains are removed, and processes that are left must end.
	callClean
)

// answer is like [allocReply], for an answer to an effect of the start.
func answer[T any](s *taskStart, take func(T)) func(T) {
	return allocReply(s.t.alloc, func(got T) {
		if s.t.start == s {
			take(got)
		}
	})
}

// replyPair is like answer, for an answer with a value and an error.
func replyPair[T any](s *taskStart, take func(T, error)) func(T, error) {
	type result struct {
		value T
		err   error
	}
	queue := answer(s, func(got result) { take(got.value, got.err) })
	return func(value T, err error) { queue(result{value, err}) }
}

// maxSilence is the number of unanswered calls about one task after which the client restarts the
// driver. maxWaitFailures is the number of failed calls to get the result of a task after which the
// task counts as lost.
const (
	maxSilence      = 3
	maxWaitFailures = 5
)

// stepStarting requests a start from the driver, and waits for the answer.
func (s *taskStart) stepStarting() {
	if s.call == callStart {
		s.awaitAnswer()
		return
	}
	switch {
	case s.t.mustStop():
		s.t.over(EndStopped, nil)
	case s.t.alloc.saves.failures > 0:
		s.t.waits.setDisk()
	case s.t.durable() && s.reserve() && s.t.ref().Generation != 0:
		s.t.core().drivers.state(s.t.task.Driver).starts.request(s)
	}
}

// sendable reports whether the start can be sent to the driver. It was sendable when it began to
// wait for its turn.
func (s *taskStart) sendable() bool {
	return s.t.rec.Phase == PhaseStarting && !s.t.mustStop() && s.t.alloc.saves.failures == 0 && s.t.ref().Generation != 0
}

// send sends the start to the driver.
func (s *taskStart) send() {
	c := s.t.core()
	s.t.waits.end()
	s.call = callStart
	s.deadline = c.now.Boot + c.options.startTimeout(s.t.task.Driver)
	s.heldBy = s.t.ref().Generation
	c.options.Shell.Start(s.t.ref(), s.t.alloc.rec.Alloc, s.parts, replyPair(s, s.answered))
}

// awaitAnswer kills a driver that does not answer to the start. This ends the call. Otherwise the
// start could succeed later and create a second copy of the task.
func (s *taskStart) awaitAnswer() {
	deadline := s.deadline
	if s.t.mustStop() {
		s.t.beginStop()
		deadline = min(deadline, later(s.t.rec.StopBegan, s.t.shutdownDelay(), s.t.task.KillTimeout))
		s.t.waits.set(cluster.WaitDriver, 0, "the driver "+s.t.task.Driver+" has not answered the request to start the task")
	}
	if s.t.core().reached(deadline) && !s.abandoned {
		s.abandoned = true
		s.t.event("Driver Failure", "The driver did not start the task in time, and the client restarts the driver")
		s.t.core().options.Shell.Abandon(s.driverPlugin(), s.heldBy)
	}
}

func (s *taskStart) answered(handle driver.Handle, err error) {
	now := s.t.core().now
	if err == nil {
		s.t.start = newStart(s.t)
		s.t.start.heldBy, s.t.start.confirmedRunning = s.heldBy, true
		s.t.start.confirmAfter(InspectInterval)
		s.t.rec.Handle, s.t.rec.RunningSince = handle, now.Boot
		if rec := s.t.alloc.rec; rec.RunBegan == 0 {
			rec.RunBegan = max(1, now.Boot) // zero means not started
		}
		s.t.rec.State.State, s.t.rec.State.StartedAt, s.t.rec.State.FinishedAt = cluster.TaskRunning, now.Wall, time.Time{}
		s.t.event("Started", "Task started by client")
		s.t.enter(PhaseRunning)
		return
	}
	end := EndNotStarted
	switch class := driver.ClassOf(err); {
	case class == driver.Gone && !s.abandoned:
		end = EndInterrupted
	case class.Uncertain():
		end = EndLost
	case class != driver.Recoverable:
		end = EndRefused
	}
	s.t.event("Driver Failure", "failed to start task: "+err.Error())
	s.t.over(end, nil)
}

// watch passes the task to the present process of the driver if this process does not have it, and
// keeps one Wait call open.
func (s *taskStart) watch() {
	d := s.t.core().drivers.state(s.t.task.Driver)
	if d == nil {
		s.t.event("Driver Failure", fmt.Sprintf("The node no longer has the driver %q", s.t.task.Driver))
		s.t.over(EndLost, nil)
		return
	}
	if s.confirmAt != 0 && s.t.core().reached(s.confirmAt) {
		s.confirmAt = 0
		s.confirm()
	}
	s.ending.step()
	if s.t.rec.Phase != PhaseRunning || d.generation == 0 || s.call != callNone || !s.t.core().reached(s.retryAt) {
		return
	}
	ref, shell := s.t.ref(), s.t.core().options.Shell
	if s.heldBy != ref.Generation {
		s.call = callRecover
		shell.Recover(ref, s.t.alloc.rec.Alloc, s.t.rec.Handle, answer(s, func(err error) { s.recovered(ref.Generation, err) }))
		return
	}
	s.ending.wait()
}

func (s *taskStart) recovered(generation Generation, err error) {
	s.call = callNone
	switch class := driver.ClassOf(err); {
	case err == nil:
		s.heldBy, s.failures, s.stopRequested = generation, 0, false
		s.t.core().options.Logger.Debug("a driver has taken over a task", "driver", s.t.task.Driver, "alloc", s.t.alloc.id(), "task", s.t.task.Name)
		s.confirm()
	case class.Uncertain():
		s.retry()
		s.abandonSilent(generation, class, s.failures)
	default:
		s.t.event("Driver Failure", "The driver could not take the task over: "+err.Error())
		s.t.over(EndLost, nil)
	}
}

// abandonSilent kills a process of the driver that has left several calls unanswered. The next
// process may answer.
func (s *taskStart) abandonSilent(generation Generation, class driver.Class, failures int) {
	if class == driver.Deadline && failures%maxSilence == 0 {
		s.t.core().options.Logger.Warn("a driver does not answer; the client restarts it", "driver", s.t.task.Driver, "alloc", s.t.alloc.id(), "task", s.t.task.Name)
		if s.silentSince == 0 {
			s.silentSince = max(1, s.t.core().now.Boot) // zero means no silence
			s.t.event("Driver Failure", fmt.Sprintf("The driver did not answer %d calls about the task, and the client restarts the driver", maxSilence))
		}
		s.t.core().options.Shell.Abandon(s.driverPlugin(), generation)
	}
}

// driverPlugin names the plugin that runs the task.
func (s *taskStart) driverPlugin() Plugin { return Plugin{DriverPlugin, s.t.task.Driver} }

// retry waits before the next call.
func (s *taskStart) retry() {
	o := s.t.core().options
	s.failures++
	s.retryAt = s.t.core().now.Boot + backoff(s.failures, o.MinRetry, o.MaxRetry)
	s.t.core().reached(s.retryAt) // requests a step at that time
}

// gone handles the death of the driver. The core then calls its next process.
func (s *taskStart) gone() {
	s.call, s.heldBy, s.confirmedRunning, s.confirmAt, s.confirms = callNone, 0, false, 0, 0
	s.ending.state = endOpen
}

// remains notes the processes that keep the task from its end, or that there are none. The task then
// does its work no longer, although its driver has to report it as running.
func (s *taskStart) remains(processes string) {
	if processes == s.remaining {
		return
	}
	s.remaining = processes
	switch {
	case processes != "":
		s.t.waits.set(cluster.WaitProcess, 0, processes)
	case !s.t.rec.Stopping:
		s.t.waits.end()
	}
}

// InspectInterval is the time between two calls of Inspect for a running task. Its driver may never answer
// the call of Wait. After a call of Inspect without an answer the next one comes after inspectRetry.
const (
	InspectInterval = 5 * time.Minute
	inspectRetry    = time.Minute
)

// confirmAfter lets the core check after a time whether the task runs.
func (s *taskStart) confirmAfter(d time.Duration) {
	s.confirmAt = s.t.core().now.Boot + d
	s.t.core().reached(s.confirmAt) // requests a step at that time
}

// confirm checks with the driver whether the task runs: after it has taken the task over, and then from time
// to time. The task may have ended while no client was running, the health verdict may come before the
// answer of Wait, and this answer may never come. A driver that answers no check is restarted. If this
// does not help, the checks are rare: a restart interrupts the starts of other tasks.
func (s *taskStart) confirm() {
	generation := s.heldBy
	s.t.core().options.Shell.Inspect(s.t.ref(), replyPair(s, func(status driver.Status, err error) {
		switch class := driver.ClassOf(err); {
		case s.heldBy != generation:
		case err == nil && status.State == driver.TaskRunning:
			s.hasAnswered()
			s.confirmedRunning, s.ending.overdue = true, false
			s.remains(status.Attributes[driver.WaitsFor])
			s.confirmAfter(InspectInterval)
			s.t.alloc.mounts.confirm()
		case err == nil && status.State == driver.TaskExited, err != nil && class == driver.NotFound:
			s.hasAnswered()
			s.ending.found(status.Exit)
		case class == driver.Deadline, err != nil && class != driver.Gone && !s.confirmedRunning:
			s.confirms++
			s.confirmAfter(s.nextCheck())
			s.abandonSilent(generation, class, s.confirms)
		default:
			if class != driver.Gone {
				s.hasAnswered()
			}
			s.confirmAfter(InspectInterval)
		}
	}))
}

// nextCheck is the wait after a check without a result.
func (s *taskStart) nextCheck() time.Duration {
	switch o := s.t.core().options; {
	case s.silentSince != 0:
		return InspectInterval
	case s.confirmedRunning:
		return inspectRetry
	default:
		return backoff(s.confirms, o.MinRetry, o.MaxRetry)
	}
}

// hasAnswered ends a silence of the driver.
func (s *taskStart) hasAnswered() {
	if s.silentSince != 0 {
		s.silentSince, s.answeredAt = 0, s.t.core().now.Boot
	}
	s.confirms = 0
}
