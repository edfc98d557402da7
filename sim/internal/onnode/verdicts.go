package onnode

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// verdicts judges N9.
type verdicts struct{ judge *Judge }

// health is what the records have stated about the health of an allocation.
type health struct {
	// good is the last verdict, or nil. trueAt is when it was last true in this boot, or zero.
	good   *bool
	trueAt time.Time
	// falses is the count of false verdicts that still lengthens the minimum healthy time.
	falses int
	// starts are the starts and phases of the tasks in the last record. since is when a record first had them.
	starts string
	since  time.Time
}

// fall counts a false verdict.
func (h *health) fall(at time.Time, deadline time.Duration) {
	if h.good != nil && *h.good && !h.trueAt.IsZero() {
		for passed := at.Sub(h.trueAt); passed >= deadline && h.falses > 0; passed -= deadline {
			h.falses--
		}
	}
	h.falses++
}

// blocks returns the minimum healthy time and the healthy deadline of an allocation.
func (a *alloc) blocks() (least, deadline time.Duration) {
	least = cluster.DefaultMinHealthyTime
	if m := a.group().Migrate; m != nil {
		least, deadline = m.MinHealthyTime, m.HealthyDeadline
	}
	if deadline == 0 {
		deadline = cluster.DefaultHealthyDeadline
	}
	if u := a.group().Update; u != nil {
		least, deadline = max(least, u.MinHealthyTime), max(deadline, u.HealthyDeadline)
	}
	return least, deadline
}

// saved judges N9 when a record is saved.
func (v verdicts) saved(n *machine.Node, a *alloc, r *client.Record) {
	h := &a.health
	waited := a.waits
	if a.waits = waits(r); waited && !a.waits {
		a.waited = v.judge.now
	}
	if starts := startsOf(r); starts != h.starts {
		h.starts, h.since = starts, v.judge.now
	}
	if r.Healthy == nil {
		return
	}
	a.judged = true
	if h.good != nil && *h.good == *r.Healthy {
		return
	}
	least, deadline := a.blocks()
	if !*r.Healthy {
		if h.good != nil {
			v.unhealthy(n, a, r)
		}
		h.fall(r.HealthyAt, deadline)
		h.good = new(false)
		return
	}
	if h.falses > 0 {
		least = max(least, time.Second)
	}
	for range h.falses {
		least = min(2*least, deadline)
	}
	v.healthy(n, a, r, min(least, deadline))
	if !h.trueAt.IsZero() && r.HealthyAt.Before(h.trueAt.Add(trueEvery)) {
		v.judge.find("N9 healthy too often", r.Alloc.ID, "it was healthy at %s and again at %s", h.trueAt, r.HealthyAt)
	}
	h.good, h.trueAt = new(true), r.HealthyAt
}

// waits reports whether a record states that an allocation waits for data.
func waits(r *client.Record) bool {
	return r.DataIn != nil && r.DataIn.State != client.DataInPlaced && r.DataIn.State != client.DataInGivenUp
}

// trueEvery is the least time between two verdicts true of an allocation.
const trueEvery = 5 * time.Second

// noticed is how long a client takes to read the end of a process from its driver, at most.
const noticed = time.Second

// healthy judges a verdict true. least is how long the tasks must have run, and the checks must have passed.
func (v verdicts) healthy(n *machine.Node, a *alloc, r *client.Record, least time.Duration) {
	if name, since := v.badTarget(n, a, r.HealthyAt, 0); name != "" {
		v.judge.find("N9 healthy although a check fails", r.Alloc.ID, "the target of %s has not passed since %s", name, since)
	}
	if name, since := v.early(a, r, least); name != "" {
		v.judge.find("N9 healthy before its check", r.Alloc.ID, "%s has passed since %s, and the least time is %s", name, since, least)
	}
	for _, t := range a.group().Tasks {
		if t == nil || t.Poststop() {
			continue
		}
		last := v.newest(n, a, t, r.HealthyAt)
		oneShot := t.Lifecycle != nil && !t.Lifecycle.Sidecar
		switch {
		case last.StartedAt.IsZero():
			if !oneShot {
				v.judge.find("N9 healthy without a process", r.Alloc.ID, "%s has never run", t.Name)
			}
		case oneShot && (!last.Ended || last.EndedAt.After(r.HealthyAt) || !last.Exit.Successful()):
			v.judge.find("N9 healthy too early", r.Alloc.ID, "%s has not exited with 0", t.Name)
		case !oneShot && last.StartedAt.Add(least).After(r.HealthyAt):
			v.judge.find("N9 healthy too early", r.Alloc.ID, "%s has run since %s, which is less than %s", t.Name, last.StartedAt, least)
		case !oneShot && last.Ended && last.EndedAt.Add(noticed).Before(r.HealthyAt) && !v.taskTroubled(&last) && r.HealthyAt.After(v.judge.blocked.Add(noticed)):
			v.judge.find("N9 healthy while it is dead", r.Alloc.ID, "%s has ended at %s", t.Name, last.EndedAt)
		}
	}
}

