package placement

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// Retry is when the scheduler replaces an allocation that ended by itself, by the reschedule policy of its
// group.
type Retry struct {
	// Spent means never.
	Spent bool
	// Due is the time, and Wait is how long that is after the end. Both are zero for at once.
	Due  time.Time
	Wait time.Duration
}

// Early reports whether a time is before the replacement. An end that is further in the future than the wait
// shows that the clock was set back, which ends the wait.
func (r Retry) Early(at time.Time) bool {
	return r.Wait > 0 && at.Before(r.Due) && at.After(r.Due.Add(-2*r.Wait))
}

// RetryOf returns when an allocation that ended by itself is replaced, and false if its group has no policy, if
// it has a replacement, if the servers stop it, or if its work is done.
func RetryOf(s *statestore.Snapshot, a *cluster.Allocation, g *cluster.TaskGroup) (r Retry, has bool) {
	kind, p := opinion.TypeOf(a), g.Reschedule
	switch {
	case p == nil, kind == "system", kind == "sysbatch", opinion.Live(a), opinion.Stopping(a), a.NextAllocation != "":
		return r, false
	case kind == "batch" && (a.ClientStatus == "complete" || !SameWork(a, g)):
		return r, false
	case a.DesiredTransition.Migrate, a.DesiredTransition.ForceReschedule, !SameWork(a, g):
		return r, true
	}
	// The allocations of the slot that failed in a row, the oldest first.
	row := []*cluster.Allocation{a}
	for last := s.Alloc(a.PreviousAllocation); last != nil && opinion.Failed(last) && SameWork(last, g); last = s.Alloc(last.PreviousAllocation) {
		row = append(row, last)
	}
	placed := 0
	for _, one := range row[:len(row)-1] { // the first one of a row replaces no failed one
		if a.EndedAt.Sub(one.CreateTime) >= p.Interval {
			break
		}
		placed++
	}
	if !p.Unlimited && placed >= p.Attempts {
		return Retry{Spent: true}, true
	}
	slices.Reverse(row)
	before, wait := time.Duration(0), p.Delay
	for _, one := range row[1:] {
		switch {
		case p.DelayFunction != "exponential" && p.DelayFunction != "fibonacci":
		case one.EndedAt.Sub(one.CreateTime) > p.MaxDelay:
			before, wait = 0, p.Delay
		case p.DelayFunction == "exponential":
			wait = min(2*wait, p.MaxDelay)
		default:
			before, wait = wait, min(before+wait, p.MaxDelay)
		}
	}
	return Retry{Due: a.EndedAt.Add(wait), Wait: wait}, true
}

// judgeRetry checks the time and the number of the replacement of an allocation that ended by itself.
func (p *plan) judgeRetry(a, previous *cluster.Allocation, g *cluster.TaskGroup) {
	before := p.before.Alloc(previous.ID)
	if before == nil {
		return
	}
	r, has := RetryOf(p.before, before, g)
	switch {
	case !has:
	case r.Spent:
		p.report(ReplacedOften, a, "it replaces %s, and the policy of its group permits no more replacements", previous.ID)
	case r.Early(p.at):
		p.report(ReplacedEarly, a, "it replaces %s at %s, and is due at %s", previous.ID, p.at, r.Due)
	}
}

// judgeGivenUp checks that the plan gives up the slot of an allocation that waits for its replacement only if
// the group has a surplus. Another allocation would not have to wait.
func (p *plan) judgeGivenUp(m *cluster.Plan) {
	for _, stop := range m.Stops {
		before, after := p.before.Alloc(stop.Alloc), p.after.Alloc(stop.Alloc)
		if before == nil || after == nil || !opinion.Stopping(after) || after.DesiredDescription != "alloc not needed due to job update" {
			continue
		}
		s := p.groups[before.TaskGroup]
		if s == nil || opinion.Canary(before) {
			continue
		}
		if r, has := RetryOf(p.before, before, s.group); has && !r.Spent && p.slotsBefore(s.group) <= s.group.Count {
			p.report(ReplacedEarly, after, "its slot is given up, and the group has no surplus")
		}
	}
}

// slotsBefore counts the allocations that held a slot before the plan or that it may replace, because they ended
// by themselves.
func (p *plan) slotsBefore(g *cluster.TaskGroup) (n int) {
	for a := range p.before.AllocsByJob(p.key) {
		if a.TaskGroup != g.Name || opinion.Canary(a) || a.Job != nil && a.Job.Type != p.job.Type {
			continue
		}
		r, has := RetryOf(p.before, a, g)
		if has && !r.Spent || Holds(p.before, a, g, p.at) {
			n++
		}
	}
	return n
}

// latest bounds how long after its time a replacement may come in a state in which nothing happens: the clocks of
// leaders differ.
const latest = 15 * time.Minute

// judgeOverdue checks that nothing waits longer than its policy requires in a state in which nothing happens.
func (j *Judge) judgeOverdue(now time.Time, s *statestore.Snapshot) {
	for job := range s.Jobs() {
		if pending, blocked := (&plan{key: job.Key()}).open(s); job.Stop || onEveryNode(job) || pending || len(blocked) > 0 {
			continue
		}
		for _, g := range job.TaskGroups {
			held := 0
			var waits *cluster.Allocation
			for a := range s.AllocsByJob(job.Key()) {
				if a.TaskGroup != g.Name || a.Job != nil && a.Job.Type != job.Type {
					continue
				}
				if Holds(s, a, g, now) {
					held++
				}
				if r, has := RetryOf(s, a, g); has && !r.Spent && now.After(r.Due.Add(latest)) {
					waits = a
				}
			}
			if waits != nil && held < g.Count {
				p := &plan{judge: j, now: now, index: s.Index(), after: s, key: job.Key(), job: job}
				p.report(LeftShort, waits, "its replacement is overdue, and no evaluation is open for it")
			}
		}
	}
}
