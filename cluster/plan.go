package cluster

import "time"

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
)
