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
	case awaited(job, a) != nil, job.mayBeReplaced(g, a):
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

// AwaitsReplacement reports whether an allocation of a group with a policy has ended, and its replacement is
// delayed or due.
func AwaitsReplacement(v View, a *cluster.Allocation) bool {
	return awaited(jobView{view: v, job: v.Job(a.JobKey())}, a) != nil
}

// awaited returns when the replacement of an allocation that has ended is due, or nil if its group has no
// policy or the allocation is not replaced.
func awaited(v jobView, a *cluster.Allocation) *cluster.Rescheduling {
	r := v.job.Rescheduling(a, v.view.Alloc)
	if r != nil && r.Spent {
		return nil
	}
	return r
}

// isCounted reports whether the allocation is one of the failures in a row that [jobView.isSpent] or
// [cluster.Job.Rescheduling] counts for an allocation that the servers have not stopped.
func (v jobView) isCounted(a *cluster.Allocation) bool {
	most := cluster.MaxReschedules
	if g := v.group(a); g != nil && g.Reschedule != nil {
		most = g.Reschedule.Reach()
	}
	for range most {
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
func (v jobView) isReplacementOfLive(a *cluster.Allocation) bool { return livePredecessor(v, a) != nil }

// livePredecessor returns the allocation that still runs of which this one is one of the successive replacements,
// or nil.
func livePredecessor(v jobView, a *cluster.Allocation) *cluster.Allocation {
	longest := cluster.MaxReschedules + 1
	if v.view.ClusterVersion() >= cluster.VersionOfRescheduling {
		longest = cluster.MaxRescheduleAttempts
	}
	for range longest {
		a = v.view.Alloc(a.PreviousAllocation)
		if a == nil || !a.Terminal() {
			return a
		}
	}
	return nil
}
