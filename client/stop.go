package client

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// shutdownDelay is the delay of the task before the kill signal.
func (t *taskRunner) shutdownDelay() time.Duration {
	if t.alloc.order.skipsDelays() {
		return 0
	}
	return t.task.ShutdownDelay
}

// beginStop records that the task must stop now.
func (t *taskRunner) beginStop() {
	if t.rec.Stopping {
		return
	}
	t.rec.Stopping, t.rec.StopBegan = true, t.core().now.Boot
	sent := "Asked the driver to stop the task"
	if t.task.KillSignal != "" {
		sent = "Sent " + t.task.KillSignal
	}
	t.event("Killing", fmt.Sprintf("%s. Waiting %s before force killing", sent, t.task.KillTimeout))
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
	w.set(cluster.WaitDisk, 0, "the client cannot write its record to the disk")
}

func (w *waits) end() {
	if w.present.kind != "" {
		w.present = wait{}
		w.task.alloc.report.note()
	}
}

// stop stops a running task: shutdown delay, kill signal, grace (the kill timeout), SIGKILL. The
// end of the task is the matter of [ending].
func (s *taskStart) stop() {
	c := s.t.core()
	if signalDue := later(s.t.rec.StopBegan, s.t.shutdownDelay()); !c.reached(signalDue) {
		s.t.waits.set(cluster.WaitShutdownDelay, signalDue, "the shutdown delay of the task")
		return
	}
	s.signal()
	if s.kills.due() {
		s.kills.send()
	}
	if s.kills.state == killDone && c.reached(s.ending.collectBy) {
		s.kills.state = killRequested
		s.ending.giveUp()
	}
}

// signal requests the driver to send the kill signal. The grace counts from the first request. If the
// driver restarts meanwhile, the core sends the request again with the rest of the grace.
func (s *taskStart) signal() {
	ref := s.t.ref()
	if s.stopRequested || ref.Generation == 0 || s.heldBy != ref.Generation || s.kills.state >= killDone {
		return
	}
	c := s.t.core()
	s.stopRequested = true
	s.ending.stops(ref.Generation)
	grace := s.t.task.KillTimeout
	s.t.alloc.mounts.leaves(s.t)
	if s.t.rec.SignalAt == 0 {
		s.t.rec.SignalAt = max(1, c.now.Boot) // zero means not requested
		s.t.alloc.touch()
	} else {
		grace = max(0, later(s.t.rec.SignalAt, grace, killMargin)-c.now.Boot)
	}
	name := s.t.task.KillSignal
	if s.defaultSignal {
		name = ""
	}
	s.t.waits.set(cluster.WaitGrace, later(s.t.rec.SignalAt, s.t.task.KillTimeout), "")
	c.options.Shell.Stop(ref, grace, name, answer(s, func(err error) { s.stopAnswered(ref.Generation, name, err) }))
}

func (s *taskStart) stopAnswered(generation Generation, name string, err error) {
	if s.ending.stopping != generation {
		return // the driver has restarted, and its new process has the call
	}
	s.ending.stopping = 0
	switch class := driver.ClassOf(err); {
	case err == nil || class == driver.NotFound || class == driver.Deadline:
	case class == driver.Gone:
		s.stopRequested = false
	case name != "":
		s.t.event("Driver Failure", fmt.Sprintf("The driver could not send %s, and the client requests its default signal: %v", name, err))
		s.stopRequested, s.defaultSignal = false, true
	default:
		s.t.event("Driver Failure", "The driver did not stop the task, and the client kills the task after the kill timeout: "+err.Error())
	}
}
