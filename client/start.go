package client

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/device"
	"github.com/seed-f9cf0b39/nodedrain/client/driver"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// start is what the core knows, beside the record, of one start of a task: which effects are in
// flight. It is replaced when the start has ended, and answers to an earlier one are dropped.
type start struct {
	t *taskRunner
	// needs is the version of the record that must be saved before the next effect.
	needs uint64

	// parts are what the device plugins have answered, in the order of the task's devices. reserving: a
	// call is in flight.
	parts     []device.Part
	reserving bool

	// asked: the driver was asked to start the task, and has until the deadline to do so.
	asked    bool
	deadline time.Duration
	// abandoned: the driver did not answer, and was killed.
	abandoned bool

	// knownTo is the life of the driver that knows the task. seenRunning: that life has said that the
	// task runs.
	knownTo             Life
	seenRunning         bool
	recovering, waiting bool
	// retryAt is when a failed call is repeated, and failures counts the failed calls.
	retryAt  time.Duration
	failures int

	// stopAsked: the driver was asked to stop the task, for the driver's default signal if
	// defaultSignal is set.
	stopAsked, defaultSignal bool
	// driverMissed is when the signal was due and the driver could not be asked, or zero.
	driverMissed time.Duration
	// killed: no process is left. The driver has until collectBy to tell the result; then it was
	// inspected.
	killing, killed, inspected bool
	killAt, collectBy          time.Duration

	cleaning bool
	// followers want to know the end of the start.
	followers []*follower
}

// answer returns a function that queues an answer to an effect of the start.
func answer[T any](s *start, take func(T)) func(T) {
	return reply(s.t.core(), func(got T) {
		if s.t.start == s {
			take(got)
			s.t.core().changed = true
		}
	})
}

// answer2 is answer for an answer with an error.
func answer2[T any](s *start, take func(T, error)) func(T, error) {
	return reply2(s.t.core(), func(got T, err error) {
		if s.t.start == s {
			take(got, err)
			s.t.core().changed = true
		}
	})
}

// maxSilence is how often a driver may leave a call about one task without an answer, before the
// client restarts the driver. maxWaitFailures is how often it may fail to say how a task ended,
// before the task counts as lost.
const (
	maxSilence      = 3
	maxWaitFailures = 5
)

// ask asks the driver to start the task, once the record of the start is on disk.
func (s *start) ask() {
	a, shell := s.t.alloc, s.t.core().options.Shell
	if !s.asked {
		switch {
		case s.t.mustStop():
			s.t.over(EndStopped, nil)
		case a.saves.failures > 0:
			s.t.waitForDisk()
		case s.t.durable() && s.reserve() && s.t.ref().Life != 0:
			s.asked = true
			s.deadline = a.core.now.Boot + a.core.options.startTimeout(s.t.task.Driver)
			s.knownTo = s.t.ref().Life
			shell.Start(s.t.ref(), a.rec.Alloc, s.parts, answer2(s, s.answered))
		}
		return
	}
	// A driver that does not answer is killed, which ends the call: a start that succeeds later would
	// make a second copy.
	deadline := s.deadline
	if s.t.mustStop() {
		s.t.beginStop()
		deadline = min(deadline, later(s.t.rec.StopBegan, s.t.shutdownDelay(), s.t.task.KillTimeout))
		s.t.waitFor(cluster.WaitDriver, 0, "the driver "+s.t.task.Driver+" has not answered whether it has started the task")
	}
	if a.core.reached(deadline) && !s.abandoned {
		s.abandoned = true
		s.t.event("Driver Failure", "The driver did not start the task in time, and the client restarts the driver")
		shell.Abandon(s.driverPlugin(), s.knownTo)
	}
}

// answered takes in the answer to a start.
func (s *start) answered(handle driver.Handle, err error) {
	now := s.t.core().now
	if err == nil {
		s.t.start = &start{t: s.t, knownTo: s.knownTo, seenRunning: true}
		s.t.rec.Handle, s.t.rec.RunningSince = handle, now.Boot
		s.t.rec.State.State, s.t.rec.State.StartedAt, s.t.rec.State.FinishedAt = cluster.TaskRunning, now.Wall, time.Time{}
		s.t.event("Started", "Task started by client")
		s.t.enter(PhaseRunning)
		return
	}
	end := EndNotStarted
	switch class := driver.ClassOf(err); {
	case class.Uncertain():
		end = EndLost
	case class != driver.Recoverable:
		end = EndRefused
	}
	s.t.event("Driver Failure", "failed to start task: "+err.Error())
	s.t.over(end, nil)
}

