package scheduler

import (
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Outcome is what became of a raft write.
type Outcome uint8

const (
	// Unknown: the entry may be applied, now or later. It is not sent again: the
	// state is read behind a barrier, and planned from.
	Unknown Outcome = iota
	// Rejected: the entry was surely not applied and never will be.
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
	// Index is, of an applied entry, its raft index; of an applied barrier, the
	// index of the newest entry in the state behind it.
	Index uint64
	// Refused are the parts of an applied plan that [Check] refused, or nil.
	Refused []Refusal
	// Err is why the entry was rejected or its outcome is unknown, or nil.
	Err error
}

// Reply receives the answer to one raft write, once. It never blocks.
type Reply func(Answer)

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

// inbox holds answers until the next step. It is safe for concurrent use.
type inbox struct {
	mu      sync.Mutex
	answers []answered // guarded by mu
}

func (b *inbox) post(a answered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers = append(b.answers, a)
}

// take empties the inbox.
func (b *inbox) take() []answered {
	b.mu.Lock()
	defer b.mu.Unlock()
	answers := b.answers
	b.answers = nil
	return answers
}
