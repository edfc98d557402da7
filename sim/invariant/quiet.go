package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Quiet is a point in time at which no actor has anything to do, with the leader's reports.
type Quiet struct {
	// Term is the leader's, Clock the time on its clock.
	Term  int
	Clock time.Time
	// State is the leader's state, never nil; Reports are its drainer's at this
	// point, one of each node that drains there, by node.
	State   *statestore.Snapshot
	Reports []rules.Report
	// Followed are the jobs that the leader's drainer follows, in order.
	Followed []cluster.JobKey
	// Fresh is the writes of a drainer that begins its term over State now, and
	// that sees its barrier applied; nil if none was asked.
	Fresh *Wants
	// Truth is the hidden facts of the world; nil knows nothing.
	Truth Truth
}

// Truth is the facts of the world that no state shows.
type Truth interface {
	// Held reports whether anything keeps the leader's drainer from a step it is
	// due or from the newest state: a wake-up that is late, a process that is
	// paused, a view that is stale.
	Held() bool
	// Ended reports whether the tasks of an allocation have ended, their client has
	// said so, and a leader has told it that this was applied.
	Ended(cluster.AllocID) bool
}

// Still judges the end of a silence: a drainer must not sleep through items that became due
// by time alone. It asks for no reports.
func (j *Judge) Still(now time.Time, q Quiet) {
	j.now = now
	t := j.term(q.Term)
	j.ClockSet(now, q.Term, q.Clock.Sub(now))
	if !j.began || q.State.Index() != j.tables.index {
		return
	}
	// What it has asked to be woken for is no wait for a look if that is long after its step.
	if j.settled(t, q.Clock, q.Truth != nil && q.Truth.Held()) && !j.awaitsLook(t, t.last.clock) {
		j.progress.checkFollowed(q.Followed)
		if len(j.tables.draining) > 0 {
			j.counters.Stills++
			m := j.tables.snapshot(q.Clock, j.options.Policy)
			if q.Fresh != nil {
				j.progress.checkFreshWants(m, t, *q.Fresh, nil)
			}
			j.progress.checkProgress(m, t)
		}
	}
	j.ends.watchTime(now)
}

// Quiet judges a quiet point: every allocation still on a draining node has its
// one true reason, and every possible item is applied or planned.
func (j *Judge) Quiet(now time.Time, q Quiet) {
	j.now = now
	j.counters.QuietPoints++
	b := j.tables
	if !j.began || q.State.Index() != b.index {
		b = tablesOf(q.State) // the leader has yet to catch up
	}
	t, m := j.term(q.Term), b.snapshot(q.Clock, j.options.Policy)
	j.ClockSet(now, q.Term, q.Clock.Sub(now))
	held := q.Truth != nil && q.Truth.Held()
	r := newReasons(j, t, m, q)
	r.behind = held || t.needsBarrier || t.news.any || j.awaitsState(t, q.Clock) || t.unseen(now) || j.awaitsLook(t, q.Clock)
	r.judge()
	r.remember()
	// What a fresh drainer wants is missing from the memory of the running one. What it does
	// not want either is missing from the rules.
	if q.Fresh != nil && !r.behind && b == j.tables {
		j.progress.checkFreshWants(m, t, *q.Fresh, r.planned)
	}
	j.progress.checkBarrier(t, q.Clock, held)
	if b == j.tables && j.settled(t, q.Clock, held) && !j.awaitsLook(t, q.Clock) {
		j.counters.Settled++
		j.progress.checkFollowed(q.Followed)
		j.progress.checkProgress(m, t)
		r.checkSettled()
	}
	j.ends.watchTime(now)
}
