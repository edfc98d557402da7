package invariant

// Check is one rule of a guarantee.
type Check uint8

// The checks, in the order of their guarantees. The comments say when a check fails.
const (
	BelowLimit  Check = iota // a paced mark left its group below its limit
	ClassUntrue              // the class of a mark did not hold where it was applied
	SlotsTaken               // a free or canary mark beyond the group's slots

	NotDraining        // a mark or an end for a drain that did not run on the node
	StaleRevision      // applied although the strategy had been changed since the plan
	MarkedLeftBehind   // a mark of an allocation that the request excludes
	MarkOutOfNowhere   // an entry made or changed a mark that it does not ask for
	NotWithdrawn       // a cancel left a mark of its drain, or miscounted what it withdrew
	OthersMarkTaken    // a mark that no drain made was withdrawn
	StoppedWithoutMark // a plan stopped an allocation to migrate it, and its mark was gone
	PlacedAgain        // batch work that a deadline stopped is placed again, or its row allows it
	RepeatedActed      // a request with a known key changed something, or a drain keeps other keys
	RevisionMoved      // a revision moved without its strategy, or a strategy without its revision
	WroteAfterTerm     // a drainer proposed after its term had ended

	OutOfTurn  // a mark before the turn of its allocation
	BatchEarly // a mark on batch work before the deadline

	LateEnd       // a drain ran on past its bound
	EndForgotten  // every allocation that had to leave had left, and the drain ran on
	Stalled       // a possible item was neither applied nor planned
	BoundUnshown  // a report shows no bound of a drain that has one, or another bound
	BoundBroken   // a drain ran on past its shown bound
	Mistimed      // an entry carries another time than its proposer's clock
	DeadlineMoved // a deadline differs from its request

	EndedEarly       // a drain ended before its completion contract allowed it
	UntrueOutcome    // an outcome is false
	MiscountedLeft   // a record miscounts the allocations left behind
	MiscountedMarks  // a drain miscounts its marks
	MiscountedPurged // a drain miscounts the allocations that were purged while they ran
	NoRecord         // a drain ended and no record says how
	SecondOutcome    // a drain ended twice, began twice, or its record was changed
	EndedByNothing   // a drain ended in an entry that ends none
	MadeEligible     // a node became eligible by the end of its drain alone

	NoEvaluation   // a mark without an evaluation of its job beside it
	GoodRefused    // a refused item held where it was applied
	Unanswered     // an answer differs from the outcome of the entry's items
	MarkLost       // a mark was lost while its drain ran
	PlannedBehind  // a term planned before its barrier
	PlannedFromOld // a term planned from a state older than an answer
	SentTwice      // the same item in flight twice
	NotRetried     // an item of a failed write was not planned again
	NotReevaluated // a marked allocation ran on without an evaluation, and no other was made

	JobForgotten        // an entry did not make the evaluation of a job that it concerns or carries
	EvaluatedForNothing // an entry made an evaluation of a job that it does not concern, or a second one

	Forgotten // a fresh drainer wants an item that the running one does not
	OtherEnd  // another run of the same story reached other facts

	NoReason      // an allocation on a draining node without a reason
	TwoReasons    // an allocation with two
	ReasonForNone // a reason of an allocation that is not there
	UntrueReason  // a reason is false
	WrongNumbers  // the numbers of a reason are false
	WrongSince    // a reason began at another time
	WrongTotals   // the sums of a report differ from its allocations

	TooManyIDs      // in one entry
	TooManyBytes    // in one entry
	TooManyInFlight // entries at once
	TooManyQueries  // looks at the state
	TooManyRecords  // records of ended drains
	TooSoon         // a round of writes came before the end of its wait

	IdleWake  // a step at a time that nothing states
	IdleWrite // an item had no effect in the state that it was planned from
	Circles   // endless steps at one time

	ReplicasDiffer // two servers made different states from the same log
	RestoreDiffers // a restored state differs from the state of the snapshot
	Unnamed        // an entry wrote a row that it does not name
	Unordered      // the items of an entry are in the wrong order

	FollowedForNothing // a job is followed that no running drain concerns

	// CheckCount is how many checks there are.
	CheckCount
)

// firstOf returns the first check of each guarantee.
func firstOf() [12]Check {
	return [12]Check{
		BelowLimit, NotDraining, OutOfTurn, LateEnd, EndedEarly, NoEvaluation, Forgotten, NoReason, TooManyIDs, IdleWake, ReplicasDiffer, FollowedForNothing,
	}
}

// Guarantee is the guarantee of the check: "G1" to "G12".
func (c Check) Guarantee() string {
	names := [12]string{"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12"}
	last := 0
	for i, first := range firstOf() {
		if c >= first {
			last = i
		}
	}
	return names[last]
}

// String is the check's name. Names are stable: violations are compared by them.
func (c Check) String() string {
	names := [CheckCount]string{
		"below limit", "class untrue", "slots taken",
		"not draining", "stale revision", "marked left behind", "mark out of nowhere", "not withdrawn", "other's mark taken",
		"stopped without mark", "placed again", "repeated request acted", "revision moved", "wrote after term",
		"out of turn", "batch early",
		"late end", "end forgotten", "stalled", "bound unshown", "bound broken", "mistimed", "deadline moved",
		"ended early", "untrue outcome", "miscounted left", "miscounted marks", "miscounted purged", "no record",
		"second outcome", "ended by nothing", "made eligible",
		"no evaluation", "good refused", "unanswered", "mark lost", "planned behind", "planned from old", "sent twice",
		"not retried", "not reevaluated", "job forgotten", "evaluated for nothing",
		"forgotten", "other end",
		"no reason", "two reasons", "reason for none", "untrue reason", "wrong numbers", "wrong since", "wrong totals",
		"too many ids", "too many bytes", "too many in flight", "too many queries", "too many records", "too soon",
		"idle wake", "idle write", "circles",
		"replicas differ", "restore differs", "unnamed", "unordered",
		"followed for nothing",
	}
	if c >= CheckCount {
		return "unknown check"
	}
	return names[c]
}