// unhealthy judges a verdict that becomes false.
func (v verdicts) unhealthy(n *machine.Node, a *alloc, r *client.Record) {
	if a.lost || v.mayFail(n, a, r.HealthyAt) || r.Stopping && len(a.deciding()) > 0 { // traffic ends before the stop
		return
	}
	if a.restartsNow(r) { // N2 judges the restart
		return
	}
	for _, t := range a.group().Tasks {
		if t == nil || t.Poststop() || t.Lifecycle != nil && !t.Lifecycle.Sidecar {
			continue
		}
		last := v.newest(n, a, t, r.HealthyAt)
		if last.StartedAt.IsZero() || last.Ended && !last.EndedAt.After(r.HealthyAt) || v.taskTroubled(&last) {
			return
		}
	}
	v.judge.find("N9 unhealthy without a cause", r.Alloc.ID, "all its tasks run")
}

// taskTroubled reports whether a driver or shim had trouble in the life of the process, or the machine
// has restarted since it started: the client may be unable to keep the task.
func (v verdicts) taskTroubled(p *scripted.Process) bool {
	f := v.judge.facts
	for _, at := range []time.Time{f.trouble.driver, f.trouble.shim, f.trouble.boot} {
		if !at.IsZero() && !at.Before(p.StartedAt.Add(-startTakes)) {
			return true
		}
	}
	return false
}

// overdue reports whether a client that works has had enough time to find that a task has ended, after all
// trouble.
func (v verdicts) overdue(p *scripted.Process) bool {
	f := v.judge.facts
	for _, at := range []time.Time{f.trouble.driver, f.trouble.shim, f.trouble.boot, f.trouble.client, v.judge.since, v.judge.blocked, p.EndedAt} {
		if !v.judge.now.After(at.Add(inspected)) {
			return false
		}
	}
	return true
}

// newest returns the last process of a task that started before a time, or the zero value.
func (v verdicts) newest(n *machine.Node, a *alloc, t *cluster.Task, before time.Time) scripted.Process {
	for _, s := range slices.Backward(v.judge.starts[string(a.id)+":"+t.Name]) {
		if p, _ := n.Machine().Process(s); p.StartedAt.Before(before) {
			return p
		}
	}
	return scripted.Process{}
}

// warmUp is how long a client may take until it works normally, after its start, after a full disk,
// or after the servers did not answer. It is longer than the longest wait before a retry.
const warmUp = 12 * time.Second

// works reports whether a client has worked normally for some time and after it has warmed up.
func (v verdicts) works(n *machine.Node, d time.Duration) bool {
	return machine.Works(n) && !v.judge.away && n.Reachable() && !n.DiskFull() && v.judge.now.After(v.judge.since.Add(warmUp+d)) && v.judge.now.After(v.judge.blocked.Add(warmUp+d))
}

// check judges N9: the verdicts that are due.
func (v verdicts) check(n *machine.Node) {
	if v.judge.now.Equal(v.judge.checked) {
		return
	}
	v.judge.checked = v.judge.now
	v.judge.away = v.judge.away || !n.Reachable()
	if !v.works(n, 0) {
		return
	}
	for _, a := range v.judge.order {
		if a.ended || a.received.IsZero() || a.stops() || a.lost || a.row == nil || a.row.JobType().ToCompletion() {
			continue
		}
		if a.health.good != nil && *a.health.good {
			if name, ended := v.deadTask(n, a, noticed); name != "" {
				v.judge.find("N9 healthy while it is dead", a.id, "%s has ended at %s, and the record is healthy", name, ended)
			}
			if name, since := v.badTarget(n, a, v.judge.now, noticed); name != "" && v.watched(n, a, noticed) {
				v.judge.find("N9 healthy while a check fails", a.id, "the target of %s has not passed since %s, and the record is healthy", name, since)
			}
		}
		v.healthyLate(n, a)
		if a.judged {
			continue
		}
		from := a.received
		if a.waited.After(from) {
			from = a.waited
		}
		if _, deadline := a.blocks(); !a.waits && v.judge.now.After(from.Add(deadline+time.Second)) {
			a.judged = true
			v.judge.find("N9 no verdict", a.id, "the client has had it since %s, and its healthy deadline is %s", a.received, deadline)
		}
	}
}

