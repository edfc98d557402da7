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
// if there is no room, and then nothing happens. What a queued write carries
// belongs to the applier and is not written to any more.
//
// An applier that answers Rejected for a write that may still be applied makes
// the scheduler plan the same again; [Check] then refuses what is too much. When
// in doubt the answer is Unknown.
type Applier interface {
	// ApplyPlan has the plan checked, and what holds of it done.
	ApplyPlan(*cluster.Plan, Reply) (queued bool)
	// UpsertEvals makes evaluations.
	UpsertEvals([]*cluster.Evaluation, Reply) (queued bool)
	// Barrier is answered when every entry before it has been applied.
	Barrier(Reply) (queued bool)
}

// flight is one write that the state may not show yet.
type flight struct {
	// job is the job of a plan or an evaluation; of a barrier it is empty.
	job cluster.JobKey
	// plan is the plan, or nil if the write is none.
	plan *cluster.Plan
	// answered says that answer holds.
	answered bool
	answer   Answer
	// covered says that a barrier has been begun since the answer was Unknown.
	covered bool
}

// answered is a write and its answer.
type answered struct {
	flight *flight
	answer Answer
}
