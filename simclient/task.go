package simclient

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// task is what a client knows of one allocation.
type task struct {
	// alloc is the allocation as last seen, never nil; known is what it says that the
	// servers know, kept here because it is compared far more often than a row changes.
	alloc     *cluster.Allocation
	known     words
	behaviour Behaviour
	// verdict is from running to the verdict on health.
	verdict time.Duration
	// seen is the look of its client at which the state showed it last.
	seen uint64

	// waits says that the predecessor has not ended, so that runs is unknown.
	waits bool
	// runs, judged and ends are when that happens; zero is never or unknown.
	runs, judged, ends time.Time
	stopping           bool

	// is is how things are; acked what the servers last took of it since they
	// last changed the allocation, or zero.
	is, acked words
}

// words is what a client can say of an allocation, and servers can know.
type words struct {
	status  cluster.ClientStatus
	verdict verdict
}

// verdict is the verdict on an allocation's health.
type verdict uint8

const (
	unjudged verdict = iota
	healthy
	unhealthy
)

// known is what the servers know of the allocation.
func known(a *cluster.Allocation) words {
	w := words{status: a.ClientStatus}
	switch {
	case a.JudgedHealthy():
		w.verdict = healthy
	case a.HasVerdict():
		w.verdict = unhealthy
	}
	return w
}

// newTask is a task that begins, or that goes on if the servers know that it ran.
func newTask(a *cluster.Allocation, b Behaviour, verdict time.Duration, now time.Time) *task {
	t := &task{alloc: a, known: known(a), behaviour: b, verdict: verdict}
	t.is = t.known
	if a.HasVerdict() {
		t.judged = a.DeploymentStatus.Timestamp
	}
	switch {
	case a.ClientStatus != cluster.ClientPending: // running, or unknown while out of touch
		t.is.status = cluster.ClientRunning
		t.start(now)
	case a.ServerTerminal(): // it never starts
	case inherits(a):
		t.waits = true
	default:
		t.start(after(now, b.Start))
	}
	if a.ServerTerminal() {
		// An earlier fleet may have been stopping it since.
		since := now
		if !a.StoppedAt.IsZero() && a.StoppedAt.Before(now) {
			since = a.StoppedAt
		}
		t.stop(since, now)
	}
	return t
}

// inherits reports whether the allocation begins with its predecessor's data.
func inherits(a *cluster.Allocation) bool {
	g := a.Job.Group(a.TaskGroup)
	return g != nil && g.EphemeralDisk.Migrate && a.PreviousAllocation != ""
}

// start sets when the task runs, and what follows from that; at may be zero.
func (t *task) start(at time.Time) {
	t.waits = false
	t.runs = at
	if at.IsZero() {
		return
	}
	if t.is.verdict == unjudged {
		t.judged = after(at, t.verdict)
	}
	t.ends = after(at, t.behaviour.run(t.alloc))
}

// inherit has a task that waits start once its predecessor has ended.
func (t *task) inherit(now time.Time) {
	if copied := after(now, t.behaviour.Copy); !copied.IsZero() {
		t.start(after(copied, t.behaviour.Start))
		return
	}
	t.start(time.Time{})
}

// stop has the task end: at once if it does not run yet, else as it behaves when
// told at a time. What ends sooner by itself does that.
func (t *task) stop(told, now time.Time) {
	t.stopping = true
	if t.is.verdict == unjudged {
		t.judged = time.Time{}
	}
	if !passed(t.runs, now) {
		t.waits, t.runs, t.ends = false, time.Time{}, now
		return
	}
	if at := after(told, t.behaviour.stop(t.alloc)); t.ends.IsZero() || !at.IsZero() && at.Before(t.ends) {
		t.ends = at
	}
}

// hear takes in what the servers know and want now. A row that is the one last seen says
// nothing new, since rows are never written to.
func (t *task) hear(a *cluster.Allocation, now time.Time) {
	if a == t.alloc {
		return
	}
	if a.ModifyIndex != t.alloc.ModifyIndex {
		t.acked = words{}
	}
	t.alloc, t.known = a, known(a)
	t.advance(now) // up to now it was not told to stop
	if a.ClientStatus == cluster.ClientRunning && t.is.status == cluster.ClientPending {
		t.start(now) // what an earlier fleet said came late
		t.advance(now)
	}
	if a.ServerTerminal() && !t.stopping {
		t.stop(now, now)
	}
}

// advance brings what the task has to say up to date.
func (t *task) advance(now time.Time) {
	if passed(t.ends, now) {
		t.is.status = cluster.ClientComplete
		return
	}
	if passed(t.runs, now) {
		t.is.status = cluster.ClientRunning
	}
	if passed(t.judged, now) && t.is.verdict == unjudged {
		t.is.verdict = healthy
		if t.behaviour.Unhealthy {
			t.is.verdict = unhealthy
		}
	}
}

// next is when the task changes by itself, zero if it does not.
func (t *task) next(now time.Time) time.Time {
	var next time.Time
	for _, at := range []time.Time{t.runs, t.judged, t.ends} {
		if at.After(now) {
			next = earliest(next, at)
		}
	}
	return next
}

// unsaid reports whether the servers do not know how things are. What they took
// and did not write down they do not want to know.
func (t *task) unsaid() bool {
	return t.is != t.acked && (t.is.status != t.known.status || t.is.verdict != unjudged && t.is.verdict != t.known.verdict)
}

func (t *task) report(now time.Time) cluster.AllocReport {
	r := cluster.AllocReport{Alloc: t.alloc.ID, Node: t.alloc.NodeID, ClientStatus: t.is.status, At: now}
	if t.is.verdict != unjudged {
		good := t.is.verdict == healthy
		r.Healthy, r.HealthyAt = &good, t.judged
	}
	return r
}

// after is a time after another, or zero if it never comes.
func after(t time.Time, d time.Duration) time.Time {
	if d == Never {
		return time.Time{}
	}
	return t.Add(max(0, d))
}

// moved is a time moved; zero stays zero.
func moved(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}

// passed reports whether a time has come; zero never does.
func passed(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earliest is the earlier of two times; zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
