package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// DrainerStep is one step of a drainer.
type DrainerStep struct {
	Server int // from 0
	// Term counts the leaderships of the world, from 1.
	Term int
	// Woken says that it was woken, and not only due.
	Woken bool
	// At is the server's time, WakeAt what the step returned.
	At, WakeAt time.Time
	// View is the state that it looked at last, or nil if it did not look. Looks is
	// how many it looked at.
	View  *statestore.Snapshot
	Looks int
	// Held says that the newest state was kept from it.
	Held bool
}

// Applied is one entry that was applied.
type Applied = shims.Applied

// OnApply calls f for each entry that is applied, once, in the order of the log.
func (w *World) OnApply(f func(shims.Applied)) { w.observers = append(w.observers, f) }

// OnReplica calls f for each entry that a server applies, whoever was first.
func (w *World) OnReplica(f func(server int, a shims.Applied)) { w.replicas = append(w.replicas, f) }

// OnElect calls f whenever a server begins to lead, from now on.
func (w *World) OnElect(f func(server int)) { w.onElect = append(w.onElect, f) }

// OnClock calls f with how far the clock of the server is ahead on which a term runs:
// when the term begins, and when the clock is set.
func (w *World) OnClock(f func(term int, ahead time.Duration)) {
	w.onClock = append(w.onClock, f)
	f(w.leader.term, w.leader.server.ahead)
}

// OnEnd calls f whenever a term has ended and its drainer knows.
func (w *World) OnEnd(f func(term int)) { w.onEnd = append(w.onEnd, f) }

// OnRestore calls f with the state of which a snapshot was taken and the one that was
// restored from it.
func (w *World) OnRestore(f func(taken, restored *statestore.Snapshot)) {
	w.onRestore = append(w.onRestore, f)
}

// OnPropose calls f for every write that a drainer proposes.
func (w *World) OnPropose(f func(Proposal)) { w.onPropose = append(w.onPropose, f) }

// OnAnswer calls f when a drainer is told of a write of its term what became of it.
func (w *World) OnAnswer(f func(term, n int, a shims.Answer)) { w.onAnswer = append(w.onAnswer, f) }

// OnDrainer calls f after every step of a drainer.
func (w *World) OnDrainer(f func(DrainerStep)) { w.onDrainer = append(w.onDrainer, f) }

// OnStep calls f before every step, with the number of the step. f may have the
// world elect, or change it otherwise.
func (w *World) OnStep(f func(step int) error) { w.onStep = f }

// OnQuiet calls f whenever nobody has anything to do before the time moves on.
func (w *World) OnQuiet(f func() error) { w.onQuiet = f }

// OnStill calls f at the end of every time of five seconds or more in which nothing has
// happened, right before what happens next, or at the limit. f changes nothing.
func (w *World) OnStill(f func() error) { w.onStill = f }

// OnWrite has f decide the fate of every write from now on, and counts the writes
// of each source from zero again. Where f says that a write is applied, faults that
// are armed may still strike it.
func (w *World) OnWrite(f func(Write) Fate) {
	w.fate = f
	w.log.count = [sourceCount]int{}
}

// historyLength is how many states a server may be behind that begins to lead.
const historyLength = 8

// observe is told of every entry that a server applies.
func (w *World) observe(server int, a shims.Applied) {
	for _, f := range w.replicas {
		f(server, a)
	}
	if w.servers[server].machine == w.leader.server.machine {
		w.leader.schedules.wake()
	}
	if a.Index <= w.observed {
		return // a server catches up
	}
	w.clients.applied(a)
	w.observed = a.Index
	if len(w.history) == historyLength {
		w.history = append(w.history[:0], w.history[1:]...)
	}
	w.history = append(w.history, a.After)
	for _, f := range w.observers {
		f(a)
	}
	w.provoke(a)
}
