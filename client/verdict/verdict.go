// Package verdict decides whether an allocation is healthy. The real client and the simulated clients
// use it.
//
// A verdict is true when the tasks have run well, and the checks have passed, for the minimum healthy
// time. It becomes false when a task ends or a check fails, and at the healthy deadline if there is none
// yet. The count of false verdicts lengthens the next minimum: after k of them it is 2^k times as long,
// and at most the healthy deadline. So an allocation that crashes again and again stays unhealthy, and
// its verdict changes less and less often. The count falls by one for each healthy deadline in which the
// verdict was true.
//
// All times count from one origin, such as the boot of the machine.
package verdict

import (
	"math"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Never is no time.
const Never time.Duration = math.MaxInt64

// Interval is the least time between two verdicts true of an allocation. Each verdict is an entry in
// the raft log of the servers.
const Interval = 5 * time.Second

// afterFalse is the least minimum after a false verdict. Without it an allocation of a group whose minimum is zero
// would get a verdict at each end of its tasks.
const afterFalse = time.Second

// Terms are the times of a group that decide about the health of its allocations.
type Terms struct {
	// Least is how long the tasks must run well. Deadline is by when there is a verdict.
	Least, Deadline time.Duration
}

// TermsOf returns the terms of a group, or the default ones for nil and for a group without a block.
// A deadline of zero is the default one, as for the drainer. Drains and rollouts use one verdict, so the
// longer times of the migrate block and of the update block apply.
func TermsOf(g *cluster.TaskGroup) Terms {
	t := Terms{Least: cluster.DefaultMinHealthyTime}
	if g != nil && g.Migrate != nil {
		t = Terms{Least: g.Migrate.MinHealthyTime, Deadline: g.Migrate.HealthyDeadline}
	}
	if t.Deadline <= 0 {
		t.Deadline = cluster.DefaultHealthyDeadline
	}
	if g != nil && g.Update != nil {
		t.Least, t.Deadline = max(t.Least, g.Update.MinHealthyTime), max(t.Deadline, g.Update.HealthyDeadline)
	}
	return t
}

// Tasks describes all tasks of an allocation that decide about its health, with their checks.
type Tasks uint8

// The values of [Tasks].
const (
	// Down: a task that must run does not, a one-shot task has not succeeded, or a check fails.
	Down Tasks = iota
	// Unsure: nothing has ended, but the client cannot confirm that the tasks run, or they must stop, or a check
	// has too few results.
	Unsure
	// Up: the tasks that must run do, the one-shot tasks have succeeded, and the checks pass.
	Up
)

// Facts are the facts of one time.
type Facts struct {
	Terms
	// Received is when the client received the allocation.
	Received time.Duration
	Tasks    Tasks
	// Since is since when the tasks are Up.
	Since time.Duration
	// Failed: the allocation has failed. Its tasks are Down.
	Failed bool
}

// History is what is left of the earlier verdicts. The zero value is that of an allocation without a
// verdict.
type History struct {
	// Healthy is the verdict, or nil while there is none.
	Healthy *bool
	// Falses is the count of false verdicts.
	Falses int `json:",omitempty"`
	// TrueAt is the time of the last verdict true, or zero.
	TrueAt time.Duration `json:",omitempty"`
}

// Rebooted follows a restart of the machine, after which all times begin again.
func (h *History) Rebooted() { h.TrueAt = 0 }

// Judge decides at a time. It reports whether the verdict has changed, and the time from which the same
// facts can give another verdict, or [Never].
func (h *History) Judge(now time.Duration, f Facts) (changed bool, next time.Duration) {
	next = Never
	if f.Tasks == Down && (h.good() || h.Healthy == nil && f.Failed) {
		h.fall(now, f.Deadline)
		return true, next
	}
	if f.Tasks == Up && !h.good() {
		if next = h.due(f); next <= now {
			h.Healthy, h.TrueAt = new(true), now
			return true, Never
		}
	}
	if h.Healthy == nil {
		deadline := later(f.Received, f.Deadline)
		if deadline <= now {
			h.fall(now, f.Deadline)
			return true, next
		}
		next = min(next, deadline)
	}
	return false, next
}

func (h *History) good() bool { return h.Healthy != nil && *h.Healthy }

// due is when the tasks have run long enough.
func (h *History) due(f Facts) time.Duration {
	at := later(f.Since, h.Need(f.Terms))
	if h.TrueAt != 0 {
		at = max(at, later(h.TrueAt, Interval))
	}
	return at
}

// Need is how long the tasks must now run well until the verdict is true.
func (h *History) Need(t Terms) time.Duration {
	need := t.Least
	if h.Falses > 0 {
		need = max(need, afterFalse)
	}
	for range h.Falses {
		if need >= t.Deadline {
			break
		}
		need = later(need, need)
	}
	return min(need, t.Deadline)
}

// fall gives the verdict false.
func (h *History) fall(now, deadline time.Duration) {
	if h.good() {
		h.Falses -= int(min(time.Duration(h.Falses), (now-h.TrueAt)/deadline))
	}
	h.Healthy, h.Falses = new(false), h.Falses+1
}

// later is the time after a wait. A sum that overflows is [Never].
func later(at, wait time.Duration) time.Duration {
	if wait > Never-at {
		return Never
	}
	return at + wait
}
