package world

import (
	"errors"
	"fmt"
	"time"
)

// At has something done at a time, which must not have passed. What is to be done
// at one time is done in the order in which it was asked for, if there is no seed.
func (w *World) At(at time.Time, do func() error) {
	w.queue.push(&event{at: at, tie: w.tie(Scripted), kind: Scripted, cause: w.steps, do: do})
}

// Run steps until nobody has anything to do any more, or would have only after
// the limit, which it reports as idle being false. The time is the limit then.
func (w *World) Run(limit time.Time) (idle bool, err error) {
	for {
		w.queueSlots()
		e := w.queue.next()
		if e == nil || e.at.After(w.now) {
			if err := w.quiet(); err != nil {
				return false, w.located(err)
			}
			if w.queueSlots(); w.queue.next() != e {
				continue // somebody was roused
			}
		}
		until := limit
		if e != nil {
			until = sooner(e.at, limit)
		}
		if err := w.still(until); err != nil {
			return false, w.located(err)
		}
		switch {
		case e == nil:
			return true, nil
		case e.at.After(limit):
			w.now = limit
			return false, nil
		}
		w.now = later(w.now, e.at)
		if err := w.step(e); err != nil {
			return false, w.located(err)
		}
	}
}

func (w *World) located(err error) error {
	return fmt.Errorf("at %s, step %d: %w", w.now.Sub(Epoch), w.steps, err)
}

// quiet is called before the time moves on.
func (w *World) quiet() error {
	if w.onQuiet == nil {
		return nil
	}
	return w.onQuiet()
}

// long is how long nothing has to have happened for that to be worth a look.
const long = 5 * time.Second

// still is called before what happens next, if nothing has happened for long: right
// before, when all has become due that does so by time alone.
func (w *World) still(until time.Time) error {
	if w.onStill == nil || until.Sub(w.now) < long {
		return nil
	}
	defer func(now time.Time) { w.now = now }(w.now)
	w.now = until.Add(-1)
	return w.onStill()
}

// step has happen what is next.
func (w *World) step(e *event) error {
	if w.onStep != nil && w.asked <= w.steps {
		w.asked = w.steps + 1 // once for each, whatever comes of it
		if err := w.onStep(w.steps); err != nil {
			return err
		}
		if w.queueSlots(); w.queue.next() != e {
			return nil // something else is next now
		}
	}
	if w.steps++; w.steps > w.options.MaxSteps {
		return fmt.Errorf("%w, more than %d: %s", ErrTooManySteps, w.options.MaxSteps, &w.spent)
	}
	w.spent.kinds[e.kind]++
	w.queue.pop()
	w.kind, w.cause = e.kind, e.cause
	w.hash.add(uint64(w.now.Sub(Epoch)), uint64(e.kind), uint64(w.log.length()))
	if e.slot == nil {
		w.spent.outside()
		return errors.Join(e.do(), w.broken)
	}
	w.hash.add(uint64(e.slot.number))
	e.slot.at = time.Time{}
	return errors.Join(e.slot.actor.step(), w.broken)
}
