package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// JobEval returns an evaluation for a change of the job.
func JobEval(j *cluster.Job, trigger cluster.EvalTrigger, at time.Time, id cluster.EvalID) *cluster.Evaluation {
	return &cluster.Evaluation{
		ID: id, Namespace: j.Namespace, JobID: j.ID, Type: j.Type,
		Priority:    cmp.Or(j.Priority, cluster.DefaultJobPriority),
		TriggeredBy: trigger,
		Status:      cluster.EvalPending,
		CreateTime:  at, ModifyTime: at,
	}
}

// NodeEvals returns the evaluations that a change of a node's status or eligibility, its
// registration or its deletion requires: one for each job with an allocation on the node that
// has not ended, for each system job that may run there, and, if the node is ready, for each
// such sysbatch job. They are in the order of the jobs. Create them in the entry of the change
// and from the state after it: otherwise a job may be missing.
func NodeEvals(v View, node cluster.NodeID, trigger cluster.EvalTrigger, at time.Time, newID func() cluster.EvalID) []*cluster.Evaluation {
	jobs := make(map[cluster.JobKey]*cluster.Job)
	for a := range v.LiveAllocsByNode(node) {
		if _, found := jobs[a.JobKey()]; !found {
			jobs[a.JobKey()] = jobOf(v, a)
		}
	}
	if n := v.Node(node); n != nil {
		for j := range v.JobsOnEveryNode() {
			comes := j.Type == cluster.JobSystem || (j.Type == cluster.JobSysBatch && n.Ready())
			if comes && !j.Stop && acceptsJob(n, j, v.ClusterVersion()) {
				jobs[j.Key()] = j
			}
		}
	}
	evals := jobEvals(jobs, trigger, at, newID)
	for _, e := range evals {
		e.NodeID = node
	}
	return evals
}

// ReportEvals returns the evaluations that reports of clients require: one for each job of
// which an allocation ended unexpectedly, in the order of the jobs. If several reports state
// that an allocation ended, the first counts, as in the store. From the cluster version of
// confirmations on it also returns one for each job whose allocations a plan may have to reconcile:
// see [isReconciled]. From that of rollouts on it returns one for each job with outdated allocations of
// which an allocation has become healthy: the next outdated one may be stopped. The view must be the state just before the reports are applied: with an older
// one a job may be missing.
func ReportEvals(v View, reports []cluster.AllocReport, at time.Time, newID func() cluster.EvalID) []*cluster.Evaluation {
	jobs := make(map[cluster.JobKey]*cluster.Job)
	ended := make(map[cluster.AllocID]bool)
	reconciles := v.ClusterVersion() >= cluster.VersionOfConfirmation
	rolls := rolling{view: v, jobs: make(map[cluster.JobKey]bool)}
	for _, r := range reports {
		ends := hasEnded(r.ClientStatus)
		if !ends && !reconciles {
			continue
		}
		a := v.Alloc(r.Alloc)
		if a == nil || a.NodeID != r.Node || ended[a.ID] {
			continue
		}
		ended[a.ID] = ends
		if ends && !a.Terminal() && endsEarly(a, r.ClientStatus) || reconciles && isReconciled(v, a, r.ClientStatus) ||
			becomesHealthy(a, r) && rolls.has(a.JobKey()) {
			jobs[a.JobKey()] = jobOf(v, a)
		}
	}
	return jobEvals(jobs, cluster.TriggerAllocFailure, at, newID)
}

// becomesHealthy reports whether an allocation is healthy from a report on: it gets the verdict, or it has the
// verdict and begins to run.
func becomesHealthy(a *cluster.Allocation, r cluster.AllocReport) bool {
	verdict := a.JudgedHealthy()
	if r.Healthy != nil {
		verdict = *r.Healthy
	}
	begins := a.ClientStatus != cluster.ClientRunning && r.ClientStatus == cluster.ClientRunning
	return verdict && !a.Terminal() && (!a.JudgedHealthy() || begins)
}

// isReconciled reports whether a report that gives an allocation a status may let a plan reconcile an
// allocation that came back with its replacement, or place one that may have been running:
//   - the servers had the allocation as unknown, because its node was disconnected;
//   - it runs from now on, and the allocation that it replaces has not ended;
//   - it keeps its slot because nothing had confirmed its end, and the report confirms it. From
//     [cluster.VersionOfConfirmingReports] on a report that it runs requires nothing, because it changes nothing.
func isReconciled(v View, a *cluster.Allocation, s cluster.ClientStatus) bool {
	switch {
	case a.ServerTerminal():
		return (hasEnded(s) || v.ClusterVersion() < cluster.VersionOfConfirmingReports) && IsHeld(v, a)
	case a.ClientStatus == cluster.ClientUnknown:
		return true
	case s != cluster.ClientRunning || a.ClientStatus != cluster.ClientPending || a.PreviousAllocation == "" || a.Standby:
		return false
	}
	return jobView{view: v}.isReplacementOfLive(a)
}

// hasEnded reports whether an allocation with the status has ended by the report of its client.
func hasEnded(s cluster.ClientStatus) bool {
	return s == cluster.ClientFailed || s == cluster.ClientComplete
}

// endsEarly reports whether an allocation with the status has ended unexpectedly.
func endsEarly(a *cluster.Allocation, s cluster.ClientStatus) bool {
	switch s {
	case cluster.ClientFailed:
		return a.JobType() != cluster.JobSysBatch
	case cluster.ClientComplete:
		return !a.JobType().ToCompletion()
	}
	return false
}

// jobOf returns the current version of an allocation's job. If the job is gone, it returns
// the fields that an evaluation needs.
func jobOf(v View, a *cluster.Allocation) *cluster.Job {
	if j := v.Job(a.JobKey()); j != nil {
		return j
	}
	if a.Job != nil {
		return a.Job
	}
	return &cluster.Job{Namespace: a.Namespace, ID: a.JobID, Type: a.JobType()}
}

// AllocEval returns an evaluation of the job of an allocation, or none if the allocation does not exist.
func AllocEval(v View, id cluster.AllocID, trigger cluster.EvalTrigger, at time.Time, eval cluster.EvalID) []*cluster.Evaluation {
	a := v.Alloc(id)
	if a == nil {
		return nil
	}
	return []*cluster.Evaluation{JobEval(jobOf(v, a), trigger, at, eval)}
}

func jobEvals(jobs map[cluster.JobKey]*cluster.Job, trigger cluster.EvalTrigger, at time.Time, newID func() cluster.EvalID) []*cluster.Evaluation {
	evals := make([]*cluster.Evaluation, 0, len(jobs))
	for _, key := range sortedJobs(jobs) {
		evals = append(evals, JobEval(jobs[key], trigger, at, newID()))
	}
	return evals
}

// sortedJobs returns the keys of the map in order.
func sortedJobs[T any](m map[cluster.JobKey]T) []cluster.JobKey {
	return slices.SortedFunc(maps.Keys(m), cluster.JobKey.Compare)
}
