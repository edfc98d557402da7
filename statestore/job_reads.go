package statestore

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// jobReads reads jobs and their evaluations.
type jobReads struct{ *tables }

// Job returns the current version of the job, or nil.
func (r jobReads) Job(k cluster.JobKey) *cluster.Job {
	return first[cluster.Job](r.tables, TableJobs, indexID, jobKey(k))
}

// Jobs yields the current versions of all jobs, by namespace and id.
func (r jobReads) Jobs() iter.Seq[*cluster.Job] {
	return scan[cluster.Job](r.tables, TableJobs, indexID, nil)
}

// JobsOnEveryNode yields the jobs that run on every fitting node, by namespace and id.
func (r jobReads) JobsOnEveryNode() iter.Seq[*cluster.Job] {
	return scan[cluster.Job](r.tables, TableJobs, indexEveryNode, nil)
}

// Eval returns the evaluation, or nil.
func (r jobReads) Eval(id cluster.EvalID) *cluster.Evaluation {
	return first[cluster.Evaluation](r.tables, TableEvals, indexID, lone(id))
}

// Evals yields all evaluations by id.
func (r jobReads) Evals() iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](r.tables, TableEvals, indexID, nil)
}

// EvalsByJob yields a job's evaluations: the open ones first, then the others,
// each by creation index and id.
func (r jobReads) EvalsByJob(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](r.tables, TableEvals, indexLists, evalsOfJob(k))
}

// OpenEvals yields the job's evaluations that are pending or blocked, by
// creation index, then id.
func (r jobReads) OpenEvals(k cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](r.tables, TableEvals, indexLists, evalsOfJob(k).bool(false))
}

// PendingEvals yields the evaluations that wait for the scheduler: higher
// priority first, then by creation index, then id.
func (r jobReads) PendingEvals() iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](r.tables, TableEvals, indexLists, queue(cluster.EvalPending))
}

// BlockedEvals yields the evaluations that wait for capacity, in the order of
// PendingEvals.
func (r jobReads) BlockedEvals() iter.Seq[*cluster.Evaluation] {
	return scan[cluster.Evaluation](r.tables, TableEvals, indexLists, queue(cluster.EvalBlocked))
}
