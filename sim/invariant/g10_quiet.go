package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G10 quiet: with nothing changing, nothing is written and nothing wakes before
// the next stated time: a deadline, when health is due, the end of a stage's wait,
// a retry, an evaluation that is made again.

// maxIdle is how many steps may follow each other at one time with nothing else
// happening: some steps ask for another at once, to look at what they follow.
const maxIdle = 32

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
	j.checkQueries(t, s)
	j.checkWake(t, s)
	j.checkFresh(t, s, seen)
	j.checkCircles(t, s)
	t.takeIn(instant{now, s.Clock})
	if t.last.any && s.Clock.Before(t.last.clock) {
		t.last.setBack++
		t.last.backAt = s.Clock
	}
	t.last.any, t.last.at, t.last.clock, t.last.wakeAt = true, now, s.Clock, s.WakeAt
	if s.View != nil {
		t.last.view = s.View
	}
	j.ClockSet(now, s.Term, s.Clock.Sub(now))
	t.setAt = time.Time{}
	j.watchTime(now)
}

// checkCircles finds steps that follow each other without end.
func (j *Judge) checkCircles(t *term, s Step) {
	if t.last.any && t.last.at.Equal(j.now) && t.last.events == j.events {
		if t.last.idle++; t.last.idle == maxIdle {
			j.find(Circles, Violation{}, "term %d has stepped %d times at one time, and nothing happened", t.number, t.last.idle)
		}
		return
	}
	t.last.idle, t.last.events = 0, j.events
}

// checkWake judges a step that nobody asked for: it comes at a time that the
// drainer has named, and that has to be one that is stated.
func (j *Judge) checkWake(t *term, s Step) {
	w := t.last.wakeAt
	if s.Woken || s.Held || !t.last.any || w.IsZero() {
		return
	}
	if j.retries(t, w) || j.statedIn(j.book, w) {
		return
	}
	if v := t.last.view; v != nil && v.Index() != j.book.index && j.statedIn(bookOf(v), w) {
		return
	}
	j.find(IdleWake, Violation{}, "term %d woke at %s, which is no deadline, no verdict that is due, no end of a wait and no retry", t.number, w)
}

// retries reports whether a term may look again at a time because of what it did
// itself: it follows its own step, waits for a look or for the next round, or
// tries again what failed, was refused, or is evaluated again. A clock that was set
// back may have come to stand in the midst of such a wait once more, of the last one
// or of one before it.
func (j *Judge) retries(t *term, w time.Time) bool {
	within := func(from time.Time) bool {
		return !from.IsZero() && !w.Before(from) && !w.After(from.Add(j.options.RetryMax))
	}
	l := &t.last
	switch {
	case !w.After(l.clock.Add(j.lookWait(t))):
		return true
	case t.sawOld(), t.stalls(w):
		return true
	case j.options.MinInterval > 0 && w.Equal(t.round.Add(j.options.MinInterval)):
		return true
	}
	waited := !t.failure.IsZero() || !t.refusal.IsZero() || !t.reevaluation.IsZero()
	return within(t.failure) || within(t.refusal) || within(t.reevaluation) || waited && within(l.backAt)
}

// stalledAfter is how long a write may be without an answer before the drainer logs it.
const stalledAfter = 30 * time.Second

// stalls reports whether a write of the term has been without an answer for so long at the
// time that the drainer logs it.
func (t *term) stalls(w time.Time) bool {
	for _, p := range t.writes {
		if w.Equal(p.clock.Add(stalledAfter)) {
			return true
		}
	}
	return false
}

// statedIn reports whether the state says of the time that something is due then.
func (j *Judge) statedIn(b *book, w time.Time) bool {
	p := j.options.Policy
	for _, n := range b.draining {
		d := n.drain()
		if at := d.Strategy.ForceDeadline; d.Strategy.Deadline > 0 && !w.Before(at) && !w.After(at.Add(j.options.Coalesce)) {
			return true
		}
		for _, a := range n.live {
			if _, ends := opinion.Cutoff(d); ends && a.asked() && opinion.WaitEnd(a.row, d, p.StopMargin).Equal(w) {
				return true
			}
			if pace, exists := opinion.PaceOf(a.group.job.row, a.group.key.Name); exists && a.group.due(pace, p.HealthGrace, w) {
				return true
			}
		}
	}
	return false
}

// due reports whether a verdict on any allocation of the group is due at a time,
// one that was judged and does not run included.
func (g *group) due(p opinion.Pace, grace time.Duration, w time.Time) bool {
	for _, a := range g.members {
		if _, given := opinion.Verdict(a.row); given && a.row.ClientStatus == "running" {
			continue
		}
		if a.live() && p.Due(a.row, grace).Equal(w) {
			return true
		}
	}
	return false
}
