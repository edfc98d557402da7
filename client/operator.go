package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Errors of requests of operators.
var (
	// ErrUnknownAlloc: the node does not have the allocation.
	ErrUnknownAlloc = errors.New("the node does not have the allocation")
	// ErrUnknownTask: the allocation does not have the task.
	ErrUnknownTask = errors.New("the allocation does not have the task")
	// ErrNotRunning: the allocation or the task does not run.
	ErrNotRunning = errors.New("not running")
	// ErrDisk: at present the client cannot write its records to the disk.
	ErrDisk = errors.New("the client cannot write its records to the disk")
)

// TaskInfo describes a task for [Operator.Tasks].
type TaskInfo struct {
	// Ref names the present start of the task. Its Generation is zero while the driver is down. Its
	// ID is empty if nothing is left of any start.
	Ref TaskRef
	// Running: the driver has started the task, and the client has not recorded its end.
	Running bool
	// State is the state that the client reports: "pending", "running" or "dead".
	State string
	// Capabilities are the capabilities of the driver, zero while it is down.
	Capabilities driver.Capabilities
}

// Operator posts the requests of operators. Its methods are safe for concurrent use.
type Operator struct{ core *Core }

// Operator returns the requests of operators to the core.
func (c *Core) Operator() Operator { return Operator{c} }

// Tasks requests the tasks of an allocation, in the order of its job. The next step calls reply,
// which must not block. The error is [ErrUnknownAlloc].
func (o Operator) Tasks(id cluster.AllocID, reply func([]TaskInfo, error)) {
	o.core.inbox.post(func() {
		a := o.core.alloc(id)
		if a == nil || a.orphan() {
			reply(nil, ErrUnknownAlloc)
			return
		}
		infos := make([]TaskInfo, len(a.tasks))
		for i, t := range a.tasks {
			infos[i] = infoOf(t)
		}
		reply(infos, nil)
	})
}

func infoOf(t *taskRunner) TaskInfo {
	i := TaskInfo{Ref: t.ref(), Running: t.rec.Phase == PhaseRunning, State: string(t.rec.State.State)}
	if d := t.core().drivers.state(t.task.Driver); d != nil && d.generation != 0 {
		i.Capabilities = d.capabilities
	}
	return i
}

// Checks requests the states of the checks of an allocation, in the order of its job. The next step calls reply, which
// must not block. The error is [ErrUnknownAlloc].
func (o Operator) Checks(id cluster.AllocID, reply func(*cluster.Allocation, []checks.Report, error)) {
	o.core.inbox.post(func() {
		switch a := o.core.alloc(id); {
		case a == nil || a.orphan():
			reply(nil, nil, ErrUnknownAlloc)
		case a.rec.Ended || a.checks.set == nil:
			reply(a.rec.Alloc, nil, nil)
		default:
			reply(a.rec.Alloc, a.checks.set.Reports(), nil)
		}
	})
}

// Restart requests a restart of a running task, or of all running tasks if task is empty. The
// restart policy does not count it. With all, the whole allocation stops and starts again in the
// usual order, with its prestart tasks; task must be empty then. A step calls reply, which must not
// block, when the record is on disk. From then on a crash of the client does not cancel the
// restart. The error wraps an error of this package. After [ErrDisk] the restart may still happen
// later; after all other errors it does not happen.
func (o Operator) Restart(id cluster.AllocID, task string, all bool, reply func(error)) {
	o.core.inbox.post(func() {
		a := o.core.alloc(id)
		if a == nil || a.orphan() {
			reply(ErrUnknownAlloc)
			return
		}
		if err := a.restarts.begin(task, all); err != nil {
			reply(err)
			return
		}
		a.restarts.replies = append(a.restarts.replies, savedReply{needs: a.saves.version, reply: reply})
	})
}

// Signaled posts that an operator has sent a signal to a start of a task.
func (o Operator) Signaled(ref TaskRef, signal string) {
	o.core.inbox.post(func() {
		if t := o.running(ref); t != nil {
			t.event("Signaling", "An operator has sent "+signal+" to the task")
		}
	})
}

// follower is a subscriber to the end of one start of a task.
type follower struct{ ended func() }

// Follow calls ended once, in a step, when the start of the task has ended. ended must not block.
// The returned function ends the subscription.
func (o Operator) Follow(ref TaskRef, ended func()) (stop func()) {
	f := &follower{ended: ended}
	o.core.inbox.post(func() {
		t := o.running(ref)
		if t == nil {
			ended()
			return
		}
		t.start.followers = append(t.start.followers, f)
	})
	return func() {
		o.core.inbox.post(func() {
			if t := o.running(ref); t != nil {
				t.start.followers = slices.DeleteFunc(t.start.followers, func(other *follower) bool { return other == f })
			}
		})
	}
}

// running returns the task if this start of it runs, or nil.
func (o Operator) running(ref TaskRef) *taskRunner {
	a := o.core.alloc(ref.Alloc)
	if a == nil {
		return nil
	}
	for _, t := range a.tasks {
		if t.task.Name == ref.Task && t.rec.ID == ref.ID && t.rec.Phase == PhaseRunning {
			return t
		}
	}
	return nil
}

// restarts are the restarts of one allocation that operators have requested.
type restarts struct {
	alloc *allocRunner
	// announcing: the stop of a task waits until the servers have the verdict.
	announcing bool
	// replies are answers to operators that wait for a save.
	replies []savedReply
}

// savedReply is an answer to an operator. It waits until a version of the record is saved.
type savedReply struct {
	needs uint64
	reply func(error)
}

