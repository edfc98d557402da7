package drainertest

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// drainerApplier proposes the drainer's writes to the simulated log.
type drainerApplier struct{ log *raftLog }

var _ drainer.RaftApplier = drainerApplier{}

func (a drainerApplier) AllocUpdateDesiredTransition(m *drainer.Marks, reply drainer.Reply) (queued bool) {
	return a.propose(&shims.AllocUpdateDesiredTransition{Marks: *m}, reply)
}

func (a drainerApplier) NodesDrainComplete(c *drainer.Completions, reply drainer.Reply) (queued bool) {
	return a.propose(&shims.NodesDrainComplete{Completions: *c}, reply)
}

func (a drainerApplier) Barrier(reply drainer.Reply) (queued bool) { return a.propose(nil, reply) }

func (a drainerApplier) propose(m shims.Message, reply drainer.Reply) (queued bool) {
	return a.log.propose(FromDrainer, m, func(answer shims.Answer) {
		out := drainer.Answer{Outcome: answer.Outcome, Index: answer.Index, Err: answer.Err}
		switch r := answer.Response.(type) {
		case shims.Marked:
			out.Refused = r.Refused
		case shims.Completed:
			out.Refused = r.Refused
		case shims.Refused: // it changed nothing and never will
			out.Outcome, out.Err = drainer.Rejected, r.Err
		}
		reply(out)
	})
}

// schedulerApplier proposes the scheduler's writes to the simulated log.
type schedulerApplier struct {
	log  *raftLog
	wake func()
}

var _ scheduler.Applier = schedulerApplier{}

func (a schedulerApplier) ApplyPlan(p *cluster.Plan, reply scheduler.Reply) (queued bool) {
	return a.propose(&shims.ApplyPlan{Plan: *p}, reply)
}

func (a schedulerApplier) UpsertEvals(evals []*cluster.Evaluation, reply scheduler.Reply) (queued bool) {
	return a.propose(&shims.EvalUpdate{Evals: evals}, reply)
}

func (a schedulerApplier) Barrier(reply scheduler.Reply) (queued bool) { return a.propose(nil, reply) }

func (a schedulerApplier) propose(m shims.Message, reply scheduler.Reply) (queued bool) {
	return a.log.propose(FromScheduler, m, func(answer shims.Answer) {
		out := scheduler.Answer{Outcome: scheduler.Unknown, Index: answer.Index, Err: answer.Err}
		switch answer.Outcome {
		case drainer.Applied:
			out.Outcome = scheduler.Applied
		case drainer.Rejected:
			out.Outcome = scheduler.Rejected
		}
		switch r := answer.Response.(type) {
		case shims.PlanApplied:
			out.Refused = r.Refused
		case shims.Refused:
			out.Outcome, out.Err = scheduler.Rejected, r.Err
		}
		reply(out)
		a.wake()
	})
}
