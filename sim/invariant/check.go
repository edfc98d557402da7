package invariant

// Check is one thing that must never be.
type Check uint8

// The checks, in the order of the guarantees that they hold somebody to.
const (
	BelowLimit  Check = iota // a paced mark left its group below its limit
	ClassUntrue              // a mark whose class did not hold where it was applied
	SlotsTaken               // a free or canary mark beyond the group's slots

	NotDraining        // a mark or an end for a drain that did not run on the node
	StaleRevision      // applied although the strategy had been changed since the plan
	MarkedLeftBehind   // a mark on what was to be left by request
	MarkOutOfNowhere   // a drain's mark came or changed in an entry that is not about it
	NotWithdrawn       // a cancel left a mark of its drain, or miscounted what it withdrew
	OthersMarkTaken    // what somebody else had asked for was taken back
	StoppedWithoutMark // a plan stopped what was to migrate, and its mark was gone
	PlacedAgain        // batch work that a deadline stopped is placed again, or may be
	RepeatedActed      // a request whose key had been seen changed something
	RevisionMoved      // a revision moved without its strategy, or the other way round
	WroteAfterTerm     // a drainer proposed after its term had ended

	OutOfTurn  // a mark before the turn of its allocation
	BatchEarly // a mark on batch work before the deadline

	LateEnd       // a drain ran on past its bound
	EndForgotten  // nothing that had to leave was left, and the drain ran on
	Stalled       // what could be done was neither done nor planned
	BoundUnshown  // a report without the bound that the drain has, or with one that it has not
	BoundBroken   // a drain ran on past the bound it had shown
	Mistimed      // an entry that does not carry the time of its proposer's clock
	DeadlineMoved // a deadline that is not what the request makes it

	EndedEarly       // a drain ended while something was to be waited for
	UntrueOutcome    // an outcome that is not what happened
	MiscountedLeft   // a record that miscounts what was left behind
	MiscountedMarks  // a drain that miscounts its marks
	MiscountedPurged // a drain that miscounts what was purged while it ran
	NoRecord         // a drain ended and no record says how
	SecondOutcome    // a drain ended twice, began twice, or its record was changed
	EndedByNothing   // a drain ended in an entry that ends none
	MadeEligible     // a node became eligible by the end of its drain alone

	NoEvaluation   // a mark without an evaluation of its job beside it
	GoodRefused    // an item was refused that held where it was applied
	Unanswered     // an answer that is not what became of the entry's items
	MarkLost       // a mark was lost while its drain ran
	PlannedBehind  // planned while a barrier was owed
	PlannedFromOld // planned from a state older than what had been answered
	SentTwice      // the same item in flight twice
	NotRetried     // what a failed write wanted was not planned again
	NotReevaluated // a marked allocation ran on without an evaluation, and nobody asked again

	JobForgotten        // an entry concerned a job, or carried its evaluation, and has not made it as it is to be
	EvaluatedForNothing // an evaluation of a job that its entry did not concern, or a second one

	Forgotten // a fresh drainer wants what the running one does not
	OtherEnd  // another run of the same story came to other facts

	NoReason      // an allocation on a draining node without a reason
	TwoReasons    // an allocation with two
	ReasonForNone // a reason of what is not there
	UntrueReason  // a reason that is not so
	WrongNumbers  // a reason whose numbers are not so
	WrongSince    // a reason that dates from another time
	WrongTotals   // a status whose sums are not those of its allocations

	TooManyIDs      // in one entry
	TooManyBytes    // in one entry
	TooManyInFlight // entries at once
	TooManyQueries  // looks at the state
	TooManyRecords  // records of ended drains
	TooSoon         // rounds of writes, or attempts, too close to each other

	IdleWake  // a step at a time that nothing had stated
	IdleWrite // an entry that could change nothing in the state it was planned from
	Circles   // steps without end at one time

	ReplicasDiffer // two servers made different states of the same log
	RestoreDiffers // a restored state is not the one that the snapshot was taken of
	Unnamed        // an entry wrote what it does not name
	Unordered      // an entry whose items are in another order than they are to be

	// CheckCount is how many checks there are.
	CheckCount
)

// firstOf returns the first check of each guarantee.
func firstOf() [11]Check {
	return [11]Check{
		BelowLimit, NotDraining, OutOfTurn, LateEnd, EndedEarly, NoEvaluation, Forgotten, NoReason, TooManyIDs, IdleWake, ReplicasDiffer,
	}
}

// Guarantee is the guarantee that the check holds somebody to: "G1" to "G11".
func (c Check) Guarantee() string {
	names := [11]string{"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11"}
	last := 0
	for i, first := range firstOf() {
		if c >= first {
			last = i
		}
	}
	return names[last]
}

// String is the check's name. It is stable: what fails is told by it.
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
	}
	if c >= CheckCount {
		return "unknown check"
	}
	return names[c]
}
