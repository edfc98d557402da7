package client

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// judgeHealth follows the health of an allocation of a service or system job: drains read that of services,
// and rollouts that of both. An allocation that the servers have stopped
// keeps its verdict: nothing reads it any more, and each verdict is an entry in the raft log. An allocation that
// waits for data has none.
func (a *allocRunner) judgeHealth() {
	if a.job.ToCompletion() || a.orphan() || a.rec.Alloc.ServerTerminal() || a.report.endOnly || a.in.pending() {
		return
	}
	facts := a.healthFacts()
	before := a.rec.Healthy
	changed, next := a.rec.Judge(a.core.now.Boot, facts)
	a.core.reached(next) // requests a step at that time
	if !changed {
		return
	}
	a.rec.HealthyAt = a.core.now.Wall
	if before == nil && !*a.rec.Healthy && !facts.Failed {
		for _, t := range a.tasks {
			if t.rec.Phase != PhaseRunning && !t.task.Poststop() {
				t.event("Alloc Unhealthy", "The task was not running by the healthy deadline of "+facts.Deadline.String())
			}
		}
	}
	if !*a.rec.Healthy {
		a.checks.blame(before == nil)
		for _, t := range a.tasks {
			if t.start.silent(facts.Deadline) {
				t.event("Alloc Unhealthy", "The driver has not answered for "+facts.Deadline.String()+" whether the task runs")
			}
		}
	}
	a.touch()
	a.report.noteUrgent()
	a.report.verdict = a.report.version
}

// healthFacts are the facts that decide about the health now. Poststop tasks do not count.
func (a *allocRunner) healthFacts() verdict.Facts {
	f := verdict.Facts{
		Terms: verdict.TermsOf(a.group), Received: a.rec.Received, Tasks: verdict.Up, Failed: a.order.failed(),
	}
	if in := a.rec.DataIn; in != nil {
		f.Received = max(f.Received, in.EndedAt)
	}
	switch {
	case a.rec.Stopping && unlists(a.group):
		f.Tasks = verdict.Down // the client stops it, and traffic must end before the shutdown delay
	case a.order.ending():
		f.Tasks = verdict.Unsure
	}
	for _, t := range a.tasks {
		switch {
		case t.task.Poststop():
		case t.oneShot() && t.rec.Phase == PhaseDead && !t.rec.State.Failed:
			f.Since = max(f.Since, t.rec.DeadSince)
		case t.oneShot() || t.rec.Phase != PhaseRunning || t.start.remaining != "" || t.restarting() && unlists(a.group):
			f.Tasks = verdict.Down
		case t.start.silent(f.Deadline):
			f.Tasks = verdict.Down
		default:
			f.Since = max(f.Since, t.rec.RunningSince, t.start.answeredAt)
			if !t.start.confirmedRunning {
				f.Tasks = min(f.Tasks, verdict.Unsure)
			}
		}
	}
	if a.group.ChecksDecide() {
		status, since := a.checks.verdict()
		f.Tasks, f.Since = min(f.Tasks, status), max(f.Since, since)
	}
	return f
}

// silent reports whether the driver, although it was restarted, has not answered for a time whether the task runs.
func (s *taskStart) silent(limit time.Duration) bool {
	return s.silentSince != 0 && s.t.core().reached(later(s.silentSince, limit))
}

// unlists reports whether an unhealthy allocation of the group loses a service: the service has checks that decide.
func unlists(g *cluster.TaskGroup) bool {
	for _, s := range g.ServiceDefinitions() {
		if s.Decides(g) {
			return true
		}
	}
	return false
}

// allocChecks are the checks of an allocation. Their state is not in the record: a later core begins with no result, and
// the verdict of the record stays until there are enough.
type allocChecks struct {
	alloc *allocRunner
	// set is nil without checks, and before the first step.
	set *checks.Set
	// begun: the first step has created the set.
	begun bool
}

func (c *allocChecks) now() checks.Time {
	return checks.Time{Boot: c.alloc.core.now.Boot, Wall: c.alloc.core.now.Wall}
}

// update takes over the definitions of a newer version of the job.
func (c *allocChecks) update() {
	defs := checks.Of(c.alloc.group)
	switch {
	case !c.begun:
	case c.set != nil:
		c.set.Update(defs)
	case len(defs) > 0 && !c.alloc.job.ToCompletion():
		c.set = checks.New(defs, false)
	}
}

