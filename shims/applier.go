package shims

import "github.com/seed-f9cf0b39/nodedrain/drainer"

// Proposals takes messages for the log and answers what became of them, as a
// [Proposer] does.
type Proposals interface {
	Propose(m Message, reply func(Answer)) (queued bool)
	Barrier(reply func(Answer)) (queued bool)
}

var _ Proposals = (*Proposer)(nil)

// RaftApplier begins the drainer's writes through a [Proposer], which its
// embedder closes. A proposer that others use too may have no room for the
// drainer when they fill its queue.
type RaftApplier struct{ proposer Proposals }

var _ drainer.RaftApplier = (*RaftApplier)(nil)

// NewRaftApplier returns an applier over p.
func NewRaftApplier(p Proposals) *RaftApplier { return &RaftApplier{proposer: p} }

// AllocUpdateDesiredTransition marks allocations and makes evaluations.
func (a *RaftApplier) AllocUpdateDesiredTransition(m *drainer.Marks, reply drainer.Reply) (queued bool) {
	return a.proposer.Propose(&AllocUpdateDesiredTransition{*m}, func(answer Answer) {
		reply(drainerAnswer(answer))
	})
}

// NodesDrainComplete ends drains.
func (a *RaftApplier) NodesDrainComplete(c *drainer.Completions, reply drainer.Reply) (queued bool) {
	return a.proposer.Propose(&NodesDrainComplete{*c}, func(answer Answer) {
		reply(drainerAnswer(answer))
	})
}

// Barrier is answered when every entry before it has been applied.
func (a *RaftApplier) Barrier(reply drainer.Reply) (queued bool) {
	return a.proposer.Barrier(func(answer Answer) { reply(drainerAnswer(answer)) })
}

// drainerAnswer is an answer in the drainer's words. An entry that the FSM
// refused as a whole is as good as rejected: it changed nothing and never will.
func drainerAnswer(a Answer) drainer.Answer {
	answer := drainer.Answer{Outcome: a.Outcome, Index: a.Index, Err: a.Err}
	switch response := a.Response.(type) {
	case Marked:
		answer.Refused = response.Refused
	case Completed:
		answer.Refused = response.Refused
	case Refused:
		answer.Outcome, answer.Err = drainer.Rejected, response.Err
	}
	return answer
}
