package shims

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Proposals takes messages for the log and answers what became of them, as a
// [Proposer] does.
type Proposals interface {
	Propose(m Message, reply func(Answer)) (queued bool)
	Barrier(reply func(Answer)) (queued bool)
}

var _ Proposals = (*Proposer)(nil)

// DrainerApplier begins the drainer's writes through a [Proposer], which its
// embedder closes. A proposer that others use too may have no room for the
// drainer when they fill its queue.
type DrainerApplier struct{ proposer Proposals }

var _ drainer.RaftApplier = (*DrainerApplier)(nil)

// NewDrainerApplier returns an applier over p.
func NewDrainerApplier(p Proposals) *DrainerApplier { return &DrainerApplier{proposer: p} }

// AllocUpdateDesiredTransition marks allocations and makes evaluations.
func (a *DrainerApplier) AllocUpdateDesiredTransition(m *rules.Marks, reply drainer.Reply) (queued bool) {
	return a.proposer.Propose(&AllocUpdateDesiredTransition{*m}, func(answer Answer) {
		reply(drainerAnswer(answer))
	})
}

// NodesDrainComplete ends drains.
func (a *DrainerApplier) NodesDrainComplete(c *rules.Completions, reply drainer.Reply) (queued bool) {
	return a.proposer.Propose(&NodesDrainComplete{*c}, func(answer Answer) {
		reply(drainerAnswer(answer))
	})
}

// Barrier is answered when every entry before it has been applied.
func (a *DrainerApplier) Barrier(reply drainer.Reply) (queued bool) {
	return a.proposer.Barrier(func(answer Answer) { reply(drainerAnswer(answer)) })
}

// drainerAnswer is an answer as the drainer takes it. An entry that the FSM refused as a
// whole counts as rejected: it changed nothing and never will.
func drainerAnswer(a Answer) drainer.Answer {
	answer := drainer.Answer{Outcome: a.Outcome, Index: a.Index, Err: a.Err}
	switch response := a.Response.(type) {
	case MarksApplied:
		answer.Response = response.Refused
	case CompletionsApplied:
		answer.Response = response.Refused
	case Refused:
		answer.Outcome, answer.Err = raftwrite.Rejected, response.Err
	}
	return answer
}
