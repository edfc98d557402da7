package shims

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// JobRegister registers a job or its next version. The FSM fills in defaults and refuses an
// invalid job.
type JobRegister struct {
	Job *cluster.Job
	// EnforceIndex refuses the registration unless the registered job has this JobModifyIndex when
	// the entry is applied. Zero means that the job must not exist.
	EnforceIndex   bool   `codec:",omitempty"`
	JobModifyIndex uint64 `codec:",omitempty"`
	// Evals are the job's evaluations, or nil.
	Evals []*cluster.Evaluation
}

func (*JobRegister) Type() MessageType      { return JobRegisterType }
func (*JobRegister) responds(ChangeApplied) {}

// needs is the version of the job's fields, or of the enforced index if that is higher.
func (m *JobRegister) needs() cluster.Version {
	if m.EnforceIndex || m.JobModifyIndex != 0 {
		return max(cluster.VersionOfDrivers, m.Job.NeededVersion())
	}
	return m.Job.NeededVersion()
}

func (m *JobRegister) check() error {
	if m.Job == nil {
		return errors.New("job is missing")
	}
	return checkEvals(m.Evals)
}

func (m *JobRegister) apply(txn *statestore.Txn) Response {
	job := m.Job.Copy()
	job.Canonicalize()
	if err := job.Validate(); err != nil {
		return Refused{Err: err}
	}
	if m.EnforceIndex {
		if err := txn.State().Job(job.Key()).CheckModifyIndex(m.JobModifyIndex); err != nil {
			return Refused{Err: err}
		}
	}
	if err := txn.UpsertJob(job); err != nil {
		return Refused{Err: err}
	}
	return done(evaluate(txn, m.Evals, nil))
}

// JobDeregister stops a job, or deletes it with its allocations and evaluations.
type JobDeregister struct {
	Job cluster.JobKey
	// Purge deletes the job, its allocations and its evaluations.
	Purge bool
	// Evals are the job's evaluations, or nil. A purged job needs none. If there is none for a
	// stopped job, the FSM creates one. Its time is zero, because the entry has no time.
	Evals []*cluster.Evaluation
}

func (*JobDeregister) Type() MessageType      { return JobDeregisterType }
func (*JobDeregister) responds(ChangeApplied) {}
func (m *JobDeregister) check() error         { return checkEvals(m.Evals) }

func (m *JobDeregister) apply(txn *statestore.Txn) Response {
	if err := txn.DeleteJob(m.Job, m.Purge); err != nil {
		return Refused{Err: err}
	}
	var required []*cluster.Evaluation
	if j := txn.State().Job(m.Job); j != nil {
		required = append(required, scheduler.JobEval(j, cluster.TriggerJobDeregister, time.Time{}, unnamed()))
	}
	return done(evaluate(txn, m.Evals, required))
}

// EvalUpdate writes evaluations.
type EvalUpdate struct {
	Evals []*cluster.Evaluation
}

func (*EvalUpdate) Type() MessageType                    { return EvalUpdateType }
func (*EvalUpdate) responds(ChangeApplied)               {}
func (m *EvalUpdate) check() error                       { return checkEvals(m.Evals) }
func (m *EvalUpdate) apply(txn *statestore.Txn) Response { return done(evaluate(txn, m.Evals, nil)) }
