package simclient

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
)

// task is a client's record of one allocation.
type task struct {
	// alloc is the allocation's row as last read, never nil. written is the condition in it,
	// kept because it is compared far more often than a row changes.
	alloc     *cluster.Allocation
	written   condition
	behaviour Behaviour
	// verdict is the time from running to the verdict on health.
	verdict time.Duration
	// read is the number of the client's last read that found the allocation.
	read uint64

	// waits: the task waits for the end of its predecessor. Then runs is unknown.
	waits bool
	// runs, judged and ends are when that happens; zero is never or unknown. A verdict that
	// changes is judged at that time again. changes is when it does.
	runs, judged, ends, changes time.Time
	stopping                    bool
	// worsened and recovered report that the verdict has changed in that way.
	worsened, recovered bool
	// crashes is nil for an allocation that does not crash. With it, changes is when to judge again.
	crashes *crashes

	// actual is the present condition. acknowledged is the last condition that the servers
	// accepted since they last changed the allocation, or zero.
	actual, acknowledged condition
}

// condition is what a client reports of an allocation.
type condition struct {
	status  cluster.ClientStatus
	verdict judgment
}

type judgment uint8

const (
	unjudged judgment = iota
	healthy
	unhealthy
)

// written is the condition in an allocation's row.
func written(a *cluster.Allocation) condition {
	c := condition{status: a.ClientStatus}
	switch {
	case a.JudgedHealthy():
		c.verdict = healthy
	case a.HasVerdict():
		c.verdict = unhealthy
	}
	return c
}

// newTask is a new task, or one that continues if its row: it ran.
func newTask(a *cluster.Allocation, b Behaviour, o *Options, now time.Time) *task {
	if !o.Uncut {
		b.Stop = b.stop(a)
	}
	t := &task{alloc: a, written: written(a), behaviour: b, verdict: o.verdict(a, b), crashes: o.crashes(a, b, now)}
	t.actual = t.written
	if a.HasVerdict() {
		t.judged = a.DeploymentStatus.Timestamp
		t.planChange(now)
	} else if t.crashes != nil {
		t.changes, t.verdict = now, Never
	}
	switch {
	case a.ClientStatus == cluster.ClientLost: // this client never received it, so it never starts
		t.actual.status = cluster.ClientPending
	case a.ClientStatus != cluster.ClientPending: // running, or unknown while its node was unreachable
		t.actual.status = cluster.ClientRunning
		t.start(now)
	case a.ServerTerminal(): // it never starts
	case inherits(a):
		t.waits = true
	default:
		t.start(after(now, b.Start))
	}
	if a.ServerTerminal() {
		// An earlier fleet may have begun to stop it then.
		since := now
		if !a.StoppedAt.IsZero() && a.StoppedAt.Before(now) {
			since = a.StoppedAt
		}
		t.stop(since, now)
	}
	return t
}

// inherits reports whether the allocation starts with its predecessor's data.
func inherits(a *cluster.Allocation) bool {
	g := a.Job.Group(a.TaskGroup)
	return g != nil && g.EphemeralDisk.Migrate && a.PreviousAllocation != ""
}

// start sets when the task runs, is judged and ends; zero is never.
func (t *task) start(at time.Time) {
	t.waits = false
	t.runs = at
	if at.IsZero() {
		return
	}
	if t.actual.verdict == unjudged {
		t.judged = after(at, t.verdict)
	}
	t.ends = after(at, t.behaviour.run(t.alloc))
	if t.crashes != nil && !t.stopping {
		t.changes = alarm.Earliest(t.changes, at)
	}
}

// succeed starts a waiting task, whose predecessor has ended.
func (t *task) succeed(now time.Time) {
	copied := now
	if inherits(t.alloc) {
		copied = after(now, t.behaviour.Copy)
	}
	if !copied.IsZero() {
		copied = after(copied, t.behaviour.Start)
	}
	t.start(copied)
}

