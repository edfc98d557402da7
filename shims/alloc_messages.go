package shims

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// AllocClientUpdate applies the reports of clients about their allocations. Invalid reports and
// reports that change nothing are ignored; see [statestore.Txn.UpdateAllocsFromClient].
type AllocClientUpdate struct {
	// At is the proposer's time, or zero below [cluster.VersionOfConfirmation].
	At      time.Time `codec:",omitempty"`
	Reports []cluster.AllocReport
	// Evals are evaluations to write, or nil. If an allocation of a job without one of them
	// ended unexpectedly, the FSM adds an evaluation of that job.
	Evals []*cluster.Evaluation
}

func (*AllocClientUpdate) Type() MessageType      { return AllocClientUpdateType }
func (*AllocClientUpdate) responds(ChangeApplied) {}
func (m *AllocClientUpdate) check() error         { return checkEvals(m.Evals) }

// needs is the highest version of the fields of the message and of its reports.
func (m *AllocClientUpdate) needs() cluster.Version {
	needed := cluster.MinVersion
	if !m.At.IsZero() {
		needed = cluster.VersionOfConfirmation
	}
	for i := range m.Reports {
		needed = max(needed, m.Reports[i].NeededVersion())
	}
	return needed
}

func (m *AllocClientUpdate) apply(txn *statestore.Txn) Response {
	required := reportEvals(txn, m.Reports) // reads the state before the reports
	txn.UpdateAllocsFromClient(m.Reports, m.At)
	return done(evaluate(txn, m.Evals, required))
}

// AllocStop stops and replaces an allocation at an operator's request. The allocation gets a mark
// to migrate that belongs to no drain, and its job gets an evaluation. For an allocation that is
// leaving or has ended, only the evaluation is written.
type AllocStop struct {
	// At is the proposer's time.
	At    time.Time
	Alloc cluster.AllocID
	// Evals are evaluations to write, or nil. The FSM adds one for the allocation's job if there is
	// none.
	Evals []*cluster.Evaluation
}

func (*AllocStop) Type() MessageType      { return AllocStopType }
func (*AllocStop) responds(ChangeApplied) {}
func (*AllocStop) needs() cluster.Version { return cluster.VersionOfStops }
func (m *AllocStop) check() error         { return checkEvals(m.Evals) }

func (m *AllocStop) apply(txn *statestore.Txn) Response {
	if err := txn.MigrateAlloc(m.Alloc, m.At); err != nil {
		return Refused{Err: err}
	}
	required := scheduler.AllocEval(txn.State().WorkView(), m.Alloc, cluster.TriggerAllocStop, m.At, unnamed())
	return done(evaluate(txn, m.Evals, required))
}

// ApplyPlan applies the part of a plan that [scheduler.Check] accepts.
type ApplyPlan struct {
	cluster.Plan
}

func (*ApplyPlan) Type() MessageType    { return ApplyPlanType }
func (*ApplyPlan) responds(PlanApplied) {}

func (m *ApplyPlan) check() error {
	if m.Eval == nil {
		return errors.New("evaluation is missing")
	}
	return errors.Join(checkList("allocation", m.Places), checkEvals(m.Answers))
}

// needs is the highest version of the fields of the placements and their jobs.
func (m *ApplyPlan) needs() cluster.Version {
	needed := cluster.MinVersion
	for i, a := range m.Places {
		if i > 0 && a.Job == m.Places[i-1].Job && a.TaskStates == nil {
			continue // most plans place one job
		}
		needed = max(needed, a.NeededVersion())
	}
	return needed
}

func (m *ApplyPlan) apply(txn *statestore.Txn) Response {
	accepted, refused := scheduler.Check(txn.State().WorkView(), &m.Plan)
	dropped, err := txn.ApplyPlan(accepted)
	if err != nil {
		return Refused{Err: err}
	}
	return PlanApplied{Accepted: accepted, Refused: refused, Dropped: dropped}
}
