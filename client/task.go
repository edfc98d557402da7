package client

import (
	"fmt"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/driver"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// taskRunner runs one task of an allocation. What must survive a crash is in rec; the rest says
// which effects are in flight for the present start.
type taskRunner struct {
	alloc *allocRunner
	task  *cluster.Task
	rec   *TaskRecord
	wait  wait
	start startState
}

// startState is what the core knows of one start beside the record. It is replaced when the start
// is over, so that late answers change nothing.
type startState struct {
	// number distinguishes the starts of one core.
	number uint64
	// needs is the version of the record that must be saved before the next effect.
	needs uint64

	asked    bool          // the driver was asked to start the task
	deadline time.Duration // of the start

	// knownTo is the life of the driver that knows the task.
	knownTo              Life
	recovering, waiting  bool
	retryAt              time.Duration
	failures             int
	stopAsked, inspected bool
	defaultSignal        bool
	killing, killed      bool
	killAt, collectBy    time.Duration
	cleaning             bool
	cleanAt              time.Duration
}

func newTaskRunner(a *allocRunner, rec *TaskRecord) *taskRunner {
	t := &taskRunner{alloc: a, rec: rec, task: &cluster.Task{Name: rec.State.Name, KillTimeout: cluster.DefaultKillTimeout}}
	for _, task := range a.group.Tasks {
		if task != nil && task.Name == rec.State.Name {
			t.task = task
		}
	}
	return t
}

func (t *taskRunner) core() *Core { return t.alloc.core }

// ref names the present start for a call to the present life of the driver.
func (t *taskRunner) ref() TaskRef {
	return TaskRef{Alloc: t.alloc.id(), Task: t.task.Name, ID: t.rec.ID, Driver: t.task.Driver, Life: t.core().drivers.life(t.task.Driver)}
}

// answer returns a function that queues an answer. An answer to an earlier start is dropped.
func answer[T any](t *taskRunner, take func(T)) func(T) {
	number := t.start.number
	return reply(t.core(), func(got T) {
		if t.start.number == number {
			take(got)
			t.core().changed = true
		}
	})
}

// answer2 is answer for an answer with an error.
func answer2[T any](t *taskRunner, take func(T, error)) func(T, error) {
	number := t.start.number
	return reply2(t.core(), func(got T, err error) {
		if t.start.number == number {
			take(got, err)
			t.core().changed = true
		}
	})
}

// enter begins a phase. Effects of the phase wait until the record is saved.
func (t *taskRunner) enter(p Phase) {
	t.rec.Phase = p
	t.alloc.touch()
	t.start.needs = t.alloc.saves.version
}

// durable reports whether the record of the present phase is on disk.
func (t *taskRunner) durable() bool { return t.alloc.saves.saved >= t.start.needs }

// tried reports whether the core has at least tried to save the record. A full disk must not keep
// a task from being stopped.
func (t *taskRunner) tried() bool { return t.alloc.saves.tried >= t.start.needs }

// event adds a line to the task's history.
func (t *taskRunner) event(kind, message string) {
	events := append(t.rec.State.Events, cluster.TaskEvent{Type: kind, Time: t.core().now.Wall, Message: message})
	t.rec.State.Events = events[max(0, len(events)-cluster.MaxTaskEvents):]
	t.alloc.touch()
}

func (t *taskRunner) step() {
	switch t.rec.Phase {
	case PhaseWaiting:
		t.stepWaiting()
	case PhaseStarting:
		t.stepStarting()
	case PhaseRunning:
		t.stepRunning()
	case PhaseCleaning:
		t.stepCleaning()
	case PhaseBackoff:
		t.stepBackoff()
	case PhaseDead:
	}
}

func (t *taskRunner) stepWaiting() {
	if t.mustStop() {
		t.die("Killed", "The task was stopped before it started")
	} else if t.mayStart() {
		t.begin()
	}
}

func (t *taskRunner) stepBackoff() {
	switch {
	case t.alloc.ending() && !t.task.Poststop():
		if t.mustStop() || !t.alloc.rec.Stopping {
			t.die("Killed", "The task was stopped while it waited for its restart")
		}
	case t.core().reached(t.rec.RestartAt):
		t.begin()
	}
}

// begin begins a start, if it is possible now.
func (t *taskRunner) begin() {
	a := t.alloc
	if !a.built || (!a.core.contacted && a.job != cluster.JobSystem) {
		return
	}
	s := a.core.drivers.state(t.task.Driver)
	if s == nil {
		t.rec.State.Failed = true
		t.die("Driver Failure", fmt.Sprintf("The node has no driver %q", t.task.Driver))
		return
	}
	if s.life == 0 {
		t.waitFor(cluster.WaitDriver, 0, "the driver "+s.name+" is not running")
		return
	}
	t.endWait()
	t.start = startState{number: t.start.number + 1}
	t.rec.ID, t.rec.Handle = a.core.options.NewTaskID(a.id(), t.task.Name), nil
	t.rec.Stopping, t.rec.StopBegan, t.rec.SignalAt = false, 0, 0
	t.rec.End, t.rec.Exit = EndNone, nil
	t.enter(PhaseStarting)
}

func (t *taskRunner) stepStarting() {
	a, shell := t.alloc, t.core().options.Shell
	if !t.start.asked {
		switch {
		case t.mustStop():
			t.over(EndStopped, nil)
		case a.saves.failures > 0:
			t.waitFor(cluster.WaitDisk, 0, "the client cannot write its record to the disk")
		case t.durable() && t.ref().Life != 0:
			t.start.asked = true
			t.start.deadline = a.core.now.Boot + a.core.options.StartTimeout
			t.start.knownTo = t.ref().Life
			shell.Start(t.ref(), a.rec.Alloc, answer2(t, t.started))
		}
		return
	}
	// A driver that does not answer is killed, which ends the call: a start that succeeds later would
	// make a second copy.
	deadline := t.start.deadline
	if t.mustStop() {
		t.beginStop()
		deadline = min(deadline, t.rec.StopBegan+t.shutdownDelay()+t.task.KillTimeout)
		t.waitFor(cluster.WaitDriver, 0, "the driver "+t.task.Driver+" has not answered whether it has started the task")
	}
	if a.core.reached(deadline) && !t.start.killed {
		t.start.killed = true
		t.event("Driver Failure", "The driver did not start the task in time, and the client restarts the driver")
		shell.Abandon(t.task.Driver, t.start.knownTo)
	}
}

// started takes in the answer to a start.
func (t *taskRunner) started(handle driver.Handle, err error) {
	now := t.core().now
	if err == nil {
		t.start = startState{number: t.start.number, knownTo: t.start.knownTo}
		t.rec.Handle, t.rec.RunningSince = handle, now.Boot
		t.rec.State.State, t.rec.State.StartedAt, t.rec.State.FinishedAt = cluster.TaskRunning, now.Wall, time.Time{}
		t.event("Started", "Task started by client")
		t.enter(PhaseRunning)
		return
	}
	end := EndNotStarted
	switch class := driver.ClassOf(err); {
	case class.Uncertain():
		end = EndLost
	case class != driver.Recoverable:
		end = EndRefused
	}
	t.event("Driver Failure", "failed to start task: "+err.Error())
	t.over(end, nil)
}

func (t *taskRunner) stepRunning() {
	t.watch()
	if t.mustStop() {
		t.beginStop()
		t.stepStop()
	} else if t.alloc.rec.Stopping && t.alloc.delayed() && !t.task.Poststop() {
		t.waitFor(cluster.WaitShutdownDelay, t.alloc.rec.StopBegan+t.alloc.group.ShutdownDelay, "the shutdown delay of the group")
	}
}

// watch makes the present life of the driver know the task, and keeps one wait open there.
func (t *taskRunner) watch() {
	ref, shell := t.ref(), t.core().options.Shell
	if t.core().drivers.state(t.task.Driver) == nil {
		t.event("Driver Failure", fmt.Sprintf("The node has no driver %q any more", t.task.Driver))
		t.over(EndLost, nil)
		return
	}
	if ref.Life == 0 || t.start.recovering || t.start.waiting || !t.core().reached(t.start.retryAt) {
		return
	}
	if t.start.knownTo != ref.Life {
		t.start.recovering = true
		shell.Recover(ref, t.rec.Handle, answer(t, func(err error) { t.recovered(ref.Life, err) }))
		return
	}
	t.start.waiting = true
	shell.Wait(ref, answer2(t, t.waited))
}

func (t *taskRunner) recovered(life Life, err error) {
	t.start.recovering = false
	switch class := driver.ClassOf(err); {
	case err == nil:
		t.start.knownTo, t.start.failures, t.start.stopAsked = life, 0, false
	case class.Uncertain():
		t.retry()
		t.abandonSilent(life, class)
	default:
		t.event("Driver Failure", "the driver could not take the task over: "+err.Error())
		t.over(EndLost, nil)
	}
}

// retry waits before the next call.
func (t *taskRunner) retry() {
	o := t.core().options
	t.start.failures++
	t.start.retryAt = t.core().now.Boot + backoff(t.start.failures, o.MinRetry, o.MaxRetry)
}

// abandonSilent kills a life of the driver that has failed to answer several times: the next one
// may answer.
func (t *taskRunner) abandonSilent(life Life, class driver.Class) {
	if class == driver.Deadline && t.start.failures%maxSilence == 0 {
		t.core().options.Logger.Warn("a driver does not answer and is restarted", "driver", t.task.Driver, "alloc", t.alloc.id(), "task", t.task.Name)
		t.core().options.Shell.Abandon(t.task.Driver, life)
	}
}

// maxSilence is how often a driver may leave a call about one task without an answer, before the
// client restarts the driver. maxWaitFailures is how often it may fail to say how a task ended,
// before the task counts as lost.
const (
	maxSilence      = 3
	maxWaitFailures = 5
)

// waited takes in the end of a task. If the driver has lost the result, it may still have it when
// it is asked for the state.
func (t *taskRunner) waited(exit driver.ExitResult, err error) {
	if err == nil {
		t.exited(exit)
		return
	}
	if driver.ClassOf(err) == driver.Gone {
		t.start.waiting = false // the next life will be asked
		t.start.knownTo = 0
		return
	}
	t.inspect()
}

// inspect asks the driver for the state of the task. The wait stays closed until then.
func (t *taskRunner) inspect() {
	t.core().options.Shell.Inspect(t.ref(), answer2(t, func(s driver.Status, err error) {
		switch class := driver.ClassOf(err); {
		case err == nil && s.State == driver.TaskExited && s.Exit != nil:
			t.exited(*s.Exit)
		case err == nil && s.State == driver.TaskExited, err != nil && class == driver.NotFound:
			t.exited(driver.ExitResult{Unknown: true})
		case err != nil && class == driver.Gone:
			t.start.waiting, t.start.knownTo = false, 0
		case t.start.failures >= maxWaitFailures:
			t.event("Driver Failure", "the driver does not say how the task ended")
			t.over(EndLost, nil)
		default:
			t.start.waiting = false
			t.retry()
		}
	}))
}

// exited ends a start with the task's own result.
func (t *taskRunner) exited(exit driver.ExitResult) {
	end := EndExit
	if t.rec.SignalAt != 0 || t.start.killed {
		end = EndStopped
	}
	t.event("Terminated", terminated(exit))
	t.over(end, &exit)
}

func terminated(exit driver.ExitResult) string {
	if exit.Unknown {
		return "The exit code is unknown"
	}
	text := "Exit Code: " + strconv.Itoa(exit.Code)
	if exit.Signal != 0 {
		text += ", Signal: " + strconv.Itoa(exit.Signal)
	}
	if exit.OOMKilled {
		text += ", the kernel killed the task because it used too much memory"
	}
	return text
}

// over ends a start. What is left of it is removed next.
func (t *taskRunner) over(end End, exit *driver.ExitResult) {
	if exit == nil {
		exit = &driver.ExitResult{Unknown: true}
	}
	t.rec.End, t.rec.Exit = end, exit
	t.start = startState{number: t.start.number + 1}
	t.enter(PhaseCleaning)
}

// cleanWithoutDriver is how long the core waits for a driver before it removes what is left of a
// start without it.
const cleanWithoutDriver = 30 * time.Second

func (t *taskRunner) stepCleaning() {
	if t.start.cleaning || !t.tried() || !t.core().reached(t.start.cleanAt) {
		return
	}
	ref := t.ref()
	if s := t.core().drivers.state(t.task.Driver); s != nil && s.life == 0 {
		if t.start.deadline == 0 {
			t.start.deadline = t.core().now.Boot + cleanWithoutDriver
		}
		if !t.core().reached(t.start.deadline) || !s.capabilities.HostCgroup {
			t.waitFor(cluster.WaitDriver, 0, "the driver "+s.name+" is not running")
			return
		}
	}
	t.start.cleaning = true
	t.core().options.Shell.Clean(ref, answer2(t, func(left []Process, err error) { t.cleaned(ref.Life, left, err) }))
}

// retryClean waits before the next attempt to remove what is left of a start.
func (t *taskRunner) retryClean() {
	t.start.failures++
	t.start.cleanAt = t.core().now.Boot + backoff(t.start.failures, t.core().options.MinRetry, t.core().options.MaxRetry)
}

func (t *taskRunner) cleaned(life Life, left []Process, err error) {
	t.start.cleaning = false
	switch class := driver.ClassOf(err); {
	case err != nil && class == driver.Gone:
	case err != nil:
		t.retryClean()
		t.waitFor(cluster.WaitDriver, 0, "what is left of the task cannot be removed: "+err.Error())
		t.abandonSilent(life, class)
	case len(left) > 0:
		t.start.cleaning = true
		t.waitFor(cluster.WaitProcess, 0, describe(left))
		t.core().options.Shell.AwaitEmpty(t.ref(), answer(t, func(err error) {
			t.start.cleaning = false
			if err != nil {
				t.retryClean()
			}
		}))
	default:
		t.endWait()
		t.finished()
	}
}

// finished decides what follows a start of which nothing is left.
func (t *taskRunner) finished() {
	success := t.rec.Exit.Successful() && t.rec.End == EndExit
	t.rec.ID, t.rec.Handle = "", nil
	t.rec.State.FinishedAt = t.core().now.Wall
	switch {
	case t.rec.End == EndStopped:
		t.die("Killed", "Task successfully killed")
	case success && (t.oneShot() || t.alloc.job.ToCompletion() && t.task.Main()):
		t.die("", "")
	case t.alloc.ending() && (t.alloc.rec.Stopping || !t.task.Poststop()), t.task.Poststop():
		t.rec.State.Failed = !success && (t.task.Poststop() || !t.alloc.ending())
		t.die("Not Restarting", "The allocation is stopping")
	case t.rec.End == EndRefused:
		t.rec.State.Failed = true
		t.die("Not Restarting", "The error cannot be recovered from")
	default:
		t.restart()
	}
}

// restart follows the restart policy.
func (t *taskRunner) restart() {
	now := t.core().now
	policy := t.alloc.group.RestartPolicyOf(t.task, t.alloc.job)
	if t.rec.WindowBegan == 0 || now.Boot >= t.rec.WindowBegan+policy.Interval {
		t.rec.WindowBegan, t.rec.Restarts = now.Boot, 0
	}
	switch {
	case t.rec.Restarts < policy.Attempts:
		t.rec.Restarts++
		t.rec.RestartAt = now.Boot + policy.Delay
	case policy.Mode == cluster.RestartDelay:
		t.rec.RestartAt = t.rec.WindowBegan + policy.Interval
	default:
		t.rec.State.Failed = true
		t.die("Not Restarting", fmt.Sprintf("Exceeded allowed attempts %d in interval %s and mode is %q", policy.Attempts, policy.Interval, policy.Mode))
		return
	}
	t.rec.State.State, t.rec.State.Restarts, t.rec.State.LastRestart = cluster.TaskPending, t.rec.State.Restarts+1, now.Wall
	t.event("Restarting", fmt.Sprintf("Task restarting in %s", t.rec.RestartAt-now.Boot))
	t.enter(PhaseBackoff)
}

// die ends the task for good.
func (t *taskRunner) die(kind, message string) {
	if kind != "" {
		t.event(kind, message)
	}
	t.endWait()
	t.rec.State.State = cluster.TaskDead
	t.enter(PhaseDead)
}

// restore continues a task from its record.
func (t *taskRunner) restore(rebooted bool) {
	t.start.number++
	if rebooted {
		t.rec.StopBegan, t.rec.SignalAt, t.rec.RestartAt, t.rec.WindowBegan, t.rec.RunningSince = 0, 0, 0, 0, 0
	}
	switch {
	case t.rec.Phase == PhaseStarting:
		t.event("Driver Failure", "The client has restarted and does not know whether the task was started: it is destroyed")
		t.over(EndLost, nil)
	case t.rec.Phase == PhaseRunning && rebooted:
		t.event("Terminated", "The machine has restarted: the exit code is unknown")
		t.over(EndLost, nil)
	}
}
