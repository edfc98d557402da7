package opinion

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// HasToLeave reports whether the drain has to wait for allocations of the turn at
// all.
func HasToLeave(t Turn, d *cluster.Drain) bool {
	return !d.Strategy.IgnoreSystemJobs || t != System
}

// Cutoff is when the drain begins to take what is left, and false if never.
func Cutoff(d *cluster.Drain) (time.Time, bool) {
	switch deadline := d.Strategy.Deadline; {
	case deadline < 0:
		return d.UpdatedAt, true
	case deadline > 0:
		return d.Strategy.ForceDeadline, true
	}
	return time.Time{}, false
}

// Passed reports whether the drain takes what is left at a time: it is forced,
// whatever the time, or its deadline has come.
func Passed(d *cluster.Drain, at time.Time) bool {
	deadline := d.Strategy.Deadline
	return deadline < 0 || deadline > 0 && !at.Before(d.Strategy.ForceDeadline)
}

// WaitEnd is until when an allocation that was asked to go is waited for once the
// cutoff of its node's drain has come: its stop time and the margin, from the
// cutoff or from when it was asked, whichever is later.
func WaitEnd(a *cluster.Allocation, d *cluster.Drain, margin time.Duration) time.Time {
	from, _ := Cutoff(d)
	asked := a.DesiredTransition.MarkedAt
	if !a.DesiredTransition.Migrate {
		asked = a.StoppedAt
	}
	if asked.After(from) {
		from = asked
	}
	return StoppedBy(a, from).Add(margin)
}

// WaitOver reports whether at a time the drain of the node need no longer wait
// for a live allocation on it: it was asked to go, the drain takes what is left,
// and either its wait has run out or nobody can say how it goes.
func WaitOver(a *cluster.Allocation, n *cluster.Node, d *cluster.Drain, at time.Time, margin time.Duration) bool {
	if !Asked(a) || !Passed(d, at) {
		return false
	}
	return !InTouch(a, n) || !at.Before(WaitEnd(a, d, margin))
}
