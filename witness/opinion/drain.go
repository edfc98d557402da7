package opinion

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Cutoff returns the time at which the drain takes all remaining allocations, and false if
// it never does.
func Cutoff(d *cluster.Drain) (time.Time, bool) {
	switch deadline := d.Strategy.Deadline; {
	case deadline < 0:
		return d.UpdatedAt, true
	case deadline > 0:
		return d.Strategy.ForceDeadline, true
	}
	return time.Time{}, false
}

// Passed reports whether the drain takes all remaining allocations at this time: it is
// forced, or its deadline has come.
func Passed(d *cluster.Drain, at time.Time) bool {
	deadline := d.Strategy.Deadline
	return deadline < 0 || deadline > 0 && !at.Before(d.Strategy.ForceDeadline)
}

// WaitEnd returns the end of the drain's wait, after its cutoff, for an allocation that was
// requested to leave: the allocation's stop time on the node plus the margin, counted from the
// cutoff or from the request, whichever is later. The node is the allocation's own, or nil.
func WaitEnd(a *cluster.Allocation, n *cluster.Node, d *cluster.Drain, margin time.Duration) time.Time {
	from, _ := Cutoff(d)
	at := a.DesiredTransition.MarkedAt
	if !a.DesiredTransition.Migrate {
		at = a.StoppedAt
	}
	if at.After(from) {
		from = at
	}
	return StoppedBy(a, n, from).Add(margin)
}

// WaitOver reports whether, at this time, the node's drain need no longer wait for a
// live allocation on it: the allocation was requested to leave, the cutoff has passed, and
// either the wait has ended or the client cannot report.
func WaitOver(a *cluster.Allocation, n *cluster.Node, d *cluster.Drain, at time.Time, margin time.Duration) bool {
	if !Leaving(a) || !Passed(d, at) {
		return false
	}
	return !InTouch(a, n) || !at.Before(WaitEnd(a, n, d, margin))
}
