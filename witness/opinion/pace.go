package opinion

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Pace is a group's budget in numbers.
type Pace struct {
	// Count is how many the group wants healthy, MaxParallel how many of them may
	// be down for drains.
	Count, MaxParallel int
	// Verdict is how long after its creation an allocation must have been judged.
	Verdict time.Duration
}

// defaultVerdict is how long a group waits for verdicts that does not say.
const defaultVerdict = 5 * time.Minute

// PaceOf returns the pace of a job's group, and false if the job or the group
// does not exist. A stopped job wants nothing healthy, and a group without a
// migrate block moves one at a time.
func PaceOf(j *cluster.Job, group string) (Pace, bool) {
	g := groupOf(j, group)
	if g == nil {
		return Pace{}, false
	}
	p := Pace{Count: g.Count, MaxParallel: 1, Verdict: defaultVerdict}
	if m := g.Migrate; m != nil {
		p.MaxParallel = m.MaxParallel
		if m.HealthyDeadline != 0 {
			p.Verdict = m.HealthyDeadline
		}
	}
	if j.Stop {
		p.Count = 0
	}
	return p, true
}

// Limit is how few healthy allocations the migrate block allows. That may be far below
// zero, but not so far that nobody can count with it.
func (p Pace) Limit() int { return max(p.Count-p.MaxParallel, -1<<30) }

// Due is by when an allocation of the group must have been judged, with a grace.
// Added one by one: the sum of two durations may wrap around.
func (p Pace) Due(a *cluster.Allocation, grace time.Duration) time.Time {
	return a.CreateTime.Add(p.Verdict).Add(grace)
}