// sendReplies answers operators whose requests are on disk, or could not be saved.
func (r *restarts) sendReplies() {
	saves := &r.alloc.saves
	r.replies = slices.DeleteFunc(r.replies, func(p savedReply) bool {
		switch {
		case saves.saved >= p.needs:
			p.reply(nil)
		case saves.tried >= p.needs:
			p.reply(ErrDisk)
		default:
			return false
		}
		return true
	})
}

// begin starts a restart of one task, of all running tasks, or of the whole allocation.
func (r *restarts) begin(name string, all bool) error {
	a := r.alloc
	switch {
	case a.rec.Ended:
		return fmt.Errorf("%w: the allocation has ended", ErrNotRunning)
	case a.order.ending():
		return fmt.Errorf("%w: the allocation is stopping", ErrNotRunning)
	case a.saves.failures > 0:
		return ErrDisk
	case all && !a.order.anyStarted():
		return fmt.Errorf("%w: no task of the allocation has started", ErrNotRunning)
	case all:
		a.rec.RestartAll = true
		for _, t := range a.tasks {
			if !t.task.Poststop() {
				r.signaled(t, "An operator restarts all tasks of the allocation")
			}
		}
		return nil
	}
	begun := false
	for _, t := range a.tasks {
		switch {
		case name != "" && t.task.Name != name:
			continue
		case t.rec.Phase == PhaseRunning:
			t.rec.Restarting = true
			r.signaled(t, "An operator restarts the task")
			begun = true
		case name != "":
			return fmt.Errorf("%w: task %q is %s", ErrNotRunning, name, t.rec.State.State)
		}
	}
	switch {
	case begun:
		return nil
	case name != "":
		return fmt.Errorf("%w %q: it has %s", ErrUnknownTask, name, strings.Join(r.names(), ", "))
	}
	return fmt.Errorf("%w: no task of the allocation runs", ErrNotRunning)
}

func (r *restarts) names() (names []string) {
	for _, t := range r.alloc.tasks {
		names = append(names, t.task.Name)
	}
	return names
}

// signaled adds the event of a restart. The stop of the task waits until the record is saved.
func (*restarts) signaled(t *taskRunner, message string) {
	t.event("Restart Signaled", message)
	t.start.needs = t.alloc.saves.version
}

// restarting reports whether an operator or a check restarts the task.
func (t *taskRunner) restarting() bool {
	return (t.rec.Restarting || t.alloc.rec.RestartAll && !t.task.Poststop()) && !t.alloc.order.ending()
}

// mustRestart reports whether a running task must stop now because of a restart.
func (t *taskRunner) mustRestart() bool {
	if !t.restarting() || !t.durable() {
		return false
	}
	return t.rec.Restarting || t.task.StopPhase() <= t.alloc.restarts.phase()
}

// announces reports whether the stop of a restart must wait: the servers must have the report that an allocation whose
// health depends on checks is not healthy, so that no traffic comes from the beginning of the shutdown delay on. The stop
// waits for the shutdown delay at most.
func (s *taskStart) announces() bool {
	a, c := s.t.alloc, s.t.core()
	healthy := a.rec.Healthy != nil && *a.rec.Healthy // the end of this step changes it
	if s.t.rec.Stopping || s.t.shutdownDelay() <= 0 || !unlists(a.group) || !healthy && a.report.taken >= a.report.verdict {
		return false
	}
	if s.announced == 0 {
		s.announced = max(1, c.now.Boot) // zero means not begun
	}
	if c.reached(later(s.announced, s.t.shutdownDelay())) {
		return false
	}
	a.restarts.announcing = true
	return true
}

// taken follows a report that the servers have taken.
func (r *restarts) taken() {
	if r.announcing {
		r.announcing = false
		r.alloc.visits.mark()
	}
}

// phase is the phase whose tasks must stop now in a restart of all tasks. [cluster.StopPoststop]
// means that none must stop.
func (r *restarts) phase() cluster.StopPhase {
	now := cluster.StopPoststop
	for _, t := range r.alloc.tasks {
		if p := t.rec.Phase; p == PhaseStarting || p == PhaseRunning || p == PhaseCleaning {
			now = min(now, t.task.StopPhase())
		}
	}
	return now
}

// step starts all tasks again when an operator's restart of the allocation has stopped them. A stop
// of the allocation cancels the restart.
func (r *restarts) step() {
	a := r.alloc
	if !a.rec.RestartAll || !a.order.ending() && r.phase() != cluster.StopPoststop {
		return
	}
	a.rec.RestartAll = false
	a.touch()
	if a.order.ending() {
		return
	}
	a.rec.RestartedAll = true
	for _, t := range a.tasks {
		if t.task.Poststop() {
			continue
		}
		if t.rec.Phase == PhaseDead {
			t.countRestart()
		}
		t.waits.end()
		t.rec.RestartAt = 0
		t.rec.State.State, t.rec.State.StartedAt, t.rec.State.FinishedAt = cluster.TaskPending, time.Time{}, time.Time{}
		t.enter(PhaseWaiting)
	}
}

// restartNow starts the task again because an operator requested it. The restart policy does not
// count this restart.
func (t *taskRunner) restartNow() {
	t.countRestart()
	t.rec.RestartAt = t.core().now.Boot
	t.event("Restarting", "Task restarting because an operator requested it")
	t.enter(PhaseBackoff)
}

// countRestart counts a restart for the servers.
func (t *taskRunner) countRestart() {
	t.rec.State.State, t.rec.State.Restarts, t.rec.State.LastRestart = cluster.TaskPending, t.rec.State.Restarts+1, t.core().now.Wall
}
