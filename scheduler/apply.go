package scheduler

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
)

// Answer is the result of one of the scheduler's raft writes. Its response holds the parts
// of an applied plan that [Check] refused.
type Answer = raftwrite.Answer[[]Refusal]

// Reply receives the answer to one of the scheduler's raft writes, once. It never blocks.
type Reply = raftwrite.Reply[[]Refusal]

// Applier begins raft writes. Each method returns at once: true if the write was
// queued, and then calls reply exactly once, later and from any goroutine; false
// if there is no room, and then nothing happens. The applier owns the argument of a queued
// write; the scheduler does not change it any more.
//
// If an applier answers Rejected and the write is applied later, the scheduler has planned
// the same again, and [Check] refuses the surplus. When in doubt, answer Unknown.
type Applier interface {
	// ApplyPlan proposes a plan. The FSM applies the part that [Check] accepts.
	ApplyPlan(*cluster.Plan, Reply) (queued bool)
	// UpsertEvals writes evaluations.
	UpsertEvals([]*cluster.Evaluation, Reply) (queued bool)
	// Barrier is answered after all earlier entries have been applied.
	Barrier(Reply) (queued bool)
}

// flight is one write that the state may not show yet.
type flight struct {
	// job is the job of a plan or an evaluation; of a barrier it is empty.
	job cluster.JobKey
	// plan is the plan, or nil for another write.
	plan *cluster.Plan
	// answered means that answer is set.
	answered bool
	answer   Answer
	// covered means that a barrier was started after the answer Unknown.
	covered bool
}

// answered is a write and its answer.
type answered struct {
	flight *flight
	answer Answer
}
