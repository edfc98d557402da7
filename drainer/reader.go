package drainer

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// limitedReader reads the state within the query limit, and collects the changes since the last read.
type limitedReader struct {
	state   StateReader
	feed    Feed
	limiter *rate.Limiter
	policy  rules.Policy
	// retry is the wait when the view does not yet show all answered writes.
	retry time.Duration

	// changes are those that no step has planned from yet.
	changes Changes
	// deferred means that a step had some of them but could not read the state.
	deferred bool
	// notBefore is when the limiter allows the next read, or zero.
	notBefore time.Time
}

// note takes the changes from the feed. It runs before the snapshot is taken, so that the snapshot
// shows all changes that it names.
func (l *limitedReader) note() { l.changes.merge(l.feed.Take()) }

// readAll makes the next read immediate and complete.
func (l *limitedReader) readAll() {
	l.notBefore = time.Time{}
	l.changes = Changes{All: true, Abandoned: l.changes.Abandoned}
}

// read takes a snapshot, if the limiter allows it. The view is nil if not, or if it does not show all
// answered writes. Then read returns when to retry.
func (l *limitedReader) read(now time.Time, shown func(rules.View, time.Time) bool) (Reading, time.Time) {
	deferred := l.deferred
	if l.notBefore.IsZero() {
		l.notBefore = now.Add(l.limiter.ReserveN(now, 1).DelayFrom(now))
	}
	l.deferred = deferred || !l.changes.Empty() // reset below if it reads
	if now.Before(l.notBefore) {
		return Reading{}, l.notBefore
	}
	l.notBefore = time.Time{}
	view := l.state.Snapshot()
	if !shown(view, now) {
		return Reading{}, now.Add(l.retry)
	}
	reading := Reading{Now: now, View: view, Changes: l.changes, Deferred: deferred, planner: rules.NewPlanner(view, now, l.policy)}
	l.changes, l.deferred = Changes{}, false
	return reading, time.Time{}
}
