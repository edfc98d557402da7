package simclient

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
)

// crashes follows the health of an allocation whose main task crashes again and again, by the rule of
// real clients.
type crashes struct {
	verdict.History
	terms verdict.Terms
	// base is the origin of the times of the rule: a second before the client received the allocation.
	base time.Time
	// run is how long the task runs, and pause the time until it starts again.
	run, pause time.Duration
}

// received is when the client received the allocation, from base.
const received = time.Second

// crashes returns the crashes of an allocation that a client receives now, or nil.
func (o Options) crashes(a *cluster.Allocation, b Behaviour, now time.Time) *crashes {
	if b.Crash <= 0 || b.Crash == Never || a.JobType().ToCompletion() {
		return nil
	}
	c := &crashes{terms: o.terms(a), base: now.Add(-received), run: b.Crash, pause: time.Second}
	if g := a.Job.Group(a.TaskGroup); g != nil {
		c.pause = max(c.pause, g.RestartPolicyOf(nil, a.JobType()).Delay)
	}
	if a.HasVerdict() {
		c.Healthy = new(a.JudgedHealthy())
		c.TrueAt = received
	}
	return c
}

// tasks describes the tasks at a time, from since until a time, if they first started at runs.
func (c *crashes) tasks(runs, at time.Time) (tasks verdict.Tasks, since, until time.Time) {
	if !passed(runs, at) {
		return verdict.Down, time.Time{}, runs
	}
	cycle := c.run + c.pause
	since = runs.Add(at.Sub(runs) / cycle * cycle)
	if ends := since.Add(c.run); at.Before(ends) {
		return verdict.Up, since, ends
	}
	return verdict.Down, since.Add(c.run), since.Add(cycle)
}

// judge judges at a time, and returns when to judge again; zero is never. It skips the starts of a task
// that crashes before the verdict can be true.
func (c *crashes) judge(runs, at time.Time) (changed bool, next time.Time) {
	tasks, since, until := c.tasks(runs, at)
	changed, wait := c.Judge(at.Sub(c.base), verdict.Facts{Terms: c.terms, Received: received, Tasks: tasks, Since: since.Sub(c.base)})
	if wait != verdict.Never {
		next = c.base.Add(wait)
	}
	if good := c.Healthy != nil && *c.Healthy; good || c.Need(c.terms) < c.run || !passed(runs, at) {
		next = alarm.Earliest(next, until)
	}
	return changed, next
}

// follow judges the crashes up to a time.
func (t *task) follow(now time.Time) {
	for passed(t.changes, now) {
		at := t.changes
		var changed bool
		if changed, t.changes = t.crashes.judge(t.runs, at); !changed {
			continue
		}
		t.judged, t.actual.verdict = at, unhealthy
		if *t.crashes.Healthy {
			t.actual.verdict = healthy
		}
		t.changes = at // what follows from the new verdict
	}
}
