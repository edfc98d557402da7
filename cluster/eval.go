package cluster

import (
	"maps"
	"time"
)

// EvalStatus is how far an evaluation has come.
type EvalStatus string

// The values of [EvalStatus].
const (
	// EvalPending waits for the scheduler.
	EvalPending EvalStatus = "pending"
	// EvalBlocked waits for capacity.
	EvalBlocked   EvalStatus = "blocked"
	EvalComplete  EvalStatus = "complete"
	EvalFailed    EvalStatus = "failed"
	EvalCancelled EvalStatus = "canceled"
)

// EvalTrigger is the reason why an evaluation was created.
type EvalTrigger string

// The values of [EvalTrigger].
const (
	TriggerJobRegister   EvalTrigger = "job-register"
	TriggerJobDeregister EvalTrigger = "job-deregister"
	TriggerNodeDrain     EvalTrigger = "node-drain"
	TriggerNodeUpdate    EvalTrigger = "node-update"
	TriggerQueuedAllocs  EvalTrigger = "queued-allocs"
	TriggerAllocFailure  EvalTrigger = "alloc-failure"
	TriggerAllocStop     EvalTrigger = "alloc-stop"
)

// Evaluation requires the scheduler to compare a job's allocations with its specification.
type Evaluation struct {
	ID          EvalID
	Namespace   Namespace
	JobID       JobID
	Type        JobType
	Priority    int
	TriggeredBy EvalTrigger
	// NodeID is the node whose change made the evaluation, or empty.
	NodeID NodeID

	Status            EvalStatus
	StatusDescription string
	// PreviousEval is the evaluation that made this one. BlockedEval is the evaluation that this
	// one made because an allocation could not be placed. Both may be empty.
	PreviousEval EvalID
	BlockedEval  EvalID
	// Queued counts, by group, the allocations that could not be placed, or nil.
	Queued map[string]int
	// SnapshotIndex is the index of the state that a blocked evaluation last saw. Another try is
	// useful only when capacity was added since.
	SnapshotIndex uint64

	CreateTime time.Time
	ModifyTime time.Time

	CreateIndex uint64
	ModifyIndex uint64
}

// BlockedEvalDescription is the status description of a blocked evaluation.
const BlockedEvalDescription = "created to place remaining allocations"

// JobKey returns the key of the evaluation's job.
func (e *Evaluation) JobKey() JobKey { return JobKey{Namespace: e.Namespace, ID: e.JobID} }

// Open reports whether the scheduler still has to act on the evaluation: it is pending, or
// blocked until there is capacity.
func (e *Evaluation) Open() bool { return e.Status == EvalPending || e.Status == EvalBlocked }

// Copy returns a copy that shares nothing with e.
func (e *Evaluation) Copy() *Evaluation {
	if e == nil {
		return nil
	}
	c := *e
	c.Queued = maps.Clone(e.Queued)
	return &c
}

// Collected counts the ended rows that were deleted.
type Collected struct {
	Allocs, Evals, Jobs int
}

// Total is the sum of all kinds.
func (c Collected) Total() int { return c.Allocs + c.Evals + c.Jobs }

// Plus adds the counts of o.
func (c Collected) Plus(o Collected) Collected {
	return Collected{Allocs: c.Allocs + o.Allocs, Evals: c.Evals + o.Evals, Jobs: c.Jobs + o.Jobs}
}

// Plan is a scheduler's answer to one evaluation. It is checked again when it is applied: parts
// that no longer hold are refused, and the rest is done.
type Plan struct {
	// At is the proposer's time.
	At time.Time
	// Eval is the evaluation as it will be after the plan.
	Eval *Evaluation
	// SnapshotIndex is the index of the state from which the plan was made.
	SnapshotIndex uint64
	// Stops are allocations to stop.
	Stops []PlanStop
	// Places are new allocations, complete except for their indexes.
	Places []*Allocation
	// Blocked is the blocked evaluation for allocations that could not be placed, or nil. It is
	// new, or an update of the job's present one.
	Blocked *Evaluation
	// Answers are the job's other open evaluations, as they will be after the plan. The plan was
	// made from a state that held them, so it answers them too.
	Answers []*Evaluation
}

// PlanStop stops one allocation.
type PlanStop struct {
	Alloc       AllocID
	Description string
	// Migrate means that the stop follows a mark. If the mark is gone when the plan is applied,
	// the stop and the replacement are refused.
	Migrate bool
	// Lost means that the allocation's client can no longer report how it ended.
	Lost bool
	// Unknown means that the allocation's node cannot be reached at present: its client status
	// becomes unknown, its desired status stays.
	Unknown bool
}

// ReplacedAfter reports whether a scheduler replaces an allocation that it has stopped with the
// description.
func ReplacedAfter(description string) bool {
	return description == DescMigrating || description == DescLost || description == DescRescheduled || description == DescNewerVersion
}

// Descriptions that a scheduler gives to allocations that it stops. DescPurged is from the purge of a
// job.
const (
	DescMigrating    = "alloc is being migrated"
	DescTainted      = "alloc not needed as node is tainted"
	DescNotNeeded    = "alloc not needed due to job update"
	DescLost         = "alloc is lost since its node is down"
	DescUnknown      = "alloc is unknown since its node is disconnected"
	DescRescheduled  = "alloc was rescheduled because it failed"
	DescReconnected  = "alloc not needed since its replacement runs"
	DescNewerVersion = "alloc is being updated due to job update"
	// DescOriginalReturned: the node of the allocation that it replaced is back.
	DescOriginalReturned = "alloc not needed since the original has returned"
	DescPurged           = "alloc not needed as its job was purged"
	// DescOriginalStays: no drain moves the allocation beside which it was placed.
	DescOriginalStays = "alloc not needed since the allocation that it replaces stays"
)