// startsOf names the starts of the tasks in a record, and their phases.
func startsOf(r *client.Record) string {
	var starts strings.Builder
	for i := range r.Tasks {
		fmt.Fprintf(&starts, "%s %s, ", r.Tasks[i].ID, r.Tasks[i].Phase)
	}
	return starts.String()
}

// healthyLate judges that an allocation is healthy soon after its tasks have run for long enough. They count from the
// record of this, because a driver may need long for its answer, and not by the clock of the client, which may be
// wrong. After a first verdict the healthy deadline is long enough.
func (v verdicts) healthyLate(n *machine.Node, a *alloc) {
	r, h := n.Record(a.id), &a.health
	if h.good != nil && *h.good || r == nil || h.since.IsZero() || !v.works(n, 2*noticed) || a.restartsNow(r) {
		return
	}
	for _, t := range a.group().Tasks {
		if t == nil || t.Poststop() {
			continue
		}
		i := slices.IndexFunc(r.Tasks, func(rec client.TaskRecord) bool { return rec.State.Name == t.Name })
		last := v.newest(n, a, t, v.judge.now)
		oneShot := t.Lifecycle != nil && !t.Lifecycle.Sidecar
		switch {
		case i < 0 || last.StartedAt.IsZero() || oneShot != last.Ended || v.taskTroubled(&last):
			return
		case oneShot && (!last.Exit.Successful() || r.Tasks[i].Phase != client.PhaseDead), !oneShot && r.Tasks[i].Phase != client.PhaseRunning:
			return
		}
	}
	need, deadline := a.blocks()
	if need = min(need, deadline); h.good != nil {
		need = max(deadline, trueEvery)
	}
	since, pass := v.passesSince(n, a, v.judge.since)
	if since.Before(h.since) {
		since = h.since
	}
	if due := since.Add(need); pass && v.judge.now.After(due.Add(2*noticed)) {
		v.judge.find("N9 healthy too late", a.id, "its tasks have run well since %s, and the verdict was due at %s", since, due)
	}
}

// Rows judges N9 by the rows of the servers. travel is how long a report takes from the client to the
// rows, at most.
func (j *Judge) Rows(now time.Time, n *machine.Node, rows iter.Seq[*cluster.Allocation], travel time.Duration) {
	j.now = now
	verdicts{j}.rows(n, rows, travel)
}

func (v verdicts) rows(n *machine.Node, rows iter.Seq[*cluster.Allocation], travel time.Duration) {
	travel += noticed
	if !v.works(n, travel) {
		return
	}
	for row := range rows {
		a := v.judge.alloc(row.ID)
		if row.JobType().ToCompletion() || row.ServerTerminal() || !row.JudgedHealthy() || row.ClientStatus != cluster.ClientRunning || a.lost || a.row == nil || a.stops() {
			continue
		}
		if name, ended := v.deadTask(n, a, travel); name != "" {
			v.judge.find("N9 healthy in the rows", row.ID, "%s has ended at %s", name, ended)
		}
		if name, since := v.badTarget(n, a, v.judge.now, travel); name != "" && v.watched(n, a, travel) {
			v.judge.find("N9 healthy in the rows", row.ID, "the target of %s has not passed since %s", name, since)
		}
	}
}

// inspected is longer than the time until a client finds by itself that a task has ended.
const inspected = 8 * time.Minute

// deadTask returns a task that must run and whose last process has been dead for longer than a time, or
// an empty name. After trouble of its driver the client may get the end late: a call that waits for it is
// never answered.
func (v verdicts) deadTask(n *machine.Node, a *alloc, longer time.Duration) (name string, ended time.Time) {
	for _, t := range a.group().Tasks {
		if t == nil || t.Poststop() || t.Lifecycle != nil && !t.Lifecycle.Sidecar {
			continue
		}
		if last := v.newest(n, a, t, v.judge.now); last.Ended && last.EndedAt.Add(longer).Before(v.judge.now) && (!v.taskTroubled(&last) || v.overdue(&last)) {
			return t.Name, last.EndedAt
		}
	}
	return "", time.Time{}
}
