package guard

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// killInterval is the wait after which a task that still has processes is killed again.
const killInterval = time.Second

// Watch decides what a watchdog does. The zero value guards nothing. It is not safe for concurrent
// use.
type Watch struct {
	contact Contact
	// gone: the client is dead.
	gone bool
	// guarded are sorted by allocation.
	guarded []*guarded
}

// guarded is the state of a guard.
type guarded struct {
	Guard
	tasks []task
	// phase is the phase that stops, and began is when its stop began, or would begin. late is when
	// the next phase begins although tasks of this one have processes.
	phase cluster.StopPhase
	began time.Duration
}

// task is the state of a task that must stop.
type task struct {
	Task
	signalled, ended bool
	// killAt is when the task is killed next. While the client lives, zero means at once.
	killAt time.Duration
}

// Act is what a watchdog must do. Its owner posts [Watch.Ended] when the task has no process, also
// if it had none before.
type Act struct {
	Alloc cluster.AllocID
	Task  Task
	// After is the group's StopOnClientAfter.
	After time.Duration
	// Kill: the task must get SIGKILL. Otherwise it must get its kill signal.
	Kill bool
}

// Put guards an allocation. It replaces an earlier guard of the allocation.
func (w *Watch) Put(g Guard) {
	n := &guarded{Guard: g}
	n.reset()
	if i, found := w.find(g.Alloc); found {
		w.guarded[i] = n
	} else {
		w.guarded = slices.Insert(w.guarded, i, n)
	}
}

// reset forgets what was stopped: a client that lives may have started other processes since.
func (g *guarded) reset() {
	g.tasks, g.phase, g.began = nil, 0, 0
	for _, t := range g.Tasks {
		g.tasks = append(g.tasks, task{Task: t})
	}
}

// Remove ends the guard of an allocation. An unknown allocation is no error.
func (w *Watch) Remove(alloc cluster.AllocID) {
	if i, found := w.find(alloc); found {
		w.guarded = slices.Delete(w.guarded, i, i+1)
	}
}

func (w *Watch) find(alloc cluster.AllocID) (int, bool) {
	return slices.BinarySearchFunc(w.guarded, alloc, func(g *guarded, id cluster.AllocID) int {
		return strings.Compare(string(g.Alloc), string(id))
	})
}

// Contact states that the servers have answered a heartbeat.
func (w *Watch) Contact(c Contact) {
	if c.Sent > w.contact.Sent {
		w.contact = c
		w.reset()
	}
}

// Gone states that the client is dead. It never comes back: the next client has another Watch.
func (w *Watch) Gone() {
	w.gone = true
	w.reset()
}

func (w *Watch) reset() {
	for _, g := range w.guarded {
		g.reset()
	}
}

// Over reports whether nothing is left to guard.
func (w *Watch) Over() bool { return len(w.guarded) == 0 }

// Ended states that a task has no process, and that its control group is removed. No process of it can
// start before the next contact.
func (w *Watch) Ended(alloc cluster.AllocID, name string) {
	i, found := w.find(alloc)
	if !found {
		return
	}
	for j := range w.guarded[i].tasks {
		if t := &w.guarded[i].tasks[j]; t.Name == name {
			t.ended = true
		}
	}
}

// Step returns what must be done now, and the latest time of the next step, or [Never]. Additional
// calls are harmless.
func (w *Watch) Step(now time.Duration) (acts []Act, wakeAt time.Duration) {
	wakeAt = Never
	for _, g := range w.guarded {
		deadline := w.contact.StopAt(g.After)
		begins, step := deadline, g.step
		if !w.gone {
			begins, step = later(later(deadline, g.StopTime), cluster.KillMarginOfNode), g.kill
		}
		if now < begins {
			wakeAt = min(wakeAt, begins)
			continue
		}
		due, at := step(deadline, now)
		acts, wakeAt = append(acts, due...), min(wakeAt, at)
	}
	if w.gone { // a client that lives removes its guards
		w.guarded = slices.DeleteFunc(w.guarded, (*guarded).over)
	}
	return acts, wakeAt
}

// kill kills what a client that lives has not stopped in time.
func (g *guarded) kill(_, now time.Duration) (acts []Act, wakeAt time.Duration) {
	wakeAt = Never
	for i := range g.tasks {
		t := &g.tasks[i]
		if t.ended {
			continue
		}
		if now >= t.killAt {
			t.killAt = later(now, killInterval)
			acts = append(acts, Act{Alloc: g.Alloc, Task: t.Task, After: g.After, Kill: true})
		}
		wakeAt = min(wakeAt, t.killAt)
	}
	return acts, wakeAt
}

// over reports whether no task has a process.
func (g *guarded) over() bool {
	return !slices.ContainsFunc(g.tasks, func(t task) bool { return !t.ended })
}

// step stops the phases that are due.
func (g *guarded) step(deadline, now time.Duration) (acts []Act, wakeAt time.Duration) {
	wakeAt = Never
	g.began = max(g.began, later(deadline, g.Delay))
	for phase := range g.phase + 1 {
		acts, wakeAt = g.stop(phase, now, acts, wakeAt)
	}
	for g.phase < cluster.StopPoststop {
		late := g.late()
		if now < late && !g.phaseOver() {
			return acts, min(wakeAt, late)
		}
		// An earlier phase may have ended before this time, and the next one begins then.
		g.began = max(g.began, min(now, late))
		g.phase++
		acts, wakeAt = g.stop(g.phase, now, acts, wakeAt)
	}
	return acts, wakeAt
}

// phaseOver reports whether no task of the phase that stops has a process.
func (g *guarded) phaseOver() bool {
	return !slices.ContainsFunc(g.tasks, func(t task) bool { return t.Phase == g.phase && !t.ended })
}

// late is the time at which all tasks of the phase that stops have been killed.
func (g *guarded) late() time.Duration {
	late := g.began
	for _, t := range g.tasks {
		if t.Phase == g.phase {
			late = max(late, later(later(g.began, t.ShutdownDelay), t.KillTimeout))
		}
	}
	return late
}

// stop signals and kills the tasks of a phase that are due. It stops no task twice.
func (g *guarded) stop(phase cluster.StopPhase, now time.Duration, acts []Act, wakeAt time.Duration) ([]Act, time.Duration) {
	for i := range g.tasks {
		t := &g.tasks[i]
		if t.Phase != phase || t.ended {
			continue
		}
		if !t.signalled {
			signalAt := later(g.began, t.ShutdownDelay)
			if now < signalAt {
				wakeAt = min(wakeAt, signalAt)
				continue
			}
			t.signalled, t.killAt = true, later(signalAt, t.KillTimeout)
			acts = append(acts, Act{Alloc: g.Alloc, Task: t.Task, After: g.After})
		}
		if now >= t.killAt {
			t.killAt = later(now, killInterval)
			acts = append(acts, Act{Alloc: g.Alloc, Task: t.Task, After: g.After, Kill: true})
		}
		wakeAt = min(wakeAt, t.killAt)
	}
	return acts, wakeAt
}
