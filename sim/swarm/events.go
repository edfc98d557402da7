package swarm

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Event is a rare event that the observer counts. A swarm without it does not test the drainer's
// answer to it.
type Event string

// Events of the drainer's entries.
const (
	EntrySurvives   Event = "entry/survives" // an entry of unknown outcome is applied between an election and the barrier
	EntryLate       Event = "entry/late"     // an entry is applied after its proposer got the answer that the outcome is unknown
	EntryRejected   Event = "entry/rejected"
	EntryNotTaken   Event = "entry/not-taken"
	EntryConcurrent Event = "entry/abreast" // an entry is proposed while another is in flight
)

// Events of terms.
const (
	TermBlind       Event = "term/blind"        // it ends before its drainer has read a state
	TermBehind      Event = "term/behind"       // its drainer first reads an older state than the newest
	DeposedSteps    Event = "term/deposed"      // a drainer steps after its term has ended
	DeposedProposes Event = "term/deposed-asks" // a drainer proposes after its term has ended
	RestoreInDrain  Event = "term/restore"      // a snapshot is restored while nodes drain
)

// Operations and faults while nodes drain.
const (
	ClockSkewed  Event = "clock/skewed"  // a term begins with a clock that is wrong by seconds
	ClockForward Event = "clock/forward" // the clock of a term is set forward
	ClockBack    Event = "clock/back"
	TermForgets  Event = "term/forgets" // a drainer starts without memory
	LimitEdited  Event = "job/limit"
	JobScaled    Event = "job/scaled"
	GroupsEdited Event = "job/regrouped"
	NodeReturned Event = "node/returned"
	Worsened     Event = "alloc/worsened"  // a good verdict becomes bad
	Recovered    Event = "alloc/recovered" // a bad verdict becomes good
)

// Events of marks.
const (
	MarksRefused       Event = "marks/refused" // the state has changed between plan and apply
	MarksPartlyRefused Event = "marks/partly-refused"
	MarksOfCancelled   Event = "marks/of-cancelled"    // the drain is cancelled with marks in flight
	MarksOfRedrained   Event = "marks/of-redrained"    // the drain is cancelled, and another has begun
	MarksOfOldRevision Event = "marks/of-old-revision" // the strategy has changed
	MarksOfLate        Event = "marks/of-late"         // of an allocation that was placed on a draining node
	MarksOfManyNodes   Event = "marks/of-many-nodes"   // of a group on several nodes at once
	Reevaluated        Event = "marks/reevaluated"     // a marked allocation needs another evaluation
)

// Events of drains and plans.
const (
	EndRefused       Event = "end/refused"
	EndOfRedrained   Event = "end/of-redrained"    // the drain is over, and another has begun
	EndOfOldRevision Event = "end/of-old-revision" // its strategy has changed
	EndTooEarly      Event = "end/too-early"       // an allocation was placed on the node
	EndOfMany        Event = "end/of-many"         // several drains end in one entry
	EndLeavesRunning Event = "end/leaves-running"
	StageAcrossTerms Event = "drain/stage-across-terms" // a stage ends in a later term than it began in
	DeadlineNoLeader Event = "drain/deadline-no-leader" // a deadline passes without a leader
	DeadlineAway     Event = "drain/deadline-away"      // a deadline marks an allocation on a disconnected node
	CancelWithdraws  Event = "drain/cancel-withdraws"   // a cancel withdraws marks
	CancelTooLate    Event = "drain/cancel-too-late"    // a cancel comes while marked allocations stop
	Repeated         Event = "drain/repeated"           // a request comes again with its key
	RepeatedAfterEnd Event = "drain/repeated-after-end" // a request comes again after the end of its drain
	PurgedRunning    Event = "drain/purged"             // a purged job runs on a draining node
	ManyDrains       Event = "drain/many"               // three nodes or more drain at once
	PlanRefused      Event = "plan/refused"             // part of a plan was refused
	PlanBlocked      Event = "plan/blocked"             // an allocation fits on no node
	DeviceGiven      Event = "device/given"             // a new allocation has devices while nodes drain
	DeviceOfLost     Event = "device/of-lost"           // a new allocation has a device of a lost one
	DeviceSickInUse  Event = "device/sick-in-use"       // a device that an allocation has becomes unhealthy or goes
)

// Events of volumes.
const (
	VolumesLeft     Event = "volumes/left"         // the end of an allocation is reported with volumes on the node
	ClaimFreedAway  Event = "claim/freed-away"     // the servers free the claim of an unreachable node
	ClaimForced     Event = "claim/forced"         // an operator detaches a volume that an allocation uses
	ClaimController Event = "claim/for-controller" // a claim waits until a controller has detached its volume
)

// Families of events.
func faultEvent(f scenario.FaultName) Event { return "fault/" + Event(f) }
func reasonEvent(r rules.Reason) Event      { return "reason/" + Event(r.String()) }
func classEvent(c cluster.MarkClass) Event  { return "class/" + Event(c.String()) }
func outcomeEvent(o cluster.Outcome) Event  { return "outcome/" + Event(o) }
