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
