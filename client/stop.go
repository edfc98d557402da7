package client

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/driver"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// shutdownDelay is the task's own delay before the signal.
func (t *taskRunner) shutdownDelay() time.Duration {
	if t.alloc.skipsDelays() {
		return 0
	}
	return t.task.ShutdownDelay
}

// beginStop notes that the task's turn to stop has come.
func (t *taskRunner) beginStop() {
	if t.rec.Stopping {
		return
	}
	t.rec.Stopping, t.rec.StopBegan = true, t.core().now.Boot
	t.event("Killing", fmt.Sprintf("Sent interrupt. Waiting %s before force killing", t.task.KillTimeout))
}

// stepStop stops a running task: the shutdown delay, the signal, the grace, SIGKILL. The end of the
// task comes through the open wait.
func (t *taskRunner) stepStop() {
	c := t.core()
	if signalDue := t.rec.StopBegan + t.shutdownDelay(); !c.reached(signalDue) {
		t.waitFor(cluster.WaitShutdownDelay, signalDue, "the shutdown delay of the task")
		return
	}
	t.signal()
	if t.killDue() {
		t.kill()
	}
	if t.start.killed && !t.start.inspected && c.reached(t.start.collectBy) {
		t.start.inspected = true
		t.waitFor(cluster.WaitDriver, 0, "the driver "+t.task.Driver+" does not say how the task ended")
		t.giveUpWaiting()
	}
}

// signal asks the driver to send the signal. The grace counts from the first time. A later life of
// the driver gets the rest of it.
func (t *taskRunner) signal() {
	ref := t.ref()
	if t.start.stopAsked || ref.Life == 0 || t.start.knownTo != ref.Life || t.start.killed {
		return
	}
	c := t.core()
	t.start.stopAsked = true
	if t.rec.SignalAt == 0 {
		t.rec.SignalAt = c.now.Boot
		t.alloc.touch()
	}
	name := t.task.KillSignal
	if t.start.defaultSignal {
		name = ""
	}
	grace := max(0, t.rec.SignalAt+t.task.KillTimeout-c.now.Boot)
	t.waitFor(cluster.WaitGrace, t.rec.SignalAt+t.task.KillTimeout, "")
	c.options.Shell.Stop(ref, grace, name, answer(t, func(err error) { t.stopAnswered(name, err) }))
}

func (t *taskRunner) stopAnswered(name string, err error) {
	switch class := driver.ClassOf(err); {
	case err == nil || class == driver.NotFound || class == driver.Deadline:
	case class == driver.Gone:
		t.start.stopAsked = false
	case name != "":
		t.event("Driver Failure", fmt.Sprintf("the driver did not send %s, and the client asks for its default signal: %v", name, err))
		t.start.stopAsked, t.start.defaultSignal = false, true
	default:
		t.event("Driver Failure", "the driver did not stop the task, which is killed after the grace: "+err.Error())
	}
}

// killDue reports whether the grace is over. A task whose driver is away gets no signal: it is
// killed when the driver has not come back for the length of the grace and [StopSlack].
func (t *taskRunner) killDue() bool {
	if t.rec.SignalAt != 0 {
		return t.core().reached(t.rec.SignalAt + t.task.KillTimeout)
	}
	t.waitFor(cluster.WaitDriver, 0, "the driver "+t.task.Driver+" is not running")
	return t.core().reached(t.rec.StopBegan + t.shutdownDelay() + t.task.KillTimeout + StopSlack)
}

// kill sends SIGKILL to what is left of the task.
func (t *taskRunner) kill() {
	c := t.core()
	if t.start.killing || t.start.killed || !c.reached(t.start.killAt) {
		return
	}
	t.start.killing = true
	c.options.Shell.Kill(t.ref(), answer2(t, t.killAnswered))
}

func (t *taskRunner) killAnswered(left []Process, err error) {
	c := t.core()
	switch {
	case err != nil:
		t.retryKill()
		t.waitFor(cluster.WaitDriver, 0, "the task cannot be killed: "+err.Error())
	case len(left) > 0:
		t.waitFor(cluster.WaitProcess, 0, describe(left))
		c.options.Shell.AwaitEmpty(t.ref(), answer(t, func(err error) {
			t.start.killing = false
			if err != nil {
				t.retryKill()
			}
		}))
	default:
		t.start.killing, t.start.killed = false, true
		t.start.collectBy = c.now.Boot + StopSlack
	}
}

// retryKill waits before the next attempt to kill.
func (t *taskRunner) retryKill() {
	t.start.killing = false
	t.start.failures++
	t.start.killAt = t.core().now.Boot + backoff(t.start.failures, t.core().options.MinRetry, t.core().options.MaxRetry)
}

// giveUpWaiting ends the start of a task that was killed and whose end the driver does not tell.
func (t *taskRunner) giveUpWaiting() {
	if t.ref().Life == 0 {
		t.exited(driver.ExitResult{Unknown: true})
		return
	}
	t.core().options.Shell.Inspect(t.ref(), answer2(t, func(s driver.Status, err error) {
		exit := driver.ExitResult{Unknown: true}
		if err == nil && s.Exit != nil {
			exit = *s.Exit
		}
		t.exited(exit)
	}))
}

// describe names processes that cannot be killed.
func describe(left []Process) string {
	var texts []string
	for _, p := range left {
		texts = append(texts, fmt.Sprintf("process %d (%s) in state %s", p.PID, p.Command, p.State))
	}
	return strings.Join(texts, ", ") + " does not die"
}

// wait is what a task waits for, as operators see it. The zero value is nothing.
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

// waitFor notes what the task waits for, until a time of the boot clock, or zero.
func (t *taskRunner) waitFor(kind cluster.WaitKind, at time.Duration, detail string) {
	if t.wait.kind == kind && t.wait.at == at && t.wait.detail == detail {
		return
	}
	t.wait = wait{kind: kind, at: at, detail: detail}
	if at != 0 {
		t.wait.until = t.core().wallAt(at)
	}
	t.alloc.report.version++
	t.core().changed = true
}

func (t *taskRunner) endWait() {
	if t.wait.kind != "" {
		t.wait = wait{}
		t.alloc.report.version++
	}
}
