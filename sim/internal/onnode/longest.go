package onnode

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// longest is what a judge has observed about the longest run of an allocation.
type longest struct {
	// first is when a task of it first started in this boot, or zero. certain is the same for a start of which the client
	// surely has the answer of the driver. open are the starts for which this is not decided.
	first, certain time.Time
	open           []time.Time
	// endAt is when the client had to stop it, at the earliest, or zero. overran: a task got its kill signal only because
	// of this. late: it was found that it runs for too long.
	endAt         time.Time
	overran, late bool
}

// began notes that a task starts.
func (l *longest) began(at time.Time) {
	if l.first.IsZero() {
		l.first = at
	}
	l.open = append(l.open, at)
}

// answerWait is longer than a driver without trouble takes to answer that a task has started, and a client to save that.
const answerWait = time.Second

// noteLongest records which allocations have run for their longest time.
func (j *tasks) noteLongest(n *machine.Node) {
	for _, a := range j.order {
		l, limit := &a.longest, bounded(a.group().MaxRunDuration)
		l.open = slices.DeleteFunc(l.open, func(at time.Time) bool {
			if j.now.Before(at.Add(answerWait)) {
				return false
			}
			unanswered := !machine.Works(n) || j.since.After(at) // the client froze or died before
			troubled := unanswered || n.DiskFull() || j.trouble.driver.After(at.Add(-startTakes)) || j.trouble.since(at) || j.blocked.After(at)
			if l.certain.IsZero() && !troubled {
				l.certain = at
			}
			return true
		})
		if end := l.first.Add(limit); limit > 0 && !l.first.IsZero() && l.endAt.IsZero() && !j.now.Before(end) {
			l.endAt = end
		}
	}
}

// longestSlack is how long after the stop time of an allocation its tasks may still run, if it has run for its longest
// time. troubledSlack is the same after trouble.
const (
	longestSlack  = 10 * time.Second
	troubledSlack = 5 * time.Minute
)

// checkLongest judges N2: an allocation does not run for longer than its group permits. After trouble the stop may begin
// again.
func (j *tasks) checkLongest(n *machine.Node) {
	if !machine.Works(n) || n.DiskFull() {
		return
	}
	for _, a := range j.order {
		limit := bounded(a.group().MaxRunDuration)
		if limit <= 0 || a.longest.certain.IsZero() || a.longest.late || a.lost || a.row == nil {
			continue
		}
		due, slack := a.longest.certain.Add(limit), longestSlack
		from := due.Add(-startTakes)
		for _, at := range []time.Time{j.since, j.blocked, j.trouble.client, j.trouble.driver, j.trouble.shim, j.trouble.boot, j.trouble.disk, j.trouble.kernel} {
			if at.After(from) {
				slack = troubledSlack
			}
			if at.After(due) {
				due = at
			}
		}
		if !j.now.After(due.Add(bounded(a.row.StopTime()) + a.hold(n) + slack)) {
			continue
		}
		for _, t := range a.group().Tasks {
			if t != nil && j.taskRuns(n, a.id, t.Name) {
				a.longest.late = true
				j.find("N2 runs too long", a.id, "%s runs; a task of the allocation has started at %s, and its longest run is %s", t.Name, a.longest.certain, limit)
			}
		}
	}
}

// overruns reports whether a task gets its kill signal because its allocation has run for its longest time, and the
// delays before the signal are over.
func (l *longest) overruns(now time.Time, delays time.Duration) bool {
	if l.endAt.IsZero() || now.Before(l.endAt.Add(delays)) {
		return false
	}
	l.overran = true
	return true
}

// stops reports whether a client had to stop the allocation.
func (a *alloc) stops() bool {
	return !a.stopAt.IsZero() || !a.awayAt.IsZero() || !a.longest.endAt.IsZero()
}
