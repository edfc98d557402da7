package client

import (
	"fmt"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// taskRunner runs one task of an allocation. rec is the state that must survive a crash. The other
// fields describe effects in flight for the present start.
type taskRunner struct {
	alloc *allocRunner
	task  *cluster.Task
	rec   *TaskRecord
	waits waits
	start *taskStart
	// interrupted counts the starts in a row that ended with the driver's process.
	interrupted int
}

func newTaskRunner(a *allocRunner, rec *TaskRecord) *taskRunner {
	t := &taskRunner{alloc: a, rec: rec, task: &cluster.Task{Name: rec.State.Name, KillTimeout: cluster.DefaultKillTimeout}}
	for _, task := range a.group.Tasks {
		if task != nil && task.Name == rec.State.Name {
			t.task = task
		}
	}
	t.start, t.waits.task = newStart(t), t
	return t
}

func (t *taskRunner) core() *Core { return t.alloc.core }

// ref names the present start and the present process of the driver.
func (t *taskRunner) ref() TaskRef {
	return TaskRef{Alloc: t.alloc.id(), Task: t.task.Name, ID: t.rec.ID, Driver: t.task.Driver, Generation: t.core().drivers.generation(t.task.Driver)}
}

// enter starts a phase. Effects of the phase wait until the record is saved.
func (t *taskRunner) enter(p Phase) {
	t.rec.Phase = p
	t.alloc.touch()
	t.start.needs = t.alloc.saves.version
}

// durable reports whether the record of the present phase is on disk.
func (t *taskRunner) durable() bool { return t.alloc.saves.saved >= t.start.needs }

// tried reports whether the core has at least tried to save the record. It is enough for a stop,
// because a full disk must not prevent it.
func (t *taskRunner) tried() bool { return t.alloc.saves.tried >= t.start.needs }

// event adds an event to the task's state.
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
		t.start.stepStarting()
	case PhaseRunning:
		t.stepRunning()
	case PhaseCleaning:
		t.start.clean()
	case PhaseBackoff:
		t.stepBackoff()
	case PhaseDead:
	}
}

func (t *taskRunner) stepWaiting() {
	if t.rec.Unrecorded && (t.mustStop() || !t.alloc.order.ending()) {
		t.enter(PhaseCleaning)
	} else if t.mustStop() {
		t.die("Killed", "The task was stopped before it started")
	} else if !t.restarting() && t.mayStart() {
		t.begin()
	}
}

func (t *taskRunner) stepBackoff() {
	switch {
	case t.alloc.order.ending() && !t.task.Poststop():
		if t.mustStop() || !t.alloc.rec.Stopping {
			t.die("Killed", "The task was stopped while it waited for its restart")
		}
	case !t.restarting() && t.core().reached(t.rec.RestartAt):
		t.begin()
	}
}

// begin starts the task if this is possible now.
func (t *taskRunner) begin() {
	a := t.alloc
	if a.saves.failures > 0 {
		t.waits.setDisk()
		return
	}
	if !a.built || (!a.core.contacted && a.job != cluster.JobSystem) {
		return
	}
	if !a.mounts.ready(t) {
		return
	}
	s := a.core.drivers.state(t.task.Driver)
	if s == nil {
		t.rec.State.Failed = true
		t.die("Driver Failure", fmt.Sprintf("The node has no driver %q", t.task.Driver))
		return
	}
	if s.generation == 0 {
		t.waits.set(cluster.WaitDriver, 0, "the driver "+s.name+" is not running")
		return
	}
	if a.core.ledger.mustWait(t) {
		return
	}
	t.waits.end()
	t.start = newStart(t)
	t.rec.ID, t.rec.Handle = a.core.options.NewTaskID(a.id(), t.task.Name), nil
	t.rec.Stopping, t.rec.StopBegan, t.rec.SignalAt = false, 0, 0
	t.rec.End, t.rec.Exit = EndNone, nil
	t.rec.HostCgroup = s.capabilities.HostCgroup
	t.enter(PhaseStarting)
}

