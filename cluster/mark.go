package cluster

import "time"

// MarkClass is the rule under which an allocation was marked. The raft entry carries it. A mark is
// applied only if its class holds in the state in which it is applied.
type MarkClass uint8

// The classes of marks.
const (
	// MarkNone is the class of an allocation that no drain has marked. It may still be marked by
	// another party; see [DesiredTransition].
	MarkNone MarkClass = iota
	// MarkPaced is for a healthy service allocation before the deadline. Only this class uses
	// room of its group's budget.
	MarkPaced
	// MarkFree is for a service allocation whose removal costs nothing: its health is overdue, or it
	// was never healthy, or it has been unhealthy for the healthy deadline of its group.
	MarkFree
	// MarkCanary is for a canary. It shares the slots of MarkFree.
	MarkCanary
	// MarkGone is for an allocation whose job or group no longer exists in the
	// job's current version.
	MarkGone
	// MarkStage is for system allocations and storage plugins in their turn.
	MarkStage
	// MarkDeadline is for the allocations that are left when the deadline has passed.
	MarkDeadline
	// MarkForced is for the allocations that are left when the drain is forced.
	MarkForced
	// MarkProceed is for a group below its budget, under the policy of that name.
	MarkProceed

	// MarkClassCount is how many classes there are, MarkNone included.
	MarkClassCount
)

// String returns the class's name as operators and scenario files write it.
func (c MarkClass) String() string {
	names := [MarkClassCount]string{"none", "paced", "free", "canary", "gone", "stage", "deadline", "forced", "proceed"}
	if c >= MarkClassCount {
		return "unknown class"
	}
	return names[c]
}

// DesiredTransition is the next change that the servers intend for an allocation. The scheduler acts on
// it when it next evaluates the job.
type DesiredTransition struct {
	// Migrate requires the allocation to leave its node. If a drain set it, Drain names the drain.
	// Other parties may set it too.
	Migrate bool
	// MigrateDisablePlacement, with Migrate, forbids a replacement: batch work that a deadline
	// stopped is not placed again.
	MigrateDisablePlacement bool
	// Reschedule and ForceReschedule request a replacement of a failed allocation.
	Reschedule      bool
	ForceReschedule bool
	// NoShutdownDelay means that the client skips shutdown delays.
	NoShutdownDelay bool

	// Drain is the drain that set Migrate, or empty if none did.
	Drain DrainID
	// Class is the class of the drain's mark, MarkNone if no drain set Migrate.
	Class MarkClass
	// MarkedAt is the proposer's time of the drain's mark, or zero.
	MarkedAt time.Time
}
