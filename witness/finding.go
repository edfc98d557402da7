package witness

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Kind is the kind of a finding.
type Kind uint8

// The kinds of findings, each with the guarantee that it breaks.
const (
	// BelowLimit (G1): a paced mark left its group below its limit.
	BelowLimit Kind = iota
	// NoLimit (G1): a paced mark in a group that does not exist has no budget.
	NoLimit
	// NotReplaced (G1): a paced mark in a group with a max_surge, on an allocation without a healthy replacement beside
	// it that its drain had requested.
	NotReplaced
	// TooManySurges (G1): a request beyond the max_surge of its group, or more marks after requests than max_parallel
	// permits before the scheduler has answered.
	TooManySurges
	// WrongStandby (G1): an allocation stands by although its original has left or ended, or does not although its
	// original is in place.
	WrongStandby
	// NotFree (G1): a free mark on a healthy allocation, or on one that was healthy and has been
	// unhealthy for less than the healthy deadline of its group.
	NotFree
	// NotDraining (G2): a mark on a node that was not in that drain.
	NotDraining
	// NotDue (G2): a deadline mark before the deadline, or a forced mark without force.
	NotDue
	// StaleRevision (G2): a deadline, forced or stage mark, or an end, that was planned against
	// another revision of its drain.
	StaleRevision
	// Excluded (G2): a mark on an allocation that the request excludes.
	Excluded
	// UnexplainedMark (G2): a mark without a plan, a change of a mark, or a mark that changed more
	// than its own fields.
	UnexplainedMark
	// WrongRequest (G2): a request for a replacement that no entry plans, that its drain may not make, or that was changed
	// or withdrawn without a cancel.
	WrongRequest
	// NotWithdrawn (G2): a cancel left a mark of its drain, or a part of it.
	NotWithdrawn
	// ForeignMarkWithdrawn (G2): a mark that no drain made was withdrawn.
	ForeignMarkWithdrawn
	// PlacedAgain (G2): a mark states wrongly whether batch work may be placed again.
	PlacedAgain
	// RevisionMoved (G2): a revision changed without its strategy, or a strategy without its
	// revision or without a request.
	RevisionMoved
	// OutOfTurn (G3): a mark on an allocation while an earlier stage was not over.
	OutOfTurn
	// UntrueOutcome (G5): the record does not match the drain.
	UntrueOutcome
	// MiscountedStopping (G5): the record counts the allocations still stopping wrongly.
	MiscountedStopping
	// MiscountedVolumes (G5): the record does not count the volumes left on the node.
	MiscountedVolumes
	// MiscountedData (G5): the record does not count the allocations whose data was not copied.
	MiscountedData
	// MiscountedMarks (G5): a drain counts its marks wrongly.
	MiscountedMarks
	// MiscountedPurged (G5): a drain counts wrongly the allocations that were purged while they
	// ran.
	MiscountedPurged
	// DeletedRunning (G5): the row of an allocation was deleted whose tasks may run.
	DeletedRunning
	// MiscountedUnconfirmed (G5): a record counts wrongly the allocations whose end nothing confirms.
	MiscountedUnconfirmed
	// ConfirmedEarly (G5): an entry confirmed the end of an allocation without a cause.
	ConfirmedEarly
	// CollectedCounted (G5): a row was collected that a record counts as unconfirmed.
	CollectedCounted
	// EndedEarly (G5): the drain ended while it still had to wait for an allocation.
	EndedEarly
	// NoRecord (G5): a drain ended without a record, or its record has no outcome.
	NoRecord
	// SecondOutcome (G5): a drain ended twice, or started again after its end, or without a
	// request.
	SecondOutcome
	// EndedWithoutCause (G5): an entry that ends no drains ended a drain.
	EndedWithoutCause
	// MadeEligible (G5): the end of a drain changed the eligibility of its node.
	MadeEligible
	// MarkLost (G6): a mark was removed while its drain ran.
	MarkLost
	// NoEvaluation (G6): a mark without an evaluation of its job in the same entry.
	NoEvaluation
	// Unseen: the audit found a mark, a drain or an outcome that no entry named.
	Unseen

	kindCount
)

// Guarantee returns the number of the guarantee the kind breaks, or "audit".
func (k Kind) Guarantee() string {
	switch {
	case k <= NotFree:
		return "G1"
	case k <= RevisionMoved:
		return "G2"
	case k <= OutOfTurn:
		return "G3"
	case k <= MadeEligible:
		return "G5"
	case k <= NoEvaluation:
		return "G6"
	}
	return "audit"
}

// String returns the kind in a few words.
func (k Kind) String() string {
	names := [kindCount]string{
		"below limit", "no limit", "not replaced", "too many surges", "wrong standby", "not free", "not draining", "not due", "stale revision", "marked excluded", "unexplained mark", "wrong request", "not withdrawn",
		"foreign mark withdrawn", "placed again", "revision moved", "out of turn", "untrue outcome", "miscounted stopping", "miscounted volumes",
		"miscounted data",
		"miscounted marks", "miscounted purged", "deleted running", "miscounted unconfirmed", "confirmed early", "collected counted", "ended early", "no record", "second outcome", "ended without cause", "made eligible",
		"mark lost", "no evaluation", "unseen",
	}
	if k >= kindCount {
		return "unknown kind"
	}
	return names[k]
}

// Finding is one broken guarantee. The kind determines which of its ids are set.
type Finding struct {
	Kind Kind
	// Index is the raft index of the entry, or zero in an audit. At is the entry's proposer
	// time, or zero.
	Index uint64
	At    time.Time

	Drain cluster.DrainID
	Node  cluster.NodeID
	Alloc cluster.AllocID
	// Group is the group of a mark.
	Group cluster.GroupKey
	// Healthy and Limit are the group's numbers, for BelowLimit.
	Healthy, Limit int
	// Why describes the violation.
	Why string
}

// String returns the finding in one line.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", f.Kind.Guarantee(), f.Kind)
	if f.Index > 0 {
		fmt.Fprintf(&b, " at index %d", f.Index)
	}
	for _, name := range []struct{ noun, id string }{
		{"drain", string(f.Drain)}, {"node", string(f.Node)}, {"allocation", string(f.Alloc)},
	} {
		if name.id != "" {
			fmt.Fprintf(&b, ", %s %s", name.noun, name.id)
		}
	}
	if f.Group.Name != "" {
		fmt.Fprintf(&b, ", group %s", f.Group)
	}
	if f.Kind == BelowLimit {
		fmt.Fprintf(&b, ", healthy %d, limit %d", f.Healthy, f.Limit)
	}
	fmt.Fprintf(&b, ": %s", f.Why)
	return b.String()
}
