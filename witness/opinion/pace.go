package opinion

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Pace is a group's budget in numbers.
type Pace struct {
	// Count is the number of healthy allocations of the group, MaxParallel the number
	// of them that drains may take down.
	Count, MaxParallel int
	// Verdict is the time from an allocation's creation to the deadline of its verdict.
	Verdict time.Duration
	// MaxSurge is the group's max_surge. StopsFirst means that no max_surge has an effect on the group.
	MaxSurge   int
	StopsFirst bool
}

// defaultVerdict is the wait for verdicts of a group that sets none.
const defaultVerdict = 5 * time.Minute

// PaceOf returns the pace of a job's group, and false if the job or the group
// does not exist. The count of a stopped job is zero, and a group without a
// migrate block moves one at a time.
func PaceOf(j *cluster.Job, group string) (Pace, bool) {
	g := groupOf(j, group)
	if g == nil {
		return Pace{}, false
	}
	p := Pace{Count: g.Count, MaxParallel: 1, Verdict: defaultVerdict, StopsFirst: stopsFirst(g)}
	if m := g.Migrate; m != nil {
		p.MaxParallel, p.MaxSurge = m.MaxParallel, m.MaxSurge
		if m.HealthyDeadline != 0 {
			p.Verdict = m.HealthyDeadline
		}
	}
	if j.Stop {
		p.Count = 0
	}
	return p, true
}

// Limit returns the minimum of healthy allocations that the migrate block allows. It may be
// far below zero; the lower bound prevents overflow.
func (p Pace) Limit() int { return max(p.Count-p.MaxParallel, -1<<30) }

// HeldUntil returns the time until which an allocation of the group that was healthy and is unhealthy
// may recover, or zero if it was never healthy or is not unhealthy.
func (p Pace) HeldUntil(a *cluster.Allocation) time.Time {
	if a.DeploymentStatus == nil || a.DeploymentStatus.UnhealthySince.IsZero() {
		return time.Time{}
	}
	return a.DeploymentStatus.UnhealthySince.Add(p.Verdict)
}

// Due returns the time by which an allocation of the group must have a verdict, with a grace. It counts
// from the end of the wait for data, and never comes during this wait. It adds the durations one by one:
// the sum of two may wrap around.
func (p Pace) Due(a *cluster.Allocation, grace time.Duration) time.Time {
	from := a.CreateTime
	if WaitsForData(a) {
		return never()
	}
	if a.DataIn != nil && from.Before(a.DataIn.EndedAt) {
		from = a.DataIn.EndedAt
	}
	return from.Add(p.Verdict).Add(grace)
}
