package opinion

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Pauses are the pauses of a state.
type Pauses struct {
	// All is the time of the pause of all drains, or zero.
	All time.Time
	// Own has, for each drain with a pause of its own, the time since which it is paused without a break.
	Own map[cluster.DrainID]time.Time
}

// Since returns since when a drain is paused without a break, or zero. The pause of all does not hold a drain that
// takes all its allocations at that time.
func (p *Pauses) Since(d *cluster.Drain) time.Time {
	since, paused := p.Own[d.ID]
	if !p.HeldByAll(d) {
		return since
	}
	from := p.All
	if d.Strategy.StartedAt.After(from) {
		from = d.Strategy.StartedAt
	}
	if paused && since.Before(from) {
		return since
	}
	return from
}

// HeldByAll reports whether the pause of all holds a drain. It holds each one that has a pause of its own: the deadline
// of that one has not passed.
func (p *Pauses) HeldByAll(d *cluster.Drain) bool {
	_, own := p.Own[d.ID]
	return !p.All.IsZero() && (own || !Passed(d, p.All))
}

// DeadlineAfter returns the deadline of a drain that a resume continues at a time, or zero without one.
func (p *Pauses) DeadlineAfter(d *cluster.Drain, at time.Time) time.Time {
	since, deadline := p.Since(d), d.Strategy.ForceDeadline
	if d.UpdatedAt.After(since) {
		since = d.UpdatedAt
	}
	if d.Strategy.Deadline > 0 && at.After(since) {
		return deadline.Add(at.Sub(since))
	}
	return deadline
}
