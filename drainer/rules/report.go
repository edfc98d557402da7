package rules

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Reason is why an allocation is still on its draining node. An allocation has exactly one reason.
// If several match, it is the first of them in the order below.
type Reason uint8

// The reasons, in the order in which they are checked.
const (
	// ReasonLeftByRequest: the operator requested to leave it on the node.
	ReasonLeftByRequest Reason = iota
	// ReasonWritePending: its mark is planned or in flight.
	ReasonWritePending
	// ReasonHeldForVolumes: it is a storage plugin that is leaving, and volumes on its node still
	// need it.
	ReasonHeldForVolumes
	// ReasonStopping: the servers have stopped it and its client has not reported the end.
	ReasonStopping
	// ReasonWaitingForData: it has ended, and its replacement does not have its data yet.
	ReasonWaitingForData
	// ReasonWaitingForScheduler: it is marked and the scheduler has not stopped it.
	ReasonWaitingForScheduler
	// ReasonDisconnected: its node cannot be reached.
	ReasonDisconnected
	// ReasonPaused: its drain is paused, or all drains are.
	ReasonPaused
	// ReasonBatchRunning: it runs until it is done or the deadline passes.
	ReasonBatchRunning
	// ReasonWaitingForStage: the stages before its own are not over.
	ReasonWaitingForStage
	// ReasonWaitingForHealth: it has no health verdict and is not overdue.
	ReasonWaitingForHealth
	// ReasonNoPacedMoves: its group's max_parallel is zero.
	ReasonNoPacedMoves
	// ReasonWaitingForSurge: it needs a healthy replacement beside it, and has none.
	ReasonWaitingForSurge
	// ReasonWaitingForReplacement: its group has no room and an evaluation of its job
	// is blocked.
	ReasonWaitingForReplacement
	// ReasonWaitingForRoom: its group has no room while other allocations of the group move.
	ReasonWaitingForRoom
	// ReasonBelowBudget: its group has no room and no allocation of the group moves. Or it was healthy,
	// and has been unhealthy for less than the healthy deadline of its group.
	ReasonBelowBudget

	// ReasonCount is how many reasons there are.
	ReasonCount
)

// String returns the reason as operators read it.
func (r Reason) String() string {
	names := [ReasonCount]string{
		"left by request", "write pending", "held for volumes", "stopping", "waiting for data", "waiting for scheduler", "disconnected", "paused", "batch running",
		"waiting for stage", "waiting for health", "no paced moves", "waiting for surge", "waiting for replacement", "waiting for room", "below budget",
	}
	if r >= ReasonCount {
		return "unknown reason"
	}
	return names[r]
}

// severity ranks reasons: the higher, the less likely the allocation leaves without help.
func (r Reason) severity() int {
	order := [...]Reason{
		ReasonLeftByRequest, ReasonStopping, ReasonWaitingForData, ReasonHeldForVolumes, ReasonWritePending, ReasonWaitingForScheduler, ReasonWaitingForStage, ReasonWaitingForRoom,
		ReasonWaitingForHealth, ReasonBatchRunning, ReasonWaitingForSurge, ReasonWaitingForReplacement, ReasonDisconnected, ReasonNoPacedMoves, ReasonBelowBudget,
		ReasonPaused,
	}
	return slices.Index(order[:], r)
}

// Since is when a reason began to hold.
type Since struct {
	// At is the time, or zero if there is none.
	At time.Time
	// Observed means that the state holds no such time. Then At is when this leader first observed
	// the reason, or zero on a server that does not lead.
	Observed bool
}

