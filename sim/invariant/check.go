package invariant

import "strings"

// Check is one rule of a guarantee: the name of the guarantee, a space, and the name of the rule.
// Names are stable: violations are compared by them.
type Check string

// The checks in the order of their guarantees. Each comment describes the violation.
const (
	BelowLimit    Check = "G1 below limit"     // a paced mark left its group below its limit
	WrongClass    Check = "G1 wrong class"     // the contract did not allow the class of a mark where it was applied
	SlotsTaken    Check = "G1 slots taken"     // a free or canary mark beyond the group's slots
	NotReplaced   Check = "G1 not replaced"    // a paced mark of a group with a max_surge, without a healthy replacement
	TooManySurges Check = "G1 too many surges" // a request beyond max_surge, or a mark after one that max_parallel forbids
	WrongStandby  Check = "G1 wrong standby"   // an allocation stands by, and its original is not in place, or the other way round
	VerdictLost   Check = "G1 verdict lost"    // an allocation has another verdict than its client reported
	WronglyHeld   Check = "G1 wrongly held"    // an allocation counts as unhealthy since another time

	NotDraining          Check = "G2 not draining"           // a mark or an end for a drain that did not run on the node
	StaleRevision        Check = "G2 stale revision"         // applied although the strategy had been changed since the plan
	MarkedExcluded       Check = "G2 marked excluded"        // a mark of an allocation that the request excludes
	UnexplainedMark      Check = "G2 unexplained mark"       // an entry made or changed a mark that it does not plan
	WrongRequest         Check = "G2 wrong request"          // a request for a replacement that its drain may not make or withdraw
	NotWithdrawn         Check = "G2 not withdrawn"          // a cancel left a mark of its drain, or miscounted the withdrawn marks
	ForeignMarkWithdrawn Check = "G2 foreign mark withdrawn" // a mark that no drain made was withdrawn
	StoppedWithoutMark   Check = "G2 stopped without mark"   // a plan stopped an allocation to migrate it, but it had no mark
	PlacedAgain          Check = "G2 placed again"           // batch work that a deadline stopped is placed again, or its row allows it
	RepeatedActed        Check = "G2 repeated request acted" // a request with a known key changed something, or a drain lost a key
	RevisionMoved        Check = "G2 revision moved"         // a revision changed without its strategy or pause, or one of these without its revision
	WrongPause           Check = "G2 wrong pause"            // a request paused or resumed other drains than it had to, or its answer is wrong
	WrongUndo            Check = "G2 wrong undo"             // a cancel with undo left another eligibility than before the drain
	WroteAfterTerm       Check = "G2 wrote after term"       // a drainer proposed after its term had ended

	OutOfTurn  Check = "G3 out of turn" // a mark before the turn of its allocation
	BatchEarly Check = "G3 batch early" // a mark on batch work before the deadline

	LateEnd       Check = "G4 late end"       // a drain ran on past its bound
	EndForgotten  Check = "G4 end forgotten"  // a drain had nothing left to wait for, and ran on
	Stalled       Check = "G4 stalled"        // a possible item was neither applied nor planned
	WrongBound    Check = "G4 wrong bound"    // a report shows a wrong bound, or none
	BoundBroken   Check = "G4 bound broken"   // a drain ran on past the bound that a report showed
	Mistimed      Check = "G4 mistimed"       // the time of an entry differs from its proposer's clock
	DeadlineMoved Check = "G4 deadline moved" // a deadline differs from its request

	EndedEarly            Check = "G5 ended early"            // a drain ended before its completion contract allowed it
	UntrueOutcome         Check = "G5 untrue outcome"         // an outcome is false
	MiscountedLeft        Check = "G5 miscounted left"        // a record miscounts the allocations left
	MiscountedVolumes     Check = "G5 miscounted volumes"     // a record does not count the volumes left on the node
	MiscountedData        Check = "G5 miscounted data"        // a record miscounts the allocations whose data was not copied
	MiscountedMarks       Check = "G5 miscounted marks"       // a drain miscounts its marks
	MiscountedPurged      Check = "G5 miscounted purged"      // a drain miscounts the allocations that were purged while they ran
	DeletedRunning        Check = "G5 deleted running"        // the row of an allocation was deleted whose tasks may run
	MiscountedUnconfirmed Check = "G5 miscounted unconfirmed" // a record miscounts the allocations whose end nothing confirms
	ConfirmedEarly        Check = "G5 confirmed early"        // an entry confirmed an end without a cause
	CollectedCounted      Check = "G5 collected counted"      // a row was collected that a record counts as unconfirmed
	NoRecord              Check = "G5 no record"              // a drain ended and no record states how
	SecondOutcome         Check = "G5 second outcome"         // a drain ended twice, began twice, or its record was changed
	EndedWithoutCause     Check = "G5 ended without cause"    // an entry that ends no drains ended a drain
	MadeEligible          Check = "G5 made eligible"          // the end of a drain made its node eligible

	NoEvaluation         Check = "G6 no evaluation"          // a mark without an evaluation of its job beside it
	ValidRefused         Check = "G6 valid item refused"     // the FSM refused an item that the contract allows
	WrongAnswer          Check = "G6 wrong answer"           // an answer differs from the outcome of the entry's items
	MarkLost             Check = "G6 mark lost"              // a mark was lost while its drain ran
	PlannedBeforeBarrier Check = "G6 planned before barrier" // a term planned before its barrier
	PlannedFromOldState  Check = "G6 planned from old state" // a term planned from a state older than an answer
	SentTwice            Check = "G6 sent twice"             // an item was in flight twice
	NotRetried           Check = "G6 not retried"            // an item of a failed write was not planned again
	NotReevaluated       Check = "G6 not reevaluated"        // a marked allocation ran on without an open evaluation of its job

	JobForgotten       Check = "G6 job forgotten"       // an entry did not make a required evaluation
	NeedlessEvaluation Check = "G6 needless evaluation" // an entry created an evaluation of a job that it does not concern, or a second one

	Forgotten Check = "G7 forgotten" // a fresh drainer plans an item that the running one does not

	NoReason       Check = "G8 no reason"                   // an allocation on a draining node without a reason
	TwoReasons     Check = "G8 two reasons"                 // an allocation with two reasons
	ReasonOfAbsent Check = "G8 reason of absent allocation" // a reason of an allocation that is not on the node
	UntrueReason   Check = "G8 untrue reason"               // a reason is wrong
	WrongNumbers   Check = "G8 wrong numbers"               // the numbers of a reason are wrong
	WrongCulprit   Check = "G8 wrong culprit"               // the allocation or evaluation that a reason names does not cause it, or is not as described
	WrongSince     Check = "G8 wrong since"                 // the start of a reason is wrong
	WrongTotals    Check = "G8 wrong totals"                // the sums of a report differ from its allocations

	TooManyIDs      Check = "G9 too many ids"       // in one entry
	TooManyBytes    Check = "G9 too many bytes"     // in one entry
	TooManyInFlight Check = "G9 too many in flight" // entries at once
	TooManyQueries  Check = "G9 too many queries"   // reads of the state
	TooManyRecords  Check = "G9 too many records"   // records of ended drains
	TooSoon         Check = "G9 too soon"           // a round of writes came before the end of its wait

	IdleWake     Check = "G10 idle wake"     // a step without a reason
	IdleWrite    Check = "G10 idle write"    // an item had no effect in the state from which it was planned
	EndlessSteps Check = "G10 endless steps" // steps without end at one time

	ReplicasDiffer Check = "G11 replicas differ" // two servers made different states from the same log
	RestoreDiffers Check = "G11 restore differs" // a restored state differs from the state of the snapshot
	Unnamed        Check = "G11 unnamed"         // an entry wrote a row that it does not name
	Unordered      Check = "G11 unordered"       // the items of an entry are in the wrong order

	NeedlesslyFollowed Check = "G12 needlessly followed" // the drainer follows a job that no running drain concerns
)

