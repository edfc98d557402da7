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

// JobDeregister stops a job, or deletes it with its evaluations and allocations.
type JobDeregister struct {
	Job cluster.JobKey
	// Purge deletes the job, its evaluations, and its allocations, but for those that may run: see
	// [statestore.PurgeJob].
	Purge bool
	// At is the time of a purge, at which the allocations stop that run. Before
	// [cluster.VersionOfConfirmation] it is zero.
	At time.Time `codec:",omitempty"`
	// Evals are the job's evaluations, or nil. If there is none for a stopped job, or for a purged one
	// with allocations that have not ended, the FSM creates one with the time At.
	Evals []*cluster.Evaluation
}

func (*JobDeregister) Type() MessageType      { return JobDeregisterType }
func (*JobDeregister) responds(ChangeApplied) {}
func (m *JobDeregister) check() error         { return checkEvals(m.Evals) }

// needs is the version of the time of a purge.
func (m *JobDeregister) needs() cluster.Version {
	if !m.At.IsZero() {
		return cluster.VersionOfConfirmation
	}
	return cluster.MinVersion
}

func (m *JobDeregister) apply(txn *statestore.Txn) Response {
	var err error
	if m.Purge {
		err = statestore.PurgeJob(txn, m.Job, m.At)
	} else {
		err = txn.DeleteJob(m.Job, false)
	}
	if err != nil {
		return Refused{Err: err}
	}
	return done(evaluate(txn, m.Evals, m.required(txn.State())))
}

// required returns the evaluation that the entry requires, or none. After a purge the scheduler gives
// up the stopping allocations of nodes that are down, whose evaluations are deleted.
func (m *JobDeregister) required(after statestore.State) []*cluster.Evaluation {
	if j := after.Job(m.Job); j != nil {
		return []*cluster.Evaluation{scheduler.JobEval(j, cluster.TriggerJobDeregister, m.At, unnamed())}
	}
	for a := range after.AllocsByJob(m.Job) {
		if !a.ClientTerminal() {
			return scheduler.AllocEval(after.WorkView(), a.ID, cluster.TriggerJobDeregister, m.At, unnamed())
		}
	}
	return nil
}

// EvalUpdate writes evaluations.
type EvalUpdate struct {
	Evals []*cluster.Evaluation
}

func (*EvalUpdate) Type() MessageType                    { return EvalUpdateType }
func (*EvalUpdate) responds(ChangeApplied)               {}
func (m *EvalUpdate) check() error                       { return checkEvals(m.Evals) }
func (m *EvalUpdate) apply(txn *statestore.Txn) Response { return done(evaluate(txn, m.Evals, nil)) }
