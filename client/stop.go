package client

import (
	"fmt"
	"strings"
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
	sent := "Requested the end of the task from its driver"
	if t.task.KillSignal != "" {
		sent = "Sent " + t.task.KillSignal
	}
	t.event("Killing", fmt.Sprintf("%s. Waiting %s before force killing", sent, t.task.KillTimeout))
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

// killing kills the processes of one start.
type killing struct {
	s     *taskStart
	state killState
	// unkillable: processes of the start have got SIGKILL and do not end.
	unkillable bool
	// driverMissed is when the signal was due while the driver was down, or zero.
	driverMissed time.Duration
	// at is the earliest time for the next attempt.
	at time.Duration
}

// killState describes how far the client itself has killed the processes of a start.
type killState uint8

const (
	killNone      killState = iota
	killCalled              // a call to kill is in flight, or processes that are left must end
	killDone                // no process is left, and the driver may still return the result
	killRequested           // the result is late, and the core has requested it from the driver
)

// killMargin is how long after the grace the client kills a task that its driver should have
// killed. The driver sends the signal a little later than the client requests it, and the task must
// get its whole grace.
const killMargin = 500 * time.Millisecond

// killMarginOfContainers replaces [killMargin] if only the driver can kill the task. DestroyTask by force
// is then the only kill, and the driver would not have the exit code after it. So a driver of a busy
// node has time to kill the task, and to report its end.
const killMarginOfContainers = 5 * time.Second

func (k *killing) margin() time.Duration {
	if k.s.t.rec.HostCgroup {
		return killMargin
	}
	return killMarginOfContainers
}

// due reports whether the client must kill the task now. If the driver is down, the task gets
// no signal. The client kills it after it has waited for the driver for the grace and [StopSlack].
// The time in which no client ran does not count, because the driver may have been healthy then.
func (k *killing) due() bool {
	s := k.s
	if s.t.rec.SignalAt != 0 {
		return s.t.core().reached(later(s.t.rec.SignalAt, s.t.task.KillTimeout, k.margin()))
	}
	if k.state == killNone {
		s.t.waits.set(cluster.WaitDriver, 0, "the driver "+s.t.task.Driver+" is not running")
	}
	if k.driverMissed == 0 {
		k.driverMissed = s.t.core().now.Boot
	}
	return s.t.core().reached(later(k.driverMissed, s.t.task.KillTimeout, StopSlack))
}

// send sends SIGKILL to the processes of the task.
func (k *killing) send() {
	s, c := k.s, k.s.t.core()
	if k.state != killNone || s.ending.keepsExit() || !c.reached(k.at) {
		return
	}
	k.state = killCalled
	ref := s.t.ref()
	c.options.Shell.Kill(ref, replyPair(s, func(left []Process, err error) { k.answered(ref.Generation, left, err) }))
}

func (k *killing) answered(generation Generation, left []Process, err error) {
	s, c := k.s, k.s.t.core()
	switch {
	case err != nil:
		k.again()
		s.t.waits.set(cluster.WaitDriver, 0, "the task could not be killed, and the client retries: "+err.Error())
		s.failures++
		s.abandonSilent(generation, driver.ClassOf(err), s.failures)
	case len(left) > 0:
		s.t.waits.set(cluster.WaitProcess, 0, describe(left))
		k.unkillable = true
		c.options.Shell.AwaitEmpty(s.t.ref(), answer(s, func(err error) {
			k.state, k.unkillable = killNone, err != nil
			if err != nil {
				k.again()
			}
		}))
	default:
		k.state = killDone
		s.ending.collectBy = c.now.Boot + StopSlack
		s.t.waits.set(cluster.WaitDriver, 0, "the driver "+s.t.task.Driver+" has not reported how the task ended")
	}
}

// again waits before the next attempt to kill.
func (k *killing) again() {
	k.state = killNone
	k.at = k.s.t.core().now.Boot + killInterval
}

// killInterval is the wait after a kill whose outcome is unknown.
const killInterval = time.Second

// withoutDriver kills the processes of the start while its driver is down. If the driver comes
// back and still starts the task, clean removes it later.
func (k *killing) withoutDriver() {
	s := k.s
	if k.state != killNone || !s.t.rec.HostCgroup && !s.t.alloc.orphan() {
		return
	}
	k.state = killCalled
	s.t.core().options.Shell.Kill(s.t.ref(), replyPair(s, func([]Process, error) { k.state = killDone }))
}

// ofOrphan reports whether the processes of an orphan are being killed. The shell gives them time to end, and
// must not kill the next start of the task after that.
func (k *killing) ofOrphan() bool { return k.state == killCalled && k.s.t.alloc.orphan() }

// describe is a text for operators about processes that cannot be killed.
func describe(left []Process) string {
	var texts []string
	for _, p := range left {
		texts = append(texts, fmt.Sprintf("process %d (%s) in state %s", p.PID, p.Command, p.State))
	}
	return strings.Join(texts, ", ") + " does not die"
}
