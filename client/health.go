package client

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// judgeHealth sets the health verdict of a service allocation, once. The allocation is healthy when
// its one-shot tasks have succeeded and all other tasks have run for the minimum healthy time since
// their last start. It is unhealthy when it fails, or when it is not healthy by the deadline.
func (a *allocRunner) judgeHealth() {
	if a.job != cluster.JobService || a.rec.Healthy != nil || a.orphan() {
		return
	}
	if a.order.failed() {
		a.judge(false)
		return
	}
	if a.order.ending() {
		return
	}
	least, deadline := time.Duration(cluster.DefaultMinHealthyTime), time.Duration(cluster.DefaultHealthyDeadline)
	if m := a.group.Migrate; m != nil {
		least, deadline = m.MinHealthyTime, m.HealthyDeadline
	}
	if a.healthyFor(least) {
		a.judge(true)
	} else if a.core.reached(later(a.rec.Received, deadline)) {
		a.judge(false)
		for _, t := range a.tasks {
			if t.rec.Phase != PhaseRunning && !t.task.Poststop() {
				t.event("Alloc Unhealthy", "The task was not running by the healthy deadline of "+deadline.String())
			}
		}
	}
}

// healthyFor reports whether the tasks have been healthy for at least this time.
func (a *allocRunner) healthyFor(least time.Duration) bool {
	healthy := true
	for _, t := range a.tasks {
		switch {
		case t.task.Poststop():
		case t.oneShot():
			healthy = healthy && t.rec.Phase == PhaseDead
		default:
			healthy = healthy && t.rec.Phase == PhaseRunning && t.start.confirmedRunning && a.core.reached(later(t.rec.RunningSince, least))
		}
	}
	return healthy
}

func (a *allocRunner) judge(healthy bool) {
	a.rec.Healthy, a.rec.HealthyAt = &healthy, a.core.now.Wall
	a.touch()
	a.report.noteUrgent()
}
