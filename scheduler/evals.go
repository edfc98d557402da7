package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// JobEval is an evaluation of the job, for a change of it.
func JobEval(j *cluster.Job, trigger cluster.EvalTrigger, at time.Time, id cluster.EvalID) *cluster.Evaluation {
	return &cluster.Evaluation{
		ID: id, Namespace: j.Namespace, JobID: j.ID, Type: j.Type,
		Priority:    cmp.Or(j.Priority, cluster.DefaultJobPriority),
		TriggeredBy: trigger,
		Status:      cluster.EvalPending,
		CreateTime:  at, ModifyTime: at,
	}
}

// NodeEvals are the evaluations to make when a node takes another status or
// eligibility, registers, or is gone: one for each job that has an allocation on it
// that has not ended, for each system job that may run on it, and if it is ready for
// each such sysbatch job. They come in the order of the jobs. They are true of the
// state of the view alone: who makes them later than in the entry of the change,
// or from a state before it, may miss a job.
func NodeEvals(v View, node cluster.NodeID, trigger cluster.EvalTrigger, at time.Time, newID func() cluster.EvalID) []*cluster.Evaluation {
	jobs := make(map[cluster.JobKey]*cluster.Job)
	for a := range v.LiveAllocsByNode(node) {
		if _, seen := jobs[a.JobKey()]; !seen {
			jobs[a.JobKey()] = jobOf(v, a)
		}
	}
	if n := v.Node(node); n != nil {
		for j := range v.JobsOnEveryNode() {
			comes := j.Type == cluster.JobSystem || (j.Type == cluster.JobSysBatch && n.Ready())
			if comes && !j.Stop && acceptsJob(n, j) {
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

// ReportEvals are the evaluations to make in the entry that carries the reports:
// one for each job of which something ended that should run, in the order of the
// jobs. Of several reports of one end the first counts, as for the store. The view is the one just before they are applied; from an older one
// something may be missed.
func ReportEvals(v View, reports []cluster.AllocReport, at time.Time, newID func() cluster.EvalID) []*cluster.Evaluation {
	jobs := make(map[cluster.JobKey]*cluster.Job)
	ended := make(map[cluster.AllocID]bool)
	for _, r := range reports {
		if r.ClientStatus != cluster.ClientFailed && r.ClientStatus != cluster.ClientComplete {
			continue // most of them, and they cost no look
		}
		a := v.Alloc(r.Alloc)
		if a == nil || a.NodeID != r.Node || a.Terminal() || ended[a.ID] {
			continue
		}
		ended[a.ID] = true
		if endsEarly(a, r.ClientStatus) {
			jobs[a.JobKey()] = jobOf(v, a)
		}
	}
	return jobEvals(jobs, cluster.TriggerAllocFailure, at, newID)
}

// endsEarly reports whether an allocation that takes the status ends when it
// should not.
func endsEarly(a *cluster.Allocation, s cluster.ClientStatus) bool {
	switch s {
	case cluster.ClientFailed:
		return a.JobType() != cluster.JobSysBatch
	case cluster.ClientComplete:
		return !a.JobType().ToCompletion()
	}
	return false
}

// jobOf is the job of an allocation: its current version, or if it is gone as
// much of it as an evaluation needs.
func jobOf(v View, a *cluster.Allocation) *cluster.Job {
	if j := v.Job(a.JobKey()); j != nil {
		return j
	}
	if a.Job != nil {
		return a.Job
	}
	return &cluster.Job{Namespace: a.Namespace, ID: a.JobID, Type: a.JobType()}
}

func jobEvals(jobs map[cluster.JobKey]*cluster.Job, trigger cluster.EvalTrigger, at time.Time, newID func() cluster.EvalID) []*cluster.Evaluation {
	evals := make([]*cluster.Evaluation, 0, len(jobs))
	for _, key := range sortedJobs(jobs) {
		evals = append(evals, JobEval(jobs[key], trigger, at, newID()))
	}
	return evals
}

// sortedJobs returns the keys of a map in the order of jobs.
func sortedJobs[T any](m map[cluster.JobKey]T) []cluster.JobKey {
	return slices.SortedFunc(maps.Keys(m), cluster.JobKey.Compare)
}