// stop ends the task: at once if it does not run yet, otherwise by its behaviour, counted
// from the time of the order, or by itself if that is sooner.
func (t *task) stop(ordered, now time.Time) {
	t.stopping = true
	t.changes = time.Time{}
	if t.actual.verdict == unjudged {
		t.judged = time.Time{}
	}
	if !passed(t.runs, now) {
		t.waits, t.runs, t.ends = false, time.Time{}, now
		return
	}
	if at := after(ordered, t.behaviour.Stop); t.ends.IsZero() || !at.IsZero() && at.Before(t.ends) {
		t.ends = at
	}
}

// update processes a new row. The row of the last read has no changes: rows are never written to.
func (t *task) update(a *cluster.Allocation, now time.Time) {
	if a == t.alloc {
		return
	}
	if a.ModifyIndex != t.alloc.ModifyIndex {
		t.acknowledged = condition{}
	}
	t.alloc, t.written = a, written(a)
	t.advance(now) // first up to now, without an order to stop
	if a.ClientStatus == cluster.ClientRunning && t.actual.status == cluster.ClientPending {
		t.start(now) // an earlier fleet's report was applied late
		t.advance(now)
	}
	if a.ServerTerminal() && !t.stopping {
		t.stop(now, now)
	}
}

// advance updates the actual condition.
func (t *task) advance(now time.Time) {
	if passed(t.ends, now) {
		t.actual.status = cluster.ClientComplete
		return
	}
	if passed(t.runs, now) {
		t.actual.status = cluster.ClientRunning
	}
	if passed(t.judged, now) && t.actual.verdict == unjudged {
		t.actual.verdict = healthy
		if t.behaviour.Unhealthy {
			t.actual.verdict = unhealthy
		}
		t.planChange(t.judged)
	}
	if t.crashes != nil {
		t.follow(now)
		return
	}
	for passed(t.changes, now) {
		t.judged = t.changes
		if t.actual.verdict == healthy {
			t.actual.verdict, t.worsened = unhealthy, true
		} else {
			t.actual.verdict, t.recovered = healthy, true
		}
		t.planChange(t.judged)
	}
}

// planChange sets when the verdict changes, counted from a time.
func (t *task) planChange(from time.Time) {
	if t.crashes != nil {
		return
	}
	var wait time.Duration
	switch {
	case t.actual.verdict == healthy && !t.worsened:
		wait = t.behaviour.Worsen
	case t.actual.verdict == unhealthy && !t.recovered:
		wait = t.behaviour.Recover
	}
	t.changes = time.Time{}
	if wait > 0 {
		t.changes = after(from, wait)
	}
}

// next is when the task changes by itself, zero if it does not.
func (t *task) next(now time.Time) time.Time {
	var next time.Time
	for _, at := range []time.Time{t.runs, t.judged, t.ends, t.changes} {
		if at.After(now) {
			next = alarm.Earliest(next, at)
		}
	}
	return next
}

// unreported reports whether the row lacks the actual condition. A condition that the servers
// accepted and did not write is not reported again. Of a lost allocation the servers accept only
// the end.
func (t *task) unreported() bool {
	if t.written.status == cluster.ClientLost && t.actual.status != cluster.ClientComplete {
		return false
	}
	return t.actual != t.acknowledged && (t.actual.status != t.written.status || t.actual.verdict != unjudged && t.actual.verdict != t.written.verdict)
}

func (t *task) report(now time.Time) cluster.AllocReport {
	r := cluster.AllocReport{Alloc: t.alloc.ID, Node: t.alloc.NodeID, ClientStatus: t.actual.status, At: now}
	if t.actual.verdict != unjudged {
		good := t.actual.verdict == healthy
		r.Healthy, r.HealthyAt = &good, t.judged
	}
	return r
}

// after is a time later by d, or zero if d is Never.
func after(t time.Time, d time.Duration) time.Time {
	if d == Never {
		return time.Time{}
	}
	return t.Add(max(0, d))
}

// moved is a time moved by a duration; zero stays zero.
func moved(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}

// passed reports whether a time has come; zero never does.
func passed(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }
