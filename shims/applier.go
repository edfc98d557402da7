package shims

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Proposals proposes messages and answers with their outcome, like a [Proposer].
type Proposals interface {
	Propose(m Message, reply func(Answer)) (queued bool)
	Barrier(reply func(Answer)) (queued bool)
}

var _ Proposals = (*Proposer)(nil)

// DrainerApplier starts the drainer's writes through a [Proposer], which the embedder
// closes. If the proposer has other users, they may fill its queue, and the drainer waits.
type DrainerApplier struct{ proposer Proposals }

var _ drainer.RaftApplier = (*DrainerApplier)(nil)

// NewDrainerApplier returns an applier over p.
func NewDrainerApplier(p Proposals) *DrainerApplier { return &DrainerApplier{proposer: p} }

// AllocUpdateDesiredTransition marks allocations and writes evaluations.
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

// Barrier is answered after all earlier entries have been applied.
func (a *DrainerApplier) Barrier(reply drainer.Reply) (queued bool) {
	return a.proposer.Barrier(func(answer Answer) { reply(drainerAnswer(answer)) })
}

// drainerAnswer converts an answer for the drainer. An entry that the FSM refused counts as
// rejected, because it changed nothing.
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