// AllocExplanation is one allocation's reason, with its numbers.
type AllocExplanation struct {
	Alloc  cluster.AllocID
	Group  cluster.GroupKey
	Stage  cluster.Stage
	Reason Reason
	Since  Since
	// Detail is one line for people, with the reason's numbers.
	Detail string

	// Due is when the reason ends or becomes overdue. For ReasonStopping and ReasonHeldForVolumes
	// it is the end of the stop time, for ReasonWaitingForHealth the time when the verdict is due,
	// for ReasonBatchRunning and ReasonNoPacedMoves the deadline, for ReasonBelowBudget the time until
	// which an unhealthy allocation is held. Zero if there is no such time.
	Due time.Time
	// Eval is the evaluation that ReasonWaitingForScheduler and ReasonWaitingForReplacement name, and
	// ReasonWaitingForData and ReasonWaitingForSurge without a replacement, or nil. It is never written to.
	Eval *cluster.Evaluation
	// Outstanding are the allocations for which ReasonWaitingForRoom and ReasonWaitingForSurge wait, by id, or nil.
	Outstanding []cluster.AllocID
	// Culprit is the first allocation that causes the reason: for ReasonWaitingForStage one that has to
	// leave the node first, for ReasonWaitingForData the replacement that gets the data, for ReasonWaitingForRoom and ReasonWaitingForSurge one of
	// Outstanding, for ReasonBelowBudget one of the
	// group that should be healthy and is not. Otherwise it is nil, and for ReasonBelowBudget if all that
	// exist are healthy. It is never written to. [AllocExplanation.Cause] has it as a text.
	Culprit *Culprit
	// Missing counts, for ReasonBelowBudget, the allocations by which the group is short of its count.
	// Zero for other reasons.
	Missing int
	// Held are the volumes that the allocation waits for while it stops, or nil. They are
	// read-only. Their reasons, which Detail repeats, may hold secrets: see
	// [AllocExplanation.WithoutTexts].
	Held *cluster.VolumeHolds
	// Attempts counts the consecutive failed writes, for ReasonWritePending, and for
	// ReasonWaitingForRoom if it waits for marks that are not written. LastError is the last failure,
	// or nil.
	Attempts  int
	LastError error
	// Healthy, Count and MaxParallel are the numbers of a service allocation's group, and zero
	// for other allocations.
	Healthy     int
	Count       int
	MaxParallel int
}

// Status is the progress of one node's drain, in numbers.
type Status struct {
	// Drain is the running drain, never nil. It is never written to.
	Drain *cluster.Drain
	// NodeName is the node's name.
	NodeName string
	// Left counts the allocations that have to leave and are not
	// client-terminal, by stage. Ignored counts those left by request.
	Left    [cluster.StageCount]int
	Ignored int
	// PausedSince is since when the drain is paused, or zero. PauseOfAll is the pause of all drains if it holds this
	// one, or nil. The pause of the drain itself is in Drain.
	PausedSince time.Time
	PauseOfAll  *cluster.DrainPause
	// Unconfirmed counts the allocations whose end nothing confirms and for which the drain does not wait:
	// they are lost, or the servers have no row of them. Left does not count them. The record of the drain
	// counts both, if it ends.
	Unconfirmed int
	// Waiting counts the allocations on the node by reason.
	Waiting [ReasonCount]int
	// Reason is the worst reason that has a count: that of the allocation least likely to leave
	// without help. It has no meaning if there is no allocation.
	Reason Reason
	// Worst is the explanation of the first allocation with that reason, or nil if there is no
	// allocation. It is never written to.
	Worst *AllocExplanation
	// Placed counts the allocations that a scheduler placed on the node after the drain began,
	// which it must not do: those that are there, or those that this leader has observed, if they
	// are more. NewestPlaced is the newest of them, or nil. It is never written to, and may lack
	// the fields that [cluster.Allocation.Bare] leaves out. Both need rows with CreateIndex.
	Placed       int
	NewestPlaced *cluster.Allocation
	// Stalled is why the leader could not write for too long, or empty.
	Stalled string
	// EndsAbout is when the drain ends about, by an estimate of the server that embeds the drainer, or zero.
	// EndsLater is why that is later than estimated before, or empty. This package sets neither.
	EndsAbout time.Time
	EndsLater string
	// EndsBy is the latest end of the drain while there is a leader with a quorum (G4), or zero for
	// a drain that has no such time. While Stalled is set, it stays at the end that followed when the
	// stall began, and the drain keeps it only if the stall ends in time.
	EndsBy time.Time
}

// Report is the drain of one node, with the reason of each allocation.
type Report struct {
	Status
	// Allocs are the allocations on the node that are not client-terminal, and those whose data the
	// drain waits for, by stage, then id.
	Allocs []AllocExplanation
}
