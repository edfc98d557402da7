package shims

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
)

// Response is the FSM's response to one applied entry: the response of the message's type,
// or [Refused], or [Skipped]. The receiver must not change it.
type Response interface{ response() }

// ChangeApplied means that the whole message took effect.
type ChangeApplied struct {
	// Evals are the written evaluations, or nil: those of the message, and those that its
	// effect required.
	Evals []cluster.EvalID
}

// Refused means that the message cannot be applied, such as a drain of a node that does not
// exist. Only the state's index changed.
type Refused struct {
	// Err is the reason, never nil. It may wrap an error of statestore.
	Err error
}

// Skipped means that this server does not have the ignorable type of the message. Only the
// state's index changed.
type Skipped struct{ Type MessageType }

// NodesDeregistered answers [NodeDeregister].
type NodesDeregistered struct {
	// Missing are the nodes that did not exist, or nil. The others are deleted.
	Missing []cluster.NodeID
	// Evals are the written evaluations, or nil.
	Evals []cluster.EvalID
}

// DrainRequestApplied answers [NodeUpdateDrain].
type DrainRequestApplied struct {
	cluster.DrainResult
	// Evals are the written evaluations, or nil.
	Evals []cluster.EvalID
}

// PlanApplied answers [ApplyPlan].
type PlanApplied struct {
	// Accepted is the applied part of the plan, never nil.
	Accepted *cluster.Plan
	// Refused is the rest, or nil.
	Refused []scheduler.Refusal
	// Dropped are accepted placements that the store dropped, such as one whose id is
	// taken, or nil.
	Dropped []cluster.AllocID
}

// MarksApplied answers [AllocUpdateDesiredTransition].
type MarksApplied struct {
	// Accepted are the applied marks, in the order of the re-check.
	Accepted []rules.Mark
	// Evals are the written evaluations.
	Evals []cluster.EvalID
	// Refused are the other marks, or nil.
	Refused []rules.Refusal
}

// CompletionsApplied answers [NodesDrainComplete].
type CompletionsApplied struct {
	// Ended are the ended drains with their outcomes.
	Ended []rules.Ending
	// Refused are the other completions, or nil.
	Refused []rules.Refusal
}

// CollectApplied answers [Collect].
type CollectApplied struct {
	// Deleted are the deleted rows.
	Deleted collect.Rows
	// Kept counts the entry's rows that were not deleted: they are still needed, or did not exist.
	Kept int
}

func (ChangeApplied) response()       {}
func (Refused) response()             {}
func (Skipped) response()             {}
func (NodesDeregistered) response()   {}
func (DrainRequestApplied) response() {}
func (PlanApplied) response()         {}
func (MarksApplied) response()        {}
func (CompletionsApplied) response()  {}
func (CollectApplied) response()      {}

// done is the response of a message without its own response type.
func done(evals []cluster.EvalID, err error) Response {
	if err != nil {
		return Refused{Err: err}
	}
	return ChangeApplied{Evals: evals}
}
