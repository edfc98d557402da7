package onnode

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// check is a check of an allocation. Its owner is the task that it belongs to, or empty for all main tasks.
type check struct {
	cluster.ServiceCheck
	owner string
}

// of reports whether a start of the task is a start of the check.
func (c *check) of(t *cluster.Task) bool { return c.owner == t.Name || c.owner == "" && t.Main() }

// checks returns the checks of an allocation.
func (a *alloc) checks() (all []check) {
	g := a.group()
	add := func(services []cluster.Service, owner string) {
		for _, s := range services {
			for _, c := range s.Checks {
				of := cmp.Or(c.TaskName, s.TaskName, owner)
				if of == "" && len(g.Tasks) == 1 {
					of = g.Tasks[0].Name
				}
				all = append(all, check{c, of})
			}
		}
	}
	add(g.Services, "")
	for _, t := range g.Tasks {
		add(t.Services, t.Name)
	}
	return all
}

// deciding returns the checks that decide about the health of an allocation.
func (a *alloc) deciding() (all []check) {
	g := a.group()
	if g.Migrate != nil && g.Migrate.HealthCheck == cluster.HealthTaskStates && g.Update != nil && g.Update.HealthCheck == cluster.HealthTaskStates {
		return nil
	}
	for _, c := range a.checks() {
		if c.OnUpdate != cluster.CheckIgnored {
			all = append(all, c)
		}
	}
	return all
}

// results are those of a check since its task and the client began, as the double of its target gave them.
type results struct {
	// passes and fails count the last ones.
	passes, fails int
	// since is from when on the check has passed, or zero. At failedAt it failed for the last time; before is from when on
	// it had passed until then.
	since, before, failedAt time.Time
	// failed counts the last failures after the grace of check_restart. overdue are those of them that come after the grace
	// from the record that states that the tasks run.
	failed, overdue int
	// restarts: failed has reached the limit. A run that began at once may still pass before the task gets its signal.
	restarts bool
}

// Checked implements [machine.Observer].
func (j *Judge) Checked(n *machine.Node, id cluster.AllocID, name string, passed bool) {
	j.now = n.Now()
	a := j.alloc(id)
	for _, c := range a.checks() {
		if c.Name != name {
			continue
		}
		r := a.results[name]
		if passed {
			r.passes, r.fails, r.failed, r.overdue = r.passes+1, 0, 0, 0
		} else {
			r.passes, r.fails = 0, r.fails+1
		}
		switch {
		case passed && r.since.IsZero() && r.passes >= c.SuccessBeforePassing:
			r.since = j.now
		case !passed && !r.since.IsZero() && r.fails >= c.FailuresBeforeCritical:
			r.since, r.before, r.failedAt = time.Time{}, r.since, j.now
		}
		a.results[name] = r
		if c.Restart != nil && !passed {
			j.tasks.checkFails(n, a, c)
		}
	}
}

// checkFails counts a failure of a check that restarts its tasks, and judges N2: they restart in time.
func (j *tasks) checkFails(n *machine.Node, a *alloc, c check) {
	r, began, troubled := a.results[c.Name], time.Time{}, false
	for _, t := range a.group().Tasks {
		starts := j.starts[string(a.id)+":"+t.Name]
		if !c.of(t) || len(starts) == 0 {
			continue
		}
		p, _ := n.Machine().Process(starts[len(starts)-1])
		if troubled = troubled || j.excused(&p) || p.Ended || len(p.Signals) > 0; p.StartedAt.After(began) {
			began = p.StartedAt
		}
	}
	grace := bounded(c.Restart.Grace)
	if !j.now.Before(began.Add(grace)) {
		r.failed++
	}
	if !j.now.Before(a.health.since.Add(grace)) && !a.health.since.IsZero() {
		r.overdue++
	}
	r.restarts = r.restarts || r.failed >= c.Restart.Limit
	if a.results[c.Name] = r; r.overdue > c.Restart.Limit+1 && !troubled && !a.lost && !a.stops() {
		j.find("N2 does not restart", a.id, "its check %s has failed %d times, and its limit is %d", c.Name, r.overdue, c.Restart.Limit)
	}
}

// began begins the results of the checks of a task.
func (a *alloc) began(task *cluster.Task) {
	for _, c := range a.checks() {
		if c.of(task) {
			delete(a.results, c.Name)
		}
	}
}