// watch makes the present life of the driver know the task, and keeps one wait open there.
func (s *start) watch() {
	ref, shell := s.t.ref(), s.t.core().options.Shell
	if s.t.core().drivers.state(s.t.task.Driver) == nil {
		s.t.event("Driver Failure", fmt.Sprintf("The node has no driver %q any more", s.t.task.Driver))
		s.t.over(EndLost, nil)
		return
	}
	if ref.Life == 0 || s.recovering || s.waiting || !s.t.core().reached(s.retryAt) {
		return
	}
	if s.knownTo != ref.Life {
		s.recovering = true
		shell.Recover(ref, s.t.alloc.rec.Alloc, s.t.rec.Handle, answer(s, func(err error) { s.recovered(ref.Life, err) }))
		return
	}
	s.waiting = true
	shell.Wait(ref, answer2(s, s.waited))
}

func (s *start) recovered(life Life, err error) {
	s.recovering = false
	switch class := driver.ClassOf(err); {
	case err == nil:
		s.knownTo, s.failures, s.stopAsked = life, 0, false
		s.t.core().options.Logger.Debug("a driver has taken over a task", "driver", s.t.task.Driver, "alloc", s.t.alloc.id(), "task", s.t.task.Name)
		s.confirm()
	case class.Uncertain():
		s.retry()
		s.abandonSilent(life, class)
	default:
		s.t.event("Driver Failure", "the driver could not take the task over: "+err.Error())
		s.t.over(EndLost, nil)
	}
}

// abandonSilent kills a life of the driver that has failed to answer several times: the next one
// may answer.
func (s *start) abandonSilent(life Life, class driver.Class) {
	if class == driver.Deadline && s.failures%maxSilence == 0 {
		s.t.core().options.Logger.Warn("a driver does not answer and is restarted", "driver", s.t.task.Driver, "alloc", s.t.alloc.id(), "task", s.t.task.Name)
		s.t.core().options.Shell.Abandon(s.driverPlugin(), life)
	}
}

// driverPlugin names the plugin that runs the task.
func (s *start) driverPlugin() Plugin { return Plugin{DriverPlugin, s.t.task.Driver} }

// retry waits before the next call.
func (s *start) retry() {
	o := s.t.core().options
	s.failures++
	s.retryAt = s.t.core().now.Boot + backoff(s.failures, o.MinRetry, o.MaxRetry)
}

// waited takes in the end of a task. If the driver has lost the result, it may still have it when
// it is asked for the state.
func (s *start) waited(exit driver.ExitResult, err error) {
	if err == nil {
		s.t.exited(exit)
		return
	}
	if driver.ClassOf(err) == driver.Gone {
		s.gone()
		return
	}
	s.inspect()
}

// gone notes that the driver has died. Its next life will be asked.
func (s *start) gone() { s.waiting, s.knownTo, s.seenRunning = false, 0, false }

// confirm asks a life of the driver that has taken the task over whether the task runs. The task may
// have ended while no client looked, and the answer to the wait comes later than the next verdict.
func (s *start) confirm() {
	life := s.knownTo
	s.t.core().options.Shell.Inspect(s.t.ref(), answer2(s, func(status driver.Status, err error) {
		s.seenRunning = err == nil && status.State == driver.TaskRunning && s.knownTo == life
	}))
}

// inspect asks the driver for the state of the task. The wait stays closed until then.
func (s *start) inspect() {
	s.t.core().options.Shell.Inspect(s.t.ref(), answer2(s, func(status driver.Status, err error) {
		switch class := driver.ClassOf(err); {
		case err == nil && status.State == driver.TaskExited && status.Exit != nil:
			s.t.exited(*status.Exit)
		case err == nil && status.State == driver.TaskExited, err != nil && class == driver.NotFound:
			s.t.exited(driver.ExitResult{Unknown: true})
		case err != nil && class == driver.Gone:
			s.gone()
		case err == nil:
			s.waiting, s.failures, s.seenRunning = false, 0, true
			s.retry()
			s.failures = 0
		case s.failures < maxWaitFailures:
			s.waiting = false
			s.retry()
		case !s.abandoned:
			s.waiting, s.failures, s.abandoned = false, 0, true
			s.t.event("Driver Failure", "the driver does not say whether the task runs, and the client restarts the driver")
			s.t.core().options.Shell.Abandon(s.driverPlugin(), s.knownTo)
		default:
			s.t.event("Driver Failure", "the driver does not say how the task ended")
			s.t.over(EndLost, nil)
		}
	}))
}
