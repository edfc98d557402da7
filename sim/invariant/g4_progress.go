package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// G4 and G6 at a quiet point: what can be done is done or planned. Nothing may be
// left to want when nothing holds the drainer up. What does is known: an answer
// that is to come, a wait after a failure or a refusal, a clock that was set since
// it last looked, and what the world holds back.

// settled reports whether nothing holds a drainer up at its clock's time, but that it
// may have to wait for a look: it has had its say on everything that the state shows.
func (j *Judge) settled(t *term, clock time.Time, held bool) bool {
	within := func(from time.Time) bool {
		return !from.IsZero() && !clock.Before(from) && clock.Before(from.Add(j.options.RetryMax))
	}
	l := &t.last
	switch {
	case held || !l.any || t.ended || t.owes || t.inFlight > 0 || len(t.writes) > 0 || t.news.any:
		return false
	case j.awaitsState(t, clock):
		return false
	case t.unseen(j.now):
		return false
	case within(t.failure):
		return false
	case j.options.MinInterval > 0 && clock.Before(t.round.Add(j.options.MinInterval)):
		return false
	}
	return true
}

// awaitsLook reports whether a term may be waiting for a look at the state at a time.
func (j *Judge) awaitsLook(t *term, clock time.Time) bool {
	return !t.last.wakeAt.IsZero() && !t.last.wakeAt.After(clock.Add(j.lookWait(t)))
}

// awaitsState reports whether a term waits to see a state that shows all it was told of. No
// news may come of that state, so the term has to have named a time to look again.
func (j *Judge) awaitsState(t *term, clock time.Time) bool {
	wakeAt := t.last.wakeAt
	return t.sawOld() && !wakeAt.IsZero() && !wakeAt.After(clock.Add(j.options.RetryMax))
}

// sawOld reports whether the newest state that a term has looked at does not show all it was
// told of.
func (t *term) sawOld() bool { return t.last.view == nil || t.last.view.Index() < t.minIndex }

// checkProgress finds what could be done and is neither done nor planned by a
// drainer that nothing holds up.
func (j *Judge) checkProgress(m *moment, t *term) {
	w := j.wants(m)
	for _, mark := range w.Marks {
		if j.waits(t, m.at, refusedItem{mark.Drain, mark.Alloc}) {
			continue
		}
		about := Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group}
		if t.failed[mark.Alloc] {
			j.find(NotRetried, about, "a write failed that would have marked it, it could be marked %s, and nobody is about to", mark.Class)
		} else {
			j.find(Stalled, about, "it could be marked %s, and nobody is about to", mark.Class)
		}
	}
	for _, c := range w.Completions {
		if j.waits(t, m.at, refusedItem{drain: c.Drain}) {
			continue
		}
		about := Violation{Drain: c.Drain, Node: c.Node}
		if t.failedEnds[c.Node] {
			j.find(NotRetried, about, "a write failed that would have ended the drain, it could end, and nobody is about to end it")
		} else {
			j.find(Stalled, about, "the drain could end, and nobody is about to end it")
		}
	}
	for _, key := range w.Reevaluate {
		if !j.reevaluates(t, m.at, key) {
			j.find(NotReevaluated, Violation{Group: key}, "marked allocations run on, no evaluation of their job is open, and nobody is about to make one")
		}
	}
}

// waits reports whether a term may wait with an item, because it was refused.
func (j *Judge) waits(t *term, clock time.Time, item refusedItem) bool {
	return j.recent(t.refused[item], clock)
}

// reevaluates reports whether a term may wait before it has a group evaluated
// again, because it has done so not long ago.
func (j *Judge) reevaluates(t *term, clock time.Time, key cluster.GroupKey) bool {
	return t.groups[key] > 0 || j.recent(t.reevaluated[key], clock)
}

// recent reports whether a time is within the longest wait for another attempt.
func (j *Judge) recent(at, clock time.Time) bool {
	return !at.IsZero() && !clock.Before(at) && clock.Before(at.Add(j.options.RetryMax))
}
