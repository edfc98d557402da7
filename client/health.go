package client

import (
	"github.com/seed-f9cf0b39/nodedrain/client/verdict"
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
	a.touch()
	a.report.noteUrgent()
}

// healthFacts are the facts that decide about the health now. Poststop tasks do not count.
func (a *allocRunner) healthFacts() verdict.Facts {
	f := verdict.Facts{
		Terms: verdict.TermsOf(a.group), Received: a.rec.Received, Tasks: verdict.Up, Failed: a.order.failed(),
	}
	if in := a.rec.DataIn; in != nil {
		f.Received = max(f.Received, in.EndedAt)
	}
	if a.order.ending() {
		f.Tasks = verdict.Unsure
	}
	for _, t := range a.tasks {
		switch {
		case t.task.Poststop():
		case t.oneShot() && t.rec.Phase == PhaseDead && !t.rec.State.Failed:
			f.Since = max(f.Since, t.rec.DeadSince)
		case t.oneShot() || t.rec.Phase != PhaseRunning:
			f.Tasks = verdict.Down
		default:
			f.Since = max(f.Since, t.rec.RunningSince)
			if !t.start.confirmedRunning {
				f.Tasks = min(f.Tasks, verdict.Unsure)
			}
		}
	}
	return f
}