// restarting returns the checks that restart a task.
func (a *alloc) restarting(task *cluster.Task) (all []check) {
	return slices.DeleteFunc(a.checks(), func(c check) bool { return c.Restart == nil || !c.of(task) })
}

// restartsNow reports whether a task restarts, and traffic has to end before.
func (a *alloc) restartsNow(r *client.Record) bool {
	return len(a.deciding()) > 0 && slices.ContainsFunc(r.Tasks, func(t client.TaskRecord) bool { return t.Restarting })
}

// mayRestart reports whether a check of a task has failed so often that the task restarts, or no check restarts it.
func (j *tasks) mayRestart(a *alloc, task *cluster.Task, p *scripted.Process) bool {
	all := a.restarting(task)
	return len(all) == 0 || a.lost || j.excused(p) ||
		slices.ContainsFunc(all, func(c check) bool { return a.results[c.Name].restarts })
}

// early returns a check that had not passed for the least time when the allocation of a record became healthy, and from
// when on it had passed. The result of a run may come after the verdict, and before its record. So a failure at the time of the verdict
// does not count. A record that was saved late is not judged: many results may be newer.
func (v verdicts) early(a *alloc, r *client.Record, least time.Duration) (name string, since time.Time) {
	for _, c := range a.deciding() {
		since := a.results[c.Name].since
		if !a.results[c.Name].failedAt.Before(r.HealthyAt) {
			since = a.results[c.Name].before
		}
		if late := v.judge.now.Sub(r.HealthyAt) > saveWait; !late && (since.IsZero() || since.Add(least).After(r.HealthyAt)) {
			return c.Name, since
		}
	}
	return "", time.Time{}
}

// failsWithin is how long a client takes to find that a target does not pass.
func failsWithin(c check) time.Duration {
	return (c.Interval+c.Timeout)*time.Duration(max(1, c.FailuresBeforeCritical)) + noticed
}

// passesWithin is how long a client takes to find that a target passes. Its first run after the start of the client waits for
// an interval.
func passesWithin(c check) time.Duration {
	return (c.Interval+c.Timeout)*time.Duration(max(1, c.SuccessBeforePassing)+1) + noticed
}

// badTarget returns the check whose target has not passed for longer than a client that works takes to find it, and a time,
// or an empty name.
func (v verdicts) badTarget(n *machine.Node, a *alloc, at time.Time, longer time.Duration) (name string, since time.Time) {
	for _, c := range a.deciding() {
		t := machine.TargetOf(n, a.id, c.Name)
		within := failsWithin(c) + longer
		if t.State != machine.TargetPasses && t.Since.Add(within).Before(at) && v.judge.blocked.Add(within).Before(at) {
			return c.Name, t.Since
		}
	}
	return "", time.Time{}
}

// mayFail reports whether a check may have failed at a time: its target did not pass a short time before.
func (v verdicts) mayFail(n *machine.Node, a *alloc, at time.Time) bool {
	for _, c := range a.deciding() {
		if t := machine.TargetOf(n, a.id, c.Name); !t.Since.IsZero() && (t.State != machine.TargetPasses || at.Before(t.Since.Add(passesWithin(c)))) {
			return true
		}
	}
	return false
}

// passesSince returns since when a client that has started at a time has found that all targets pass. It is false if one does
// not.
func (v verdicts) passesSince(n *machine.Node, a *alloc, started time.Time) (since time.Time, all bool) {
	for _, c := range a.deciding() {
		t := machine.TargetOf(n, a.id, c.Name)
		if t.State != machine.TargetPasses {
			return since, false
		}
		for _, at := range []time.Time{t.Since, started, a.health.since} {
			if found := at.Add(passesWithin(c)); found.After(since) {
				since = found
			}
		}
	}
	return since, true
}

// watched reports whether the client works, and all tasks have run, for longer than it takes to find that a target does not
// pass.
func (v verdicts) watched(n *machine.Node, a *alloc, longer time.Duration) bool {
	for _, c := range a.deciding() {
		within := failsWithin(c) + c.Interval + longer
		if !v.works(n, within) || !v.judge.now.After(a.health.since.Add(within)) {
			return false
		}
	}
	r := n.Record(a.id)
	if r == nil || r.Stopping {
		return false
	}
	for i := range r.Tasks {
		if t := a.group().Tasks[i]; t.Main() && r.Tasks[i].Phase != client.PhaseRunning {
			return false
		}
	}
	return true
}
