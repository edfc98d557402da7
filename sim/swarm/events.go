package swarm

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Event is something rare that runs are watched for. A swarm in which it does not
// happen says nothing of what the drainer makes of it.
type Event string

// What happens to entries of the drainer.
const (
	EntrySurvives Event = "entry/survives" // of unknown outcome, applied between an election and the barrier
	EntryLate     Event = "entry/late"     // applied after its proposer was told that nobody knows
	EntryRejected Event = "entry/rejected"
	EntryNotTaken Event = "entry/not-taken"
	EntryAbreast  Event = "entry/abreast" // proposed while another is in flight
)

// What happens to terms.
const (
	TermBlind       Event = "term/blind"        // it ends before its drainer has looked at the state once
	TermBehind      Event = "term/behind"       // its drainer first sees an older state than others have
	DeposedSteps    Event = "term/deposed"      // a drainer steps that does not know that its term is over
	DeposedProposes Event = "term/deposed-asks" // and proposes
	RestoreInDrain  Event = "term/restore"      // a snapshot is restored while nodes drain
)

// What is done from outside while nodes drain.
const (
	ClockSkewed  Event = "clock/skewed"  // a term begins by a clock that is wrong by seconds
	ClockForward Event = "clock/forward" // the clock of a term is set forward
	ClockBack    Event = "clock/back"
	TermForgets  Event = "term/forgets" // a drainer begins anew where one has just ended
	LimitEdited  Event = "job/limit"
	JobScaled    Event = "job/scaled"
	GroupsEdited Event = "job/regrouped"
	NodeReturned Event = "node/returned"
)

// What happens to marks.
const (
	MarksRefused       Event = "marks/refused" // the state has moved between plan and apply
	MarksPartlyRefused Event = "marks/partly-refused"
	MarksOfCancelled   Event = "marks/of-cancelled"    // a drain is cancelled with marks in flight
	MarksOfRedrained   Event = "marks/of-redrained"    // and another has begun
	MarksOfOldRevision Event = "marks/of-old-revision" // the strategy was changed in between
	MarksOfLate        Event = "marks/of-late"         // of an allocation that landed on a draining node
	MarksOfManyNodes   Event = "marks/of-many-nodes"   // of a group on several nodes at once
	Reevaluated        Event = "marks/reevaluated"     // a marked allocation needs another evaluation
)

// What happens to drains.
const (
	EndRefused       Event = "end/refused"
	EndOfRedrained   Event = "end/of-redrained"    // the drain is over, and another has begun
	EndOfOldRevision Event = "end/of-old-revision" // its strategy was changed in between
	EndTooEarly      Event = "end/too-early"       // something landed there in between
	EndOfMany        Event = "end/of-many"         // several in one entry
	EndLeavesRunning Event = "end/leaves-running"
	StageAcrossTerms Event = "drain/stage-across-terms" // a stage ends in a later term than it began in
	DeadlineNoLeader Event = "drain/deadline-no-leader" // a deadline passes while nobody leads
	DeadlineAway     Event = "drain/deadline-away"      // a deadline takes what is out of touch
	CancelWithdraws  Event = "drain/cancel-withdraws"   // a cancel takes marks back
	CancelTooLate    Event = "drain/cancel-too-late"    // a cancel comes when some are stopping
	Repeated         Event = "drain/repeated"           // a request comes again with its key
	RepeatedAfterEnd Event = "drain/repeated-after-end" // when the drain is over
	PurgedRunning    Event = "drain/purged"             // a job is purged that runs on a draining node
	ManyDrains       Event = "drain/many"               // three nodes or more drain at once
	PlanRefused      Event = "plan/refused"             // a plan was untrue when it was applied
	PlanBlocked      Event = "plan/blocked"             // something can be placed nowhere
)

// Events that there are one of for each of a kind.
func faultEvent(f scenario.FaultName) Event { return "fault/" + Event(f) }
func reasonEvent(r rules.Reason) Event      { return "reason/" + Event(r.String()) }
func classEvent(c cluster.MarkClass) Event  { return "class/" + Event(c.String()) }
func outcomeEvent(o cluster.Outcome) Event  { return "outcome/" + Event(o) }
