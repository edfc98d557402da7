package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Step is one step of a drainer.
type Step struct {
	Term int
	// Clock is the time on the drainer's clock.
	Clock time.Time
	// Woken says that an event asked for the step. Otherwise the drainer's timer did.
	Woken bool
	// View is the state that the drainer looked at, or nil. Looks counts its looks.
	View  *statestore.Snapshot
	Looks int
	// WakeAt is the time for the drainer's next step, or zero.
	WakeAt time.Time
	// Held says that the world hides the newest state from the drainer. So it may wait for
	// something that is no longer due.
	Held bool
}

// steps is the judge's record of a term's last steps.
type steps struct {
	any bool
	// at is the world's time of the last step, clock the drainer's time.
	at, clock time.Time
	wakeAt    time.Time
	// view is the last state that the drainer looked at, or nil.
	view *statestore.Snapshot
	// idle counts the steps at one time without another event. events is the number of events
	// at that time.
	idle   int
	events uint64
	// tokens are the looks that the rate allows now. setBack counts how often the clock was set
	// back. Each time, the drainer may lose a granted look.
	tokens  float64
	setBack int
	// own says that wakeAt follows from the drainer's own actions.
	own bool
}

// Stepped judges a step at its end.
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
	t.processNews(s.Clock)
	j.writes.checkFresh(t, s, seen)
	j.wakes.checkEndless(t)
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
	j.ends.findLate(now)
}
