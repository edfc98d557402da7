package shims

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Response is what the FSM says of one applied entry: what the message's type
// promises, or [Refused], or [Skipped]. Nothing in it is written to.
type Response interface{ response() }

// ChangeApplied says that the whole message took effect.
type ChangeApplied struct {
	// Evals are the evaluations that were made, or nil: those that the message
	// carries, and those that its effect called for.
	Evals []cluster.EvalID
}

// Refused says that the message asks for what cannot be, such as a drain of a
// node that does not exist. Nothing changed but the state's index.
type Refused struct {
	// Err is why, never nil. It wraps the store's sentinels.
	Err error
}

// Skipped says that this server does not know the message and that its type
// allows that. Nothing changed but the state's index.
type Skipped struct{ Type MessageType }

// NodesDeregistered answers [NodeDeregister].
type NodesDeregistered struct {
	// Missing are the nodes that did not exist, or nil. The others are gone.
	Missing []cluster.NodeID
	// Evals are the evaluations that were made, or nil.
	Evals []cluster.EvalID
}

// DrainRequestApplied answers [NodeUpdateDrain].
type DrainRequestApplied struct {
	statestore.DrainResult
	// Evals are the evaluations that were made, or nil.
	Evals []cluster.EvalID
}

// PlanApplied answers [ApplyPlan].
type PlanApplied struct {
	// Accepted is the part of the plan that took effect, never nil.
	Accepted *cluster.Plan
	// Refused is the rest, or nil.
	Refused []scheduler.Refusal
	// Dropped are accepted places that the store has no use for, such as one
	// whose id is taken, or nil.
	Dropped []cluster.AllocID
}

// MarksApplied answers [AllocUpdateDesiredTransition].
type MarksApplied struct {
	// Accepted are the marks that took effect, in the order in which they were
	// judged.
	Accepted []rules.Mark
	// Evals are the evaluations that were made.
	Evals []cluster.EvalID
	// Refused are the other marks, or nil.
	Refused []rules.Refusal
}

// CompletionsApplied answers [NodesDrainComplete].
type CompletionsApplied struct {
	// Ended are the drains that ended, and how.
	Ended []rules.Ending
	// Refused are the other completions, or nil.
	Refused []rules.Refusal
}

func (ChangeApplied) response()       {}
func (Refused) response()             {}
func (Skipped) response()             {}
func (NodesDeregistered) response()   {}
func (DrainRequestApplied) response() {}
func (PlanApplied) response()         {}
func (MarksApplied) response()        {}
func (CompletionsApplied) response()  {}

// done is the response of a message with nothing to say but that it failed, or
// which evaluations it made.
func done(evals []cluster.EvalID, err error) Response {
	if err != nil {
		return Refused{Err: err}
	}
	return ChangeApplied{Evals: evals}
}
