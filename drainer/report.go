package drainer

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Reason is why an allocation is still on its draining node. The set is closed,
// and an allocation has exactly one: the first that matches, in this order.
type Reason uint8

// The reasons, in the order in which they are tried.
const (
	// LeftByRequest: it had not to leave; the operator said so.
	LeftByRequest Reason = iota
	// WritePending: its mark is planned or in flight.
	WritePending
	// Stopping: the servers want it stopped and its client has not said so yet.
	Stopping
	// WaitingForScheduler: it is marked and its evaluation has not stopped it.
	WaitingForScheduler
	// Disconnected: its node is out of touch.
	Disconnected
	// BatchRunning: it runs until it is done, or the deadline.
	BatchRunning
	// WaitingForStage: those before it have not left yet.
	WaitingForStage
	// WaitingForHealth: it has no health verdict and is not overdue.
	WaitingForHealth
	// NoPacedMoves: its group's max_parallel is zero.
	NoPacedMoves
	// WaitingForReplacement: its group has no room and an evaluation of its job
	// is blocked.
	WaitingForReplacement
	// WaitingForRoom: its group has no room while others of it are on their way.
	WaitingForRoom
	// BelowBudget: its group has no room and nothing is on its way.
	BelowBudgetReason

	// ReasonCount is how many reasons there are.
	ReasonCount
)

// String returns the reason as operators read it.
func (r Reason) String() string {
	names := [ReasonCount]string{
		"left by request", "write pending", "stopping", "waiting for scheduler", "disconnected", "batch running",
		"waiting for stage", "waiting for health", "no paced moves", "waiting for replacement", "waiting for room", "below budget",
	}
	if r >= ReasonCount {
		return "unknown reason"
	}
	return names[r]
}

// Since is when a reason began to hold.
type Since struct {
	// At is the time, or zero if it is not known.
	At time.Time
	// Seen says that the state holds no such time: At is when this leader first
	// saw the reason.
	Seen bool
}

// AllocReport is one allocation's reason, with its numbers.
type AllocReport struct {
	Alloc  cluster.AllocID
	Group  cluster.GroupKey
	Stage  cluster.Stage
	Reason Reason
	Since  Since
	// Detail is the reason's numbers in one line for people.
	Detail string

	// Due is when the reason ends by itself or is overdue: of Stopping, the end
	// of the stop time; of WaitingForHealth, when the verdict is due; of
	// BatchRunning and NoPacedMoves, the deadline. Zero if there is no such time.
	Due time.Time
	// Eval is the evaluation that WaitingForScheduler and WaitingForReplacement
	// speak of, or nil. It is not written to.
	Eval *cluster.Evaluation
	// Outstanding are the allocations WaitingForRoom waits for, by id, or nil.
	Outstanding []cluster.AllocID
	// Attempts counts, of WritePending, the writes that failed since the last
	// that did not; LastError is the last failure, or nil.
	Attempts  int
	LastError error
	// Healthy, Count and MaxParallel are the group's numbers of a service
	// allocation, zero otherwise.
	Healthy     int
	Count       int
	MaxParallel int
}

// Report is the drain of one node: how far it is and why it is no further.
type Report struct {
	// Drain is the running drain, never nil. It is not written to.
	Drain *cluster.Drain
	// NodeName is the node's name.
	NodeName string
	// Left counts the allocations that have to leave and are not
	// client-terminal, by stage. Ignored counts those left by request.
	Left    [cluster.StageCount]int
	Ignored int
	// Reason is the node's worst: that of the allocation furthest from leaving.
	// It means something only if Allocs is not empty.
	Reason Reason
	// EndsBy is when the drain ends at the latest while there is a leader with a
	// quorum (G4), or zero for a drain without a deadline.
	EndsBy time.Time
	// Allocs are the allocations on the node that are not client-terminal, by
	// stage, then id.
	Allocs []AllocReport
}
