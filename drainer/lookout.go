package drainer

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// lookout reads the state within the query limit, and collects the changes since the last look.
type lookout struct {
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
	// notBefore is when the limiter allows the next look, or zero.
	notBefore time.Time
}

// note takes the changes from the feed. It runs before the snapshot is taken, so that the snapshot
// shows all changes that it names.
func (l *lookout) note() { l.changes.merge(l.feed.Take()) }

// lookEverywhere makes the next look immediate and complete.
func (l *lookout) lookEverywhere() {
	l.notBefore = time.Time{}
	l.changes = Changes{All: true, Abandoned: l.changes.Abandoned}
}

// look takes a snapshot, if the limiter allows it. The view is nil if not, or if it does not show all
// answered writes. Then look returns when to retry.
func (l *lookout) look(now time.Time, shown func(rules.View, time.Time) bool) (Look, time.Time) {
	deferred := l.deferred
	if l.notBefore.IsZero() {
		l.notBefore = now.Add(l.limiter.ReserveN(now, 1).DelayFrom(now))
	}
	l.deferred = deferred || !l.changes.Empty() // reset below if it looks
	if now.Before(l.notBefore) {
		return Look{}, l.notBefore
	}
	l.notBefore = time.Time{}
	view := l.state.Snapshot()
	if !shown(view, now) {
		return Look{}, now.Add(l.retry)
	}
	look := Look{Now: now, View: view, Changes: l.changes, Deferred: deferred, planner: rules.NewPlanner(view, now, l.policy)}
	l.changes, l.deferred = Changes{}, false
	return look, time.Time{}
}