// Checks returns all checks.
func Checks() []Check {
	return []Check{
		BelowLimit, WrongClass, SlotsTaken, NotReplaced, TooManySurges, WrongStandby, VerdictLost, WronglyHeld,
		NotDraining, StaleRevision, MarkedExcluded, UnexplainedMark, WrongRequest, NotWithdrawn, ForeignMarkWithdrawn,
		StoppedWithoutMark, PlacedAgain, RepeatedActed, RevisionMoved, WrongPause, WrongUndo, WroteAfterTerm,
		OutOfTurn, BatchEarly,
		LateEnd, EndForgotten, Stalled, WrongBound, BoundBroken, Mistimed, DeadlineMoved,
		EndedEarly, UntrueOutcome, MiscountedLeft, MiscountedVolumes, MiscountedData, MiscountedMarks, MiscountedPurged,
		DeletedRunning, MiscountedUnconfirmed, ConfirmedEarly, CollectedCounted, NoRecord, SecondOutcome, EndedWithoutCause, MadeEligible,
		NoEvaluation, ValidRefused, WrongAnswer, MarkLost, PlannedBeforeBarrier, PlannedFromOldState,
		SentTwice, NotRetried, NotReevaluated, JobForgotten, NeedlessEvaluation,
		Forgotten,
		NoReason, TwoReasons, ReasonOfAbsent, UntrueReason, WrongNumbers, WrongCulprit, WrongSince, WrongTotals,
		TooManyIDs, TooManyBytes, TooManyInFlight, TooManyQueries, TooManyRecords, TooSoon,
		IdleWake, IdleWrite, EndlessSteps,
		ReplicasDiffer, RestoreDiffers, Unnamed, Unordered,
		NeedlesslyFollowed,
	}
}

// Guarantee is the guarantee of the check: "G1" to "G12".
func (c Check) Guarantee() string { return strings.Fields(string(c))[0] }

// Rule is the name of the check without that of its guarantee.
func (c Check) Rule() string { return strings.TrimPrefix(string(c), c.Guarantee()+" ") }
