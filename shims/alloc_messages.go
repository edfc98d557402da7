package shims

import (
	"errors"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// AllocClientUpdate is what clients report of their allocations. A report that
// says nothing new, or what is not its client's to say, is passed over and
// hinders no other; see [statestore.Txn.UpdateAllocsFromClient].
type AllocClientUpdate struct {
	Reports []cluster.AllocReport
	// Evals are evaluations to make, or nil. Those of jobs of which something ends
	// that should run that are not among them are made when the entry is applied.
	Evals []*cluster.Evaluation
}

func (*AllocClientUpdate) Type() MessageType      { return AllocClientUpdateType }
func (*AllocClientUpdate) responds(ChangeApplied) {}
func (m *AllocClientUpdate) check() error         { return checkEvals(m.Evals) }

func (m *AllocClientUpdate) apply(txn *statestore.Txn) Response {
	called := reportEvals(txn, m.Reports)
	txn.UpdateAllocsFromClient(m.Reports)
	return done(evaluate(txn, m.Evals, called))
}

// ApplyPlan does what a scheduler plans, as far as it still holds.
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

func (m *ApplyPlan) apply(txn *statestore.Txn) Response {
	accepted, refused := scheduler.Check(txn, &m.Plan)
	dropped, err := txn.ApplyPlan(accepted)
	if err != nil {
		return Refused{Err: err}
	}
	return PlanApplied{Accepted: accepted, Refused: refused, Dropped: dropped}
}
