package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Quiet is a point in time at which no actor has anything to do, with the leader's reports.
type Quiet struct {
	// Term is the leader's term, Clock the time on its clock.
	Term  int
	Clock time.Time
	// State is the leader's state, never nil. Reports are the reports of its drainer, one for
	// each draining node, by node.
	State   *statestore.Snapshot
	Reports []rules.Report
	// Followed are the jobs that the leader's drainer follows, sorted.
	Followed []cluster.JobKey
	// Fresh holds the writes of a fresh drainer that starts its term with State, after its
	// barrier. Nil means that the caller started no fresh drainer.
	Fresh *Plan
	// Truth returns hidden facts of the world. It may be nil.
	Truth Truth
}

// Truth returns facts of the world that are in no state.
type Truth interface {
	// Held reports whether the world delays a step of the leader's drainer or hides the newest
	// state from it: by a late wake-up, a paused process, or a stale view.
	Held() bool
	// Ended reports whether an allocation has ended, its client has reported the end, and a
	// leader has confirmed the report.
	Ended(cluster.AllocID) bool
}

// Still judges the end of a silence: the drainer must not sleep past items that became due by
// time alone. It uses no reports.
func (j *Judge) Still(now time.Time, q Quiet) {
	j.now = now
	t := j.term(q.Term)
	j.ClockSet(now, q.Term, q.Clock.Sub(now))
	if !j.loaded || q.State.Index() != j.tables.index {
		return
	}
	// A late wake-up is no wait for a read.
	if t.upToDate(now, q.Clock, q.Truth != nil && q.Truth.Held()) && !t.awaitsRead(t.last.clock) {
		j.progress.checkFollowed(q.Followed)
		if len(j.tables.draining) > 0 {
			j.stills++
			m := j.tables.snapshot(q.Clock, &j.options)
			if q.Fresh != nil {
				j.progress.checkFreshPlan(m, t, *q.Fresh, nil)
			}
			j.progress.checkProgress(m, t)
		}
	}
	j.ends.findLate(now)
}

// Quiet judges a quiet point: every live allocation on a draining node has one correct reason, and
// every possible item is applied or planned.
func (j *Judge) Quiet(now time.Time, q Quiet) {
	j.now = now
	b := j.tables
	if !j.loaded || q.State.Index() != b.index {
		b = tablesOf(q.State) // the leader's state is older than the tables
	}
	t, m := j.term(q.Term), b.snapshot(q.Clock, &j.options)
	j.ClockSet(now, q.Term, q.Clock.Sub(now))
	held := q.Truth != nil && q.Truth.Held()
	r := newReasons(j, t, m, q)
	r.mayLag = held || t.needsBarrier || t.answers.any || t.awaitsState(q.Clock) || t.missedClockSet(now) || t.awaitsRead(q.Clock)
	r.judge()
	r.remember()
	// If only a fresh drainer plans an item, the running one has a defect in its memory. If
	// neither plans it, the defect is in the rules, and checkProgress finds it.
	if q.Fresh != nil && !r.mayLag && b == j.tables {
		j.progress.checkFreshPlan(m, t, *q.Fresh, r.planned)
	}
	j.progress.checkBarrier(t, q.Clock, held)
	if b == j.tables && t.upToDate(now, q.Clock, held) && !t.awaitsRead(q.Clock) {
		j.progress.checkFollowed(q.Followed)
		j.progress.checkProgress(m, t)
		r.checkSettled()
	}
	j.ends.findLate(now)
}
