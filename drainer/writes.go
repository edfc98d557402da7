package drainer

import (
	"cmp"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Mark asks for one allocation to leave its node.
type Mark struct {
	Alloc cluster.AllocID
	// Group is the allocation's group, Node its node.
	Group cluster.GroupKey
	Node  cluster.NodeID
	// Drain is the drain that wants it, and Revision what it was planned
	// against.
	Drain    cluster.DrainID
	Revision cluster.Revision
	Class    cluster.MarkClass
}

// compare orders marks as they are judged: by namespace, job, group, allocation.
func (m Mark) compare(o Mark) int {
	return cmp.Or(m.Group.Compare(o.Group), cmp.Compare(m.Alloc, o.Alloc))
}

// Marks is one raft entry of marks, with the evaluations of their jobs.
type Marks struct {
	// At is the proposer's time; the applier reads no other clock.
	At     time.Time
	Policy Policy
	// Marks are in (namespace, job, group, allocation) order.
	Marks []Mark
	// Reevaluate are groups, in order, with marked allocations that run on and no
	// open evaluation that would stop them.
	Reevaluate []cluster.GroupKey
	// Evals holds one evaluation for each job with a mark or a group to
	// re-evaluate here, in (namespace, job) order. The one of a job with no
	// accepted mark, and no group that still needs it, is dropped.
	Evals []*cluster.Evaluation
}

// Completion ends one drain.
type Completion struct {
	Node     cluster.NodeID
	Drain    cluster.DrainID
	Revision cluster.Revision
}

// Completions is one raft entry of completions.
type Completions struct {
	// At is the proposer's time; the applier reads no other clock.
	At     time.Time
	Policy Policy
	// Completions are in node order.
	Completions []Completion
}

// Refusal says why one item of an entry was not applied when its entry was.
type Refusal struct {
	// Alloc is the allocation of a refused mark, or empty.
	Alloc cluster.AllocID
	// Node is the node of the refused mark or completion.
	Node cluster.NodeID
	Why  string
}

// Outcome is what became of a raft write.
type Outcome uint8

const (
	// Unknown: the entry may be applied, now or later. Do not send it again:
	// read the state behind a barrier, then plan.
	Unknown Outcome = iota
	// Rejected: the entry was surely not applied and never will be. Plan again.
	Rejected
	// Applied: the entry was applied; the answer says what was refused.
	Applied
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Rejected:
		return "rejected"
	}
	return "unknown"
}

// Answer is what became of one raft write.
type Answer struct {
	Outcome Outcome
	// Index is, of an applied entry, its own raft index and no other's: what a feed tells
	// of that entry is taken for what was written. To answer a later one stalls drains. Of
	// an applied barrier it is the index of the newest entry in the state behind it.
	Index uint64
	// Refused are the items of an applied entry that were not applied.
	Refused []Refusal
	// Err is why the entry was rejected or its outcome is unknown, or nil.
	Err error
}

// Reply receives the answer to one raft write, once. It never blocks.
type Reply func(Answer)

// RaftApplier begins raft writes. Each method returns at once: true if the write
// was queued, and then calls reply exactly once, later and from any goroutine;
// false if there is no room, and then nothing happens. What a queued write
// carries belongs to the applier and is not written to any more.
//
// A write that is queued and never answered stops the drainer for good: an
// applier has a deadline of its own, and answers Unknown then.
//
// An applier that answers Rejected for a write that may still be applied breaks
// G2 and G6: when in doubt the answer is Unknown.
type RaftApplier interface {
	// AllocUpdateDesiredTransition marks allocations and makes evaluations.
	AllocUpdateDesiredTransition(*Marks, Reply) (queued bool)
	// NodesDrainComplete ends drains.
	NodesDrainComplete(*Completions, Reply) (queued bool)
	// Barrier is answered when every entry before it has been applied.
	Barrier(Reply) (queued bool)
}