func (t *taskRunner) stepRunning() {
	t.start.watch()
	if t.rec.Phase != PhaseRunning {
		return
	}
	if t.rec.Stopping && t.rec.SignalAt == 0 && !t.mustRestart() && t.alloc.mounts.held() {
		t.rec.Stopping = false // volumes have needed the plugin since the task had to stop
		t.alloc.touch()
	}
	if t.mustStop() || t.rec.Stopping || t.mustRestart() && !t.start.announces() {
		t.beginStop()
		t.start.stop()
	} else if t.alloc.mounts.held() {
		t.alloc.mounts.holdNote(t)
	} else if t.alloc.rec.Stopping && t.alloc.order.delayed() && !t.task.Poststop() {
		t.waits.set(cluster.WaitShutdownDelay, later(t.alloc.rec.StopBegan, t.alloc.group.ShutdownDelay), "the shutdown delay of the group")
	}
}

// exited ends a start with the task's result.
func (t *taskRunner) exited(exit driver.ExitResult) {
	end := EndExit
	if t.rec.SignalAt != 0 || t.start.kills.state != killNone {
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

// over ends a start. The core removes its remains next.
func (t *taskRunner) over(end End, exit *driver.ExitResult) {
	if exit == nil {
		exit = &driver.ExitResult{Unknown: true}
	}
	t.rec.End, t.rec.Exit = end, exit
	for _, f := range t.start.followers {
		f.ended()
	}
	t.start = newStart(t)
	t.enter(PhaseCleaning)
}

// maxInterrupted is the number of starts in a row that may end with the driver's process before the
// restart policy applies. Such a task may be the cause of its driver's end.
const maxInterrupted = 3

// unrecorded reports whether the client removes the remains of starts of which it has no record.
func (t *taskRunner) unrecorded() bool { return t.rec.Phase == PhaseCleaning && t.rec.Unrecorded }

// finished decides what happens after the remains of a start are removed.
func (t *taskRunner) finished() {
	if t.unrecorded() {
		t.rec.Unrecorded = false
		if !t.mustStop() {
			t.enter(PhaseWaiting)
			return
		}
		message := "The task was stopped before it started"
		if t.alloc.rec.Alloc.ClientStatus != cluster.ClientPending {
			message = "The client has no record of a start of the task, and has removed what may have been left of one"
		}
		t.die("Killed", message)
		return
	}
	if t.rec.End != EndInterrupted {
		t.interrupted = 0
	}
	success := t.rec.Exit.Successful() && t.rec.End == EndExit
	completed := success && (t.oneShot() || t.alloc.job.ToCompletion() && t.task.Main())
	restarting := t.restarting() && (t.rec.End == EndStopped || t.rec.End == EndExit)
	counts := t.rec.Unhealthy
	t.rec.ID, t.rec.Handle, t.rec.Restarting, t.rec.Unhealthy = "", nil, false, false
	t.rec.State.FinishedAt = t.core().now.Wall
	switch {
	case restarting && !completed && counts:
		t.restart()
	case restarting && !completed:
		t.restartNow()
	case t.rec.End == EndStopped:
		t.rec.State.Failed = t.rec.State.Failed || t.task.Poststop() // it did not end by itself in time
		t.die("Killed", "Task successfully killed")
	case completed:
		t.die("", "")
	case t.task.Poststop():
		t.rec.State.Failed = true
		t.die("Not Restarting", "A poststop task is not restarted")
	case t.alloc.order.ending():
		t.die("Not Restarting", "The allocation is stopping")
	case t.rec.End == EndRefused:
		t.rec.State.Failed = true
		t.die("Not Restarting", "The error cannot be recovered from")
	case t.rec.End == EndInterrupted && t.interrupted < maxInterrupted:
		t.interrupted++
		t.rec.RestartAt = t.core().now.Boot + backoff(t.interrupted, t.core().options.MinRetry, t.core().options.MaxRetry)
		t.rec.State.State = cluster.TaskPending
		t.event("Restarting", "The driver's process ended while it started the task, and the client retries. This does not count as a restart of the task's policy")
		t.enter(PhaseBackoff)
	default:
		t.restart()
	}
}

// restart applies the restart policy.
func (t *taskRunner) restart() {
	now := t.core().now
	policy := t.alloc.group.RestartPolicyOf(t.task, t.alloc.job)
	if t.rec.WindowBegan == 0 || now.Boot >= later(t.rec.WindowBegan, policy.Interval) {
		t.rec.WindowBegan, t.rec.Restarts = now.Boot, 0
	}
	switch {
	case t.rec.Restarts < policy.Attempts:
		t.rec.Restarts++
		t.rec.RestartAt = later(now.Boot, policy.Delay)
	case policy.Mode == cluster.RestartDelay:
		t.rec.RestartAt = later(t.rec.WindowBegan, policy.Interval)
	default:
		t.rec.State.Failed = true
		t.die("Not Restarting", fmt.Sprintf("Exceeded allowed attempts %d in interval %s and mode is %q", policy.Attempts, policy.Interval, policy.Mode))
		return
	}
	t.rec.State.State, t.rec.State.Restarts, t.rec.State.LastRestart = cluster.TaskPending, t.rec.State.Restarts+1, now.Wall
	t.event("Restarting", fmt.Sprintf("Task restarting in %s", t.rec.RestartAt-now.Boot))
	t.enter(PhaseBackoff)
}

// die ends the task. It will not start again.
func (t *taskRunner) die(kind, message string) {
	if kind != "" {
		t.event(kind, message)
	}
	t.waits.end()
	t.rec.State.State, t.rec.DeadSince = cluster.TaskDead, t.core().now.Boot
	t.enter(PhaseDead)
	t.alloc.report.noteUrgent()
}

// restore continues a task from its record.
func (t *taskRunner) restore(rebooted bool) {
	switch {
	case t.rec.Phase == PhaseStarting:
		t.event("Driver Failure", "The client restarted and does not know whether the task was started, so it destroys the task")
		t.over(EndLost, nil)
	case t.rec.Phase == PhaseRunning && rebooted:
		t.event("Terminated", "The machine restarted, so the exit code is unknown")
		t.over(EndLost, nil)
	case t.rec.Phase == PhaseRunning:
		t.start.ending.restored = true
	case t.rec.Phase == PhaseBackoff:
		t.boundBackoff()
	}
}

// boundBackoff limits the wait for a restart to the delay of the policy, or to the end of its window: the
// boot clock may have gone back, also if it is still after all that has happened.
func (t *taskRunner) boundBackoff() {
	policy, now := t.alloc.group.RestartPolicyOf(t.task, t.alloc.job), t.core().now.Boot
	latest := later(now, max(policy.Delay, t.core().options.MaxRetry))
	if t.rec.RestartAt > latest && t.rec.RestartAt != later(t.rec.WindowBegan, policy.Interval) {
		t.rec.RestartAt = latest
		t.alloc.touch()
	}
}

// wait describes for operators what a task waits for. The zero value means that it waits for nothing.
type wait struct {
	kind   cluster.WaitKind
	until  time.Time
	at     time.Duration
	detail string
}

func (w wait) report() *cluster.TaskWait {
	if w.kind == "" {
		return nil
	}
	return &cluster.TaskWait{For: w.kind, Until: w.until, Detail: w.detail}
}

// waits sets for operators what a task waits for.
type waits struct {
	task *taskRunner
	// present is what the task waits for.
	present wait
}

// set sets what the task waits for. at is the end of the wait on the boot clock, or zero if it
// is unknown.
func (w *waits) set(kind cluster.WaitKind, at time.Duration, detail string) {
	if w.present.kind == kind && w.present.at == at && w.present.detail == detail {
		return
	}
	w.present = wait{kind: kind, at: at, detail: detail}
	if at != 0 {
		w.present.until = w.task.core().now.wallAt(at)
	}
	w.task.alloc.report.note()
}

// setDisk sets that a start waits until the record of the allocation is on disk.
func (w *waits) setDisk() {
	w.set(cluster.WaitDisk, 0, diskTrouble(w.task.alloc))
}

func (w *waits) end() {
	if w.present.kind != "" {
		w.present = wait{}
		w.task.alloc.report.note()
	}
}
