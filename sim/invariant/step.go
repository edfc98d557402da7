package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Step is one step of a drainer.
type Step struct {
	Term int
	// Clock is the time the drainer was given.
	Clock time.Time
	// Woken says that an event asked for the step: it is not for a time that the
	// drainer had named.
	Woken bool
	// View is the state that it looked at, or nil if it did not look. Looks is how
	// many it looked at.
	View  *statestore.Snapshot
	Looks int
	// WakeAt is when it wants its next step, or zero.
	WakeAt time.Time
	// Held says that the newest state, or the news of it, is kept from the drainer:
	// what it waits for may have gone.
	Held bool
}

// steps is the judge's record of a term's last steps.
type steps struct {
	any bool
	// at is the world's time of the last, clock the drainer's.
	at, clock time.Time
	wakeAt    time.Time
	// view is the newest state it has looked at, or nil.
	view *statestore.Snapshot
	// idle counts the steps at the same time without anything else happening;
	// events is what had happened by then.
	idle   int
	events uint64
	// tokens are the looks that the rate leaves. setBack counts how often the clock
	// was set back: each time, a look that was granted is lost.
	tokens  float64
	setBack int
	// own says that wakeAt follows from what the drainer did itself.
	own bool
}

// Stepped judges a step when it has ended.
func (j *Judge) Stepped(now time.Time, s Step) {
	j.now = now
	j.latest = later(j.latest, s.Clock)
	t := j.term(s.Term)
	j.counters.step(s, len(t.fresh))
	seen := uint64(0)
	if s.View != nil {
		seen = s.View.Index()
	}
	j.wakes.checkQueries(t, s)
	j.wakes.checkWake(t, s)
	t.takeIn(s.Clock)
	j.writes.checkFresh(t, s, seen)
	j.wakes.checkCircles(t)
	if t.last.any && s.Clock.Before(t.last.clock) {
		t.last.setBack++
	}
	t.last.any, t.last.at, t.last.clock, t.last.wakeAt = true, now, s.Clock, s.WakeAt
	if s.View != nil {
		t.last.view = s.View
	}
	t.last.own = j.wakes.follows(t, s)
	j.ClockSet(now, s.Term, s.Clock.Sub(now))
	t.setAt = time.Time{}
	j.ends.watchTime(now)
}
