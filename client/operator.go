package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/driver"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Errors of what operators ask for.
var (
	// ErrUnknownAlloc: the node does not have the allocation.
	ErrUnknownAlloc = errors.New("the node does not have the allocation")
	// ErrUnknownTask: the allocation does not have the task.
	ErrUnknownTask = errors.New("the allocation does not have the task")
	// ErrNotRunning: what must run for the request does not run.
	ErrNotRunning = errors.New("not running")
	// ErrDisk: the client cannot write its records to the disk now.
	ErrDisk = errors.New("the client cannot write its records to the disk")
)

// TaskInfo is what a core tells of a task.
type TaskInfo struct {
	// Ref names the present start of the task. Its Life is zero while the driver's process is away, its
	// ID is empty if nothing is left of any start.
	Ref TaskRef
	// Running: the driver has started the task, and the client knows of no end.
	Running bool
	// State is what the servers are told: "pending", "running" or "dead".
	State string
	// Capabilities are those of the driver, zero if it is away.
	Capabilities driver.Capabilities
}

// Tasks asks for the tasks of an allocation, in the order of its job. The next step calls reply, which
// must not block. The error is [ErrUnknownAlloc].
func (c *Core) Tasks(id cluster.AllocID, reply func([]TaskInfo, error)) {
	c.inbox.post(func() {
		a := c.alloc(id)
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
	if d := t.core().drivers.state(t.task.Driver); d != nil && d.life != 0 {
		i.Capabilities = d.capabilities
	}
	return i
}

// Restart asks for a restart of a task that runs, or of all tasks that run if task is empty. The
// restart policy does not count it. With all, the whole allocation stops in its order and starts again
// in its order, prestart tasks included; task is empty then. A step calls reply, which must not block,
// when the record is on disk: then the restart survives the client. The error wraps one of this package
// and says why there is no restart, or for [ErrDisk] why it may come later or never.
func (c *Core) Restart(id cluster.AllocID, task string, all bool, reply func(error)) {
	c.inbox.post(func() {
		a := c.alloc(id)
		if a == nil || a.orphan() {
			reply(ErrUnknownAlloc)
			return
		}
		if err := a.restarts.begin(task, all); err != nil {
			reply(err)
			return
		}
		a.restarts.promises = append(a.restarts.promises, promise{needs: a.saves.version, reply: reply})
	})
}

// Signaled posts that an operator has sent a signal to a start of a task.
func (c *Core) Signaled(ref TaskRef, signal string) {
	c.inbox.post(func() {
		if t := c.running(ref); t != nil {
			t.event("Signaling", "An operator has sent "+signal+" to the task")
		}
	})
}

// follower wants to know the end of one start of a task.
type follower struct{ ended func() }

// Follow calls ended once, in a step, when the start of the task has ended. Ended must not block. The
// function that Follow returns ends the interest.
func (c *Core) Follow(ref TaskRef, ended func()) (stop func()) {
	f := &follower{ended: ended}
	c.inbox.post(func() {
		t := c.running(ref)
		if t == nil {
			ended()
			return
		}
		t.start.followers = append(t.start.followers, f)
	})
	return func() {
		c.inbox.post(func() {
			if t := c.running(ref); t != nil {
				t.start.followers = slices.DeleteFunc(t.start.followers, func(other *follower) bool { return other == f })
			}
		})
	}
}

// running returns the task if this start of it runs, or nil.
func (c *Core) running(ref TaskRef) *taskRunner {
	a := c.alloc(ref.Alloc)
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

// restarts are what operators want of one allocation.
type restarts struct {
	alloc *allocRunner
	// promises are answers to operators that wait for a save.
	promises []promise
}

// promise is an answer to an operator that waits for a save.
type promise struct {
	needs uint64
	reply func(error)
}

// keepPromises answers operators whose requests are on disk, or cannot be saved now.
func (r *restarts) keepPromises() {
	saves := &r.alloc.saves
	r.promises = slices.DeleteFunc(r.promises, func(p promise) bool {
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

// begin begins a restart of one task, of all that run, or of the whole allocation.
func (r *restarts) begin(name string, all bool) error {
	a := r.alloc
	switch {
	case a.rec.Ended:
		return fmt.Errorf("%w: the allocation has ended", ErrNotRunning)
	case a.ending():
		return fmt.Errorf("%w: the allocation is stopping", ErrNotRunning)
	case a.saves.failures > 0:
		return ErrDisk
	case all && !a.anyStarted():
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

// signaled notes the restart of a task, whose stop waits until the record is saved.
func (*restarts) signaled(t *taskRunner, message string) {
	t.event("Restart Signaled", message)
	t.start.needs = t.alloc.saves.version
}

// restarting reports whether an operator restarts the task.
func (t *taskRunner) restarting() bool {
	return (t.rec.Restarting || t.alloc.rec.RestartAll && !t.task.Poststop()) && !t.alloc.ending()
}

// mustRestart reports whether a task that runs must stop now, to start again.
func (t *taskRunner) mustRestart() bool {
	if !t.restarting() || !t.durable() {
		return false
	}
	return t.rec.Restarting || turnOf(t.task) <= t.alloc.restarts.turn()
}

// turn is the turn whose tasks must stop now in a restart of all tasks. [turnPoststop] is none.
func (r *restarts) turn() turn {
	now := turnPoststop
	for _, t := range r.alloc.tasks {
		if p := t.rec.Phase; p == PhaseStarting || p == PhaseRunning || p == PhaseCleaning {
			now = min(now, turnOf(t.task))
		}
	}
	return now
}

// step starts all tasks again when an operator's restart has stopped them. A stop of the
// allocation ends the restart.
func (r *restarts) step() {
	a := r.alloc
	if !a.rec.RestartAll || !a.ending() && r.turn() != turnPoststop {
		return
	}
	a.rec.RestartAll = false
	a.touch()
	if a.ending() {
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
		t.endWait()
		t.rec.RestartAt = 0
		t.rec.State.State, t.rec.State.StartedAt, t.rec.State.FinishedAt = cluster.TaskPending, time.Time{}, time.Time{}
		t.enter(PhaseWaiting)
	}
}

// restartNow starts the task again because an operator wants it. The restart policy does not count it.
func (t *taskRunner) restartNow() {
	t.countRestart()
	t.rec.RestartAt = t.core().now.Boot
	t.event("Restarting", "Task restarting because an operator wants it")
	t.enter(PhaseBackoff)
}

// countRestart counts a restart for the servers.
func (t *taskRunner) countRestart() {
	t.rec.State.State, t.rec.State.Restarts, t.rec.State.LastRestart = cluster.TaskPending, t.rec.State.Restarts+1, t.core().now.Wall
}
