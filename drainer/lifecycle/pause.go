package lifecycle

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// PauseDrain returns the next row of a node whose drain an operator pauses. all is the pause of all drains, or nil.
// It returns nil if the drain is paused already, or if [cluster.Drain.WhyNotPaused] names a reason.
func PauseDrain(n *cluster.Node, all *cluster.DrainPause, u cluster.DrainPauseUpdate, index uint64) *cluster.Node {
	if !n.Draining() || n.Drain.Paused != nil {
		return nil
	}
	since := n.Drain.PausedSince(all)
	if since.IsZero() {
		since = u.At.UTC()
		if n.Drain.WhyNotPaused(since) != "" {
			return nil
		}
	}
	return setPause(n, &cluster.DrainPause{At: since, By: u.By}, cluster.EventDrainPaused, u.At, index)
}

// ResumeDrain returns the next row of a node whose drain goes on after a pause. since is the time since which the drain
// was paused without a break. The deadline moves by the paused time, and a strategy that was set in the pause counts
// from the resume.
func ResumeDrain(n *cluster.Node, since, at time.Time, index uint64) *cluster.Node {
	after := setPause(n, nil, cluster.EventDrainResumed, at, index)
	d := after.Drain
	if since.Before(d.UpdatedAt) {
		since = d.UpdatedAt
	}
	if paused := at.Sub(since); d.Strategy.Deadline > 0 && paused > 0 {
		d.Strategy.ForceDeadline = d.Strategy.ForceDeadline.Add(paused)
	}
	return after
}

func setPause(n *cluster.Node, p *cluster.DrainPause, message string, at time.Time, index uint64) *cluster.Node {
	at = at.UTC()
	after := touch(n, at, index)
	after.Drain.Paused, after.Drain.Revision = p, cluster.Revision(index)
	appendEvent(after, message, nil, at, index)
	return after
}
