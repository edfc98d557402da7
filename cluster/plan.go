package cluster

import "time"

// Plan is what a scheduler wants to do about one evaluation. It is checked again
// when it is applied: parts that no longer hold are refused, the rest is done.
type Plan struct {
	// At is the proposer's time.
	At time.Time
	// Eval is the evaluation as it is to be after the plan.
	Eval *Evaluation
	// SnapshotIndex is the index of the state the plan was made from.
	SnapshotIndex uint64
	// Stops are allocations to stop.
	Stops []PlanStop
	// Places are new allocations, complete but for their indexes.
	Places []*Allocation
	// Blocked is the blocked evaluation of what could not be placed: a new one, or
	// the one that the job has already, brought up to date; or nil.
	Blocked *Evaluation
	// Answers are the job's other open evaluations, as they are to be after the
	// plan: it was made from a state that held them, so it answers them too.
	Answers []*Evaluation
}

// PlanStop asks for one allocation to be stopped.
type PlanStop struct {
	Alloc       AllocID
	Description string
	// Migrate says that the stop follows a mark. It is refused if the mark is no
	// longer there when the plan is applied, and so is the replacement.
	Migrate bool
	// Lost says that the allocation's client cannot say any more how it ended.
	Lost bool
	// Unknown says that the allocation's node is out of touch for the moment:
	// its client status becomes unknown, its desired status stays.
	Unknown bool
}

// Descriptions a scheduler gives to what it stops.
const (
	DescMigrating    = "alloc is being migrated"
	DescTainted      = "alloc not needed as node is tainted"
	DescNotNeeded    = "alloc not needed due to job update"
	DescLost         = "alloc is lost since its node is down"
	DescUnknown      = "alloc is unknown since its node is disconnected"
	DescRescheduled  = "alloc was rescheduled because it failed"
	DescReconnected  = "alloc not needed since its replacement runs"
	DescNewerVersion = "alloc is being updated due to job update"
)
