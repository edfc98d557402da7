package invariant

// Check is one rule of a guarantee.
type Check uint8

// The checks in the order of their guarantees. Each comment describes the violation.
const (
	BelowLimit  Check = iota // a paced mark left its group below its limit
	WrongClass               // the contract did not allow the class of a mark where it was applied
	SlotsTaken               // a free or canary mark beyond the group's slots
	VerdictLost              // an allocation has another verdict than its client reported

	NotDraining          // a mark or an end for a drain that did not run on the node
	StaleRevision        // applied although the strategy had been changed since the plan
	MarkedExcluded       // a mark of an allocation that the request excludes
	UnexplainedMark      // an entry made or changed a mark that it does not plan
	NotWithdrawn         // a cancel left a mark of its drain, or miscounted the withdrawn marks
	ForeignMarkWithdrawn // a mark that no drain made was withdrawn
	StoppedWithoutMark   // a plan stopped an allocation to migrate it, but it had no mark
	PlacedAgain          // batch work that a deadline stopped is placed again, or its row allows it
	RepeatedActed        // a request with a known key changed something, or a drain lost a key
	RevisionMoved        // a revision changed without its strategy, or a strategy without its revision
	WroteAfterTerm       // a drainer proposed after its term had ended

	OutOfTurn  // a mark before the turn of its allocation
	BatchEarly // a mark on batch work before the deadline

	LateEnd       // a drain ran on past its bound
	EndForgotten  // a drain had nothing left to wait for, and ran on
	Stalled       // a possible item was neither applied nor planned
	WrongBound    // a report shows a wrong bound, or none
	BoundBroken   // a drain ran on past the bound that a report showed
	Mistimed      // the time of an entry differs from its proposer's clock
	DeadlineMoved // a deadline differs from its request

	EndedEarly        // a drain ended before its completion contract allowed it
	UntrueOutcome     // an outcome is false
	MiscountedLeft    // a record miscounts the allocations left
	MiscountedVolumes // a record does not count the volumes left on the node
	MiscountedMarks   // a drain miscounts its marks
	MiscountedPurged  // a drain miscounts the allocations that were purged while they ran
	NoRecord          // a drain ended and no record states how
	SecondOutcome     // a drain ended twice, began twice, or its record was changed
	EndedWithoutCause // an entry that ends no drains ended a drain
	MadeEligible      // the end of a drain made its node eligible

	NoEvaluation         // a mark without an evaluation of its job beside it
	ValidRefused         // the FSM refused an item that the contract allows
	WrongAnswer          // an answer differs from the outcome of the entry's items
	MarkLost             // a mark was lost while its drain ran
	PlannedBeforeBarrier // a term planned before its barrier
	PlannedFromOldState  // a term planned from a state older than an answer
	SentTwice            // an item was in flight twice
	NotRetried           // an item of a failed write was not planned again
	NotReevaluated       // a marked allocation ran on without an open evaluation of its job

	JobForgotten       // an entry did not make a required evaluation
	NeedlessEvaluation // an entry created an evaluation of a job that it does not concern, or a second one

	Forgotten   // a fresh drainer plans an item that the running one does not
	FactsDiffer // another run of the same story reached other facts

	NoReason       // an allocation on a draining node without a reason
	TwoReasons     // an allocation with two reasons
	ReasonOfAbsent // a reason of an allocation that is not on the node
	UntrueReason   // a reason is wrong
	WrongNumbers   // the numbers of a reason are wrong
	WrongSince     // the start of a reason is wrong
	WrongTotals    // the sums of a report differ from its allocations

	TooManyIDs      // in one entry
	TooManyBytes    // in one entry
	TooManyInFlight // entries at once
	TooManyQueries  // reads of the state
	TooManyRecords  // records of ended drains
	TooSoon         // a round of writes came before the end of its wait

	IdleWake     // a step without a reason
	IdleWrite    // an item had no effect in the state from which it was planned
	EndlessSteps // steps without end at one time

	ReplicasDiffer // two servers made different states from the same log
	RestoreDiffers // a restored state differs from the state of the snapshot
	Unnamed        // an entry wrote a row that it does not name
	Unordered      // the items of an entry are in the wrong order

	NeedlesslyFollowed // the drainer follows a job that no running drain concerns

	// CheckCount is how many checks there are.
	CheckCount
)

// firstOf returns the first check of each guarantee.
func firstOf() [12]Check {
	return [12]Check{
		BelowLimit, NotDraining, OutOfTurn, LateEnd, EndedEarly, NoEvaluation, Forgotten, NoReason, TooManyIDs, IdleWake, ReplicasDiffer, NeedlesslyFollowed,
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
		"below limit", "wrong class", "slots taken", "verdict lost",
		"not draining", "stale revision", "marked excluded", "unexplained mark", "not withdrawn", "foreign mark withdrawn",
		"stopped without mark", "placed again", "repeated request acted", "revision moved", "wrote after term",
		"out of turn", "batch early",
		"late end", "end forgotten", "stalled", "wrong bound", "bound broken", "mistimed", "deadline moved",
		"ended early", "untrue outcome", "miscounted left", "miscounted volumes", "miscounted marks", "miscounted purged", "no record",
		"second outcome", "ended without cause", "made eligible",
		"no evaluation", "valid item refused", "wrong answer", "mark lost", "planned before barrier", "planned from old state", "sent twice",
		"not retried", "not reevaluated", "job forgotten", "needless evaluation",
		"forgotten", "facts differ",
		"no reason", "two reasons", "reason of absent allocation", "untrue reason", "wrong numbers", "wrong since", "wrong totals",
		"too many ids", "too many bytes", "too many in flight", "too many queries", "too many records", "too soon",
		"idle wake", "idle write", "endless steps",
		"replicas differ", "restore differs", "unnamed", "unordered",
		"needlessly followed",
	}
	if c >= CheckCount {
		return "unknown check"
	}
	return names[c]
}
