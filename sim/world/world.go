package world

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// World is one cluster in one goroutine. It is not safe for concurrent use.
type World struct {
	options Options
	now     time.Time
	script  script
	log     raftLog
	clients *fleet
	ids     ids

	replicas []*replica
	// leader is what runs on the server that leads; never nil.
	leader    *leadership
	elections int

	// actors are stepped in this order, turn being the next.
	actors []actor
	turn   int
	steps  int

	// observed is the index of the last entry that the observers were shown.
	observed  uint64
	observers []func(shims.Applied)
	fate      func(Write) Fate
	onStep    func(step int) error
	onQuiet   func() error
}

// actor is one who is stepped.
type actor interface {
	// ready reports whether it was woken or is due.
	ready() bool
	step() error
	// due is when it is to be stepped although nobody wakes it; zero is never.
	due() time.Time
}

// ErrTooManySteps says that a world runs in circles.
var ErrTooManySteps = errors.New("too many steps")

// New returns a world without nodes, whose first server leads.
func New(o Options) (*World, error) {
	w := &World{options: o.withDefaults(), now: Epoch}
	w.log.world = w
	w.script.world = w
	for range w.options.Servers {
		w.replicas = append(w.replicas, newReplica(w.observe))
	}
	var err error
	if w.clients, err = newFleet(w); err != nil {
		return nil, fmt.Errorf("simulating clients: %w", err)
	}
	w.actors = []actor{&w.script, &w.log, drainerActor{w}, schedulerActor{w}, w.clients}
	if err := w.lead(w.replicas[0]); err != nil {
		return nil, err
	}
	return w, nil
}

// Now is the world's time.
func (w *World) Now() time.Time { return w.now }

// Servers is how many servers there are.
func (w *World) Servers() int { return len(w.replicas) }

// Steps is how many steps were taken.
func (w *World) Steps() int { return w.steps }

// Truth is the newest state that any server has had: a new leader may have yet to
// catch up with it.
func (w *World) Truth() *statestore.Snapshot {
	newest := w.replicas[0]
	for _, r := range w.replicas[1:] {
		if r.applied > newest.applied {
			newest = r
		}
	}
	return newest.state()
}

// State is the leader's newest state.
func (w *World) State() *statestore.Snapshot { return w.leader.replica.state() }

// Explain is what the leader's drainer says of a draining node; false if the node
// does not drain.
func (w *World) Explain(id cluster.NodeID) (drainer.Report, bool) {
	return w.leader.drainer.Explain(id, w.Clock())
}

// Applied is one entry that was applied.
type Applied = shims.Applied

// Writes is how many writes the source has proposed, barriers included, since
// OnWrite was last called.
func (w *World) Writes(s Source) int { return w.log.count[s] }

// WakeDrainer has the leader's drainer stepped for nothing.
func (w *World) WakeDrainer() { w.leader.drains.wake() }

// OnApply calls f for each entry that is applied, once, in the order of the log.
func (w *World) OnApply(f func(shims.Applied)) { w.observers = append(w.observers, f) }

// OnWrite has f decide the fate of every write from now on, and counts the writes
// of each source from zero again.
func (w *World) OnWrite(f func(Write) Fate) {
	w.fate = f
	w.log.count = [sourceCount]int{}
}

// Before has something done once, between plan and apply: just before the first
// write that match accepts is applied. What is done commits; see [World.Commit].
func (w *World) Before(match func(shims.Message) bool, do func() error) {
	w.log.hooks = append(w.log.hooks, hook{match, do})
}

// OnStep calls f before every step, with the number of the step. f may have the
// world elect, or change it otherwise.
func (w *World) OnStep(f func(step int) error) { w.onStep = f }

// OnQuiet calls f whenever nobody has anything to do before the time moves on.
func (w *World) OnQuiet(f func() error) { w.onQuiet = f }

// observe is told of every entry that a replica applies.
func (w *World) observe(a shims.Applied) {
	w.clients.applied(a)
	w.leader.schedules.wake()
	if a.Index <= w.observed {
		return // a replica catches up
	}
	w.observed = a.Index
	for _, f := range w.observers {
		f(a)
	}
}

// Run steps until nobody has anything to do any more, or would have only after
// the limit, which it reports as idle being false. The time is the limit then.
func (w *World) Run(limit time.Time) (idle bool, err error) {
	for {
		if err := w.settle(); err != nil {
			return false, err
		}
		next := w.due()
		switch {
		case next.IsZero():
			return true, nil
		case next.After(limit):
			w.now = limit
			return false, nil
		}
		w.now = next
	}
}

// settle steps until the point is quiet.
func (w *World) settle() error {
	for {
		stepped, err := w.step()
		if err != nil {
			return fmt.Errorf("at %s, step %d: %w", w.now.Sub(Epoch), w.steps, err)
		}
		if stepped {
			continue
		}
		if w.onQuiet == nil {
			return nil
		}
		return w.onQuiet()
	}
}

// step steps the next of those who are ready, and reports whether there was one.
func (w *World) step() (bool, error) {
	if !w.anyReady() {
		return false, nil
	}
	if w.onStep != nil {
		if err := w.onStep(w.steps); err != nil {
			return false, err
		}
	}
	if w.steps++; w.steps > w.options.MaxSteps {
		return false, ErrTooManySteps
	}
	for range w.actors {
		a := w.actors[w.turn]
		w.turn = (w.turn + 1) % len(w.actors)
		if a.ready() {
			return true, a.step()
		}
	}
	return true, nil // what was ready was the old leader
}

func (w *World) anyReady() bool { return slices.ContainsFunc(w.actors, actor.ready) }

// due is when the next actor is due; zero is never.
func (w *World) due() time.Time {
	var next time.Time
	for _, a := range w.actors {
		if at := a.due(); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// ids makes ids that sort in the order in which they were made.
type ids struct{ allocs, evals, drains int }

func (i *ids) alloc() cluster.AllocID {
	i.allocs++
	return cluster.AllocID(fmt.Sprintf("a%06d", i.allocs))
}

func (i *ids) eval() cluster.EvalID {
	i.evals++
	return cluster.EvalID(fmt.Sprintf("e%06d", i.evals))
}

func (i *ids) drain() cluster.DrainID {
	i.drains++
	return cluster.DrainID(fmt.Sprintf("d%06d", i.drains))
}
