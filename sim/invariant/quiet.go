package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Quiet is a point at which nobody has anything to do before the time moves on,
// and what the leader says of it.
type Quiet struct {
	// Term is the leader's, Clock the time on its clock.
	Term  int
	Clock time.Time
	// State is the leader's state, never nil; Reports are its drainer's at this
	// moment, one of each node that drains there, by node.
	State   *statestore.Snapshot
	Reports []rules.Report
	// Fresh is what a drainer would write that begins its term over State now, and
	// that sees its barrier applied; nil if none was asked.
	Fresh *Wants
	// Truth is what the world knows that no state shows; nil knows nothing.
	Truth Truth
}

// Truth is what the world knows and no state shows.
type Truth interface {
	// Held reports whether anything keeps the leader's drainer from a step it is
	// due or from the newest state: a wake-up that is late, a process that is
	// paused, a view that is stale.
	Held() bool
	// Ended reports whether the tasks of an allocation have ended, their client has
	// said so, and a leader has told it that this was applied.
	Ended(cluster.AllocID) bool
}

// Still judges the end of a time in which nothing has happened: what has become due by
// time alone has not been slept through. It asks for no reports.
func (j *Judge) Still(now time.Time, q Quiet) {
	j.now = now
	t := j.term(q.Term)
	j.ClockSet(now, q.Term, q.Clock.Sub(now))
	if !j.began || len(j.book.draining) == 0 || q.State.Index() != j.book.index {
		return
	}
	// What it has asked to be woken for is no wait for a look if that is long after its step.
	if j.settled(t, q.Clock, q.Truth != nil && q.Truth.Held()) && !j.awaitsLook(t, t.last.clock) {
		j.counters.Stills++
		j.checkProgress(j.book.moment(q.Clock, j.options.Policy), t)
	}
	j.watchTime(now)
}

// Quiet judges a quiet point: every allocation still on a draining node has its
// one reason, which is so, and what could be done is done or planned.
func (j *Judge) Quiet(now time.Time, q Quiet) {
	j.now = now
	j.counters.QuietPoints++
	b := j.book
	if !j.began || q.State.Index() != b.index {
		b = bookOf(q.State) // the leader has yet to catch up
	}
	t, m := j.term(q.Term), b.moment(q.Clock, j.options.Policy)
	j.ClockSet(now, q.Term, q.Clock.Sub(now))
	held := q.Truth != nil && q.Truth.Held()
	r := newReasons(j, t, m, q)
	r.behind = held || t.owes || t.news.any || j.awaitsState(t, q.Clock) || t.unseen(now) || j.awaitsLook(t, q.Clock)
	r.judge()
	r.remember()
	j.checkBarrier(t, q.Clock, held)
	if b == j.book && j.settled(t, q.Clock, held) && !j.awaitsLook(t, q.Clock) {
		j.counters.Settled++
		j.checkProgress(m, t)
		r.checkSettled()
	}
	if q.Fresh != nil && !r.behind && b == j.book {
		j.checkFreshWants(m, t, *q.Fresh, r.planned)
	}
	j.watchTime(now)
}
