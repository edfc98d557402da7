package shims

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
)

// SchedulerApplier starts the reference scheduler's writes through a [Proposer], which the
// embedder closes.
type SchedulerApplier struct{ proposer Proposals }

var _ scheduler.Applier = (*SchedulerApplier)(nil)

// NewSchedulerApplier returns an applier over p.
func NewSchedulerApplier(p Proposals) *SchedulerApplier { return &SchedulerApplier{proposer: p} }

// ApplyPlan proposes a plan. The FSM applies the part that [scheduler.Check] accepts.
func (a *SchedulerApplier) ApplyPlan(plan *cluster.Plan, reply scheduler.Reply) (queued bool) {
	return a.proposer.Propose(&ApplyPlan{*plan}, func(answer Answer) { reply(schedulerAnswer(answer)) })
}

// UpsertEvals writes evaluations.
func (a *SchedulerApplier) UpsertEvals(evals []*cluster.Evaluation, reply scheduler.Reply) (queued bool) {
	return a.proposer.Propose(&EvalUpdate{evals}, func(answer Answer) { reply(schedulerAnswer(answer)) })
}

// Barrier is answered after all earlier entries have been applied.
func (a *SchedulerApplier) Barrier(reply scheduler.Reply) (queued bool) {
	return a.proposer.Barrier(func(answer Answer) { reply(schedulerAnswer(answer)) })
}

// schedulerAnswer converts an answer for the scheduler; see drainerAnswer.
func schedulerAnswer(a Answer) scheduler.Answer {
	answer := scheduler.Answer{Outcome: a.Outcome, Index: a.Index, Err: a.Err}
	switch response := a.Response.(type) {
	case PlanApplied:
		answer.Response = response.Refused
	case Refused:
		answer.Outcome, answer.Err = raftwrite.Rejected, response.Err
	}
	return answer
}
