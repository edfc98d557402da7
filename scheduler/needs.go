package scheduler

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// Needs returns why plans of the allocation's job depend on the allocation, or the empty string. A
// state machine may delete an ended allocation that no plan needs. After that the job runs as many
// allocations as before, and none again that has had its run, unless the job's work changes. If
// the job is stopped or gone, no plan needs its ended allocations.
func Needs(v View, a *cluster.Allocation) (why string) {
	job := jobView{view: v, job: v.Job(a.JobKey())}
	g := job.group(a)
	switch {
	case !a.ClientTerminal():
		return "it has not ended"
	case g == nil:
		return ""
	case job.holds(a), job.ranOnce(a):
		return "it holds a slot of its group"
	case job.mayBeReplaced(g, a):
		return "it waits for its replacement"
	case job.isCounted(a):
		return "it counts as a failure of its replacement"
	case job.isReplacementOfLive(a):
		return "the allocation that it replaced has come back"
	}
	return ""
}

// mayBeReplaced reports whether a plan may place a replacement of an ended allocation: the job has
// an open evaluation, or the allocation is a canary, which the job does not count.
func (v jobView) mayBeReplaced(g *cluster.TaskGroup, a *cluster.Allocation) bool {
	held := isHeld(g, a) // of canaries alone: others hold a slot
	switch s, _ := v.stand(g, a); {
	case s == owed, s == ended, s == migrating, held:
	default:
		return false
	}
	if a.Canary() {
		return true
	}
	for range v.view.OpenEvals(a.JobKey()) {
		return true
	}
	return false
}

// isCounted reports whether the allocation is one of the failures in a row that [jobView.isSpent]
// counts for an allocation that the servers have not stopped.
func (v jobView) isCounted(a *cluster.Allocation) bool {
	for range cluster.MaxReschedules {
		if a.DesiredDescription != cluster.DescRescheduled {
			return false
		}
		a = v.view.Alloc(a.NextAllocation)
		if a == nil {
			return false
		}
		if !a.ServerTerminal() {
			return true
		}
	}
	return false
}

// isReplacementOfLive reports whether [jobView.successorRuns] follows the allocation: it is one of
// the successive replacements of an allocation that still runs.
func (v jobView) isReplacementOfLive(a *cluster.Allocation) bool {
	for range cluster.MaxReschedules + 1 {
		a = v.view.Alloc(a.PreviousAllocation)
		if a == nil {
			return false
		}
		if !a.Terminal() {
			return true
		}
	}
	return false
}