// step begins and ends runs, and restarts tasks.
func (c *allocChecks) step() {
	a := c.alloc
	if !c.begun {
		c.begun = true
		if defs := checks.Of(a.group); len(defs) > 0 && !a.job.ToCompletion() {
			c.set = checks.New(defs, a.saves.saved > 0) // a record on the disk is of an earlier core
		}
	}
	if c.set == nil {
		return
	}
	work := c.set.Step(c.now(), c.startOf)
	for _, run := range work.End {
		a.core.options.Shell.EndCheck(a.id(), run)
	}
	for _, run := range work.Begin {
		begun := CheckRun{Run: run, Alloc: a.rec.Alloc}
		if t := c.scriptTask(run.Definition); t != nil {
			begun.Task = t.ref()
		}
		a.core.options.Shell.Check(begun, allocReply(a, func(r checks.Result) { c.set.Answer(run.Number, c.now(), r) }))
	}
	for _, failed := range work.Restart {
		c.restart(failed)
	}
	a.core.reached(work.Next) // requests a step at that time
}

// tasks are the tasks of a check: see [checks.Definition].
func (c *allocChecks) tasks(name string) (tasks []*taskRunner) {
	for _, t := range c.alloc.tasks {
		if t.task.Name == name || name == "" && t.task.Main() {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// scriptTask is the task in which a check runs its script, or nil for another check.
func (c *allocChecks) scriptTask(d checks.Definition) *taskRunner {
	if tasks := c.tasks(d.Task); d.Check.Type == cluster.CheckScript && len(tasks) > 0 {
		return tasks[0]
	}
	return nil
}

// startOf returns the present start of the tasks of a check. It is empty if one of them does not run, or must stop.
func (c *allocChecks) startOf(d checks.Definition) (start checks.Start) {
	if c.alloc.order.ending() {
		return start
	}
	for _, t := range c.tasks(d.Task) {
		if t.rec.Phase != PhaseRunning || t.rec.Stopping || t.restarting() {
			return checks.Start{}
		}
		start.ID += string(t.rec.ID) + " "
		start.Since = max(start.Since, t.rec.RunningSince)
	}
	if t := c.scriptTask(d); t != nil && (t.start.heldBy == 0 || t.start.heldBy != t.ref().Generation) {
		return checks.Start{} // the driver cannot run the script yet
	}
	return start
}

// verdict returns the state of the checks that decide.
func (c *allocChecks) verdict() (verdict.Tasks, time.Duration) {
	if c.set == nil {
		return verdict.Up, 0
	}
	switch status, since := c.set.Verdict(c.alloc.core.now.Boot); status {
	case checks.Failure:
		return verdict.Down, 0
	case checks.Pending:
		return verdict.Unsure, 0
	default:
		return verdict.Up, since
	}
}

// blame adds an event for each check that makes the allocation unhealthy. atDeadline means that the healthy deadline has
// passed, so that checks without a result count.
func (c *allocChecks) blame(atDeadline bool) {
	if c.set == nil || !c.alloc.group.ChecksDecide() {
		return
	}
	for _, r := range c.set.Deciding(checks.Failure) {
		c.event(r, "Alloc Unhealthy", "The "+r.String()+" fails: "+r.Output)
	}
	if !atDeadline {
		return
	}
	for _, r := range c.set.Deciding(checks.Pending) {
		c.event(r, "Alloc Unhealthy", "The "+r.String()+" has not passed by the healthy deadline. Its last result: "+cmp.Or(r.Output, "none"))
	}
}

// event adds an event to the tasks of a check.
func (c *allocChecks) event(r checks.Report, kind, message string) {
	for _, t := range c.tasks(r.Task) {
		t.event(kind, cluster.CutText(message))
	}
}

// restart restarts the tasks of a check that has failed too often.
func (c *allocChecks) restart(r checks.Report) {
	for _, t := range c.tasks(r.Task) {
		if t.rec.Phase == PhaseRunning && !t.restarting() {
			t.rec.Restarting, t.rec.Unhealthy = true, true
			c.alloc.restarts.signaled(t, cluster.CutText(fmt.Sprintf("The %s has failed %d times in a row: %s", r, r.Check.Restart.Limit, r.Output)))
		}
	}
}
