package scenario

// FaultName names a fault.
type FaultName string

// The faults. [Faults] says what each does, and to whom.
const (
	// Of each write, when it is proposed.
	ApplyReject           FaultName = "apply/reject"            // surely not applied, and said so
	ApplyFull             FaultName = "apply/full"              // not taken
	ApplyAmbiguousApplied FaultName = "apply/ambiguous-applied" // applied, and said to be unknown
	ApplyAmbiguousLate    FaultName = "apply/ambiguous-late"    // said to be unknown, and applied later
	ApplyAmbiguousLost    FaultName = "apply/ambiguous-lost"    // said to be unknown, and never applied
	ApplySlow             FaultName = "apply/slow"              // applied late, and those behind it too
	// Of each entry of marks, just before it is applied: another write makes some of
	// them untrue.
	ApplyPartialRefuse FaultName = "apply/partial-refuse"
	// Of each write of the drainer, once proposed: the term ends before its answer.
	LeaderLoseMidBatch FaultName = "leader/lose-mid-batch"
	// Of each beginning of a term while it is armed: the term ends after Delay.
	LeaderFlap FaultName = "leader/flap"
	// Of each election: the old leader goes on believing for Delay.
	LeaderTwo FaultName = "leader/two"
	// Of each step of the drainer: its server stops for Delay just after it, before
	// what it wrote has left.
	LeaderPaused FaultName = "leader/paused"
	// Of each wake-up of the drainer.
	WatchDelay    FaultName = "watch/delay"    // it comes Delay later
	WatchCoalesce FaultName = "watch/coalesce" // it comes with the next, or Delay later
	WatchSpurious FaultName = "watch/spurious" // another comes Delay later, for nothing
	// Of each look at the state: it is that of some entries ago, until Delay later.
	ViewStale FaultName = "view/stale"
	// Of each allocation, when its client first sees it.
	ClientSlowStop  FaultName = "client/slow-stop"  // it takes all of its stop time
	ClientNeverStop FaultName = "client/never-stop" // it never stops
	ClientFailNew   FaultName = "client/fail-new"   // it is judged unhealthy
	ClientMute      FaultName = "client/mute"       // it is never judged
	// Of each step of the scheduler.
	SchedSlow FaultName = "sched/slow" // it comes Delay later
	// Of each evaluation of a drain, when applied: it is set to failed.
	SchedFailEval FaultName = "sched/fail-eval"
	// When armed nothing can be placed: all nodes are ineligible for Delay.
	SchedUnplaceable FaultName = "sched/unplaceable"
	// When armed, of On or a node drawn: its client dies, or is out of touch, and
	// returns after Delay.
	NodeCrash      FaultName = "node/crash"
	NodeDisconnect FaultName = "node/disconnect"
	// Of each node that the servers say is lost: it is back Delay later.
	NodeReturn FaultName = "node/return"
	// Of each request of operators about a drain.
	APIDup     FaultName = "api/dup"     // it comes twice, with one key
	APITimeout FaultName = "api/timeout" // its answer is lost, and it comes again with its key
	// Of each node on which an entry marks something: an operator changes its drain's
	// strategy, or ends the drain. Of each drain that is over: its node is drained again.
	DrainUpdate FaultName = "drain/update"
	DrainCancel FaultName = "drain/cancel"
	DrainAgain  FaultName = "drain/again"
	// Of each job of which an entry marks something: its limits or counts are changed,
	// or it is forgotten.
	JobEdit  FaultName = "job/edit"
	JobScale FaultName = "job/scale"
	JobPurge FaultName = "job/purge"
	// Of each step of the drainer: its server's clock is set forward or back by Delay, or
	// to Delay before or behind.
	ClockForward FaultName = "clock/forward"
	ClockBack    FaultName = "clock/back"
	ClockSkew    FaultName = "clock/skew"
	// Of each entry of marks: the leader restores a snapshot.
	StoreRestore FaultName = "store/restore"
)

// Target is what a fault may be on.
type Target uint8

// The targets of faults.
const (
	// NoTarget: the fault hits what it hits.
	NoTarget Target = iota
	// OnWrites: "drainer", "scheduler", "clients" or "operator" for the writes of one
	// source, or "marks", "completion", "plan", "report" or "barrier" for the entries
	// of one kind.
	OnWrites
	// OnAllocs: what a [Selector] matches.
	OnAllocs
	// OnJob: a [Selector] of a job alone.
	OnJob
	// OnGroup: a [Selector] of a job or a group.
	OnGroup
	// OnNode: a node.
	OnNode
)

// Delays is whether a fault draws a delay.
type Delays uint8

// Whether a fault draws a delay.
const (
	NoDelay   Delays = iota // it has none
	MayDelay                // it may, and strikes at once otherwise
	MustDelay               // it does nothing without
)

// FaultKind describes a fault.
type FaultKind struct {
	Name   FaultName
	On     Target
	Delays Delays
	// Lasts says that it strikes once, when it is armed, and lasts for its delay: it
	// has neither a count nor a window.
	Lasts bool
}

// Faults returns every fault there is.
func Faults() []FaultKind {
	return []FaultKind{
		{ApplyReject, OnWrites, NoDelay, false},
		{ApplyFull, OnWrites, NoDelay, false},
		{ApplyAmbiguousApplied, OnWrites, NoDelay, false},
		{ApplyAmbiguousLate, OnWrites, MayDelay, false},
		{ApplyAmbiguousLost, OnWrites, NoDelay, false},
		{ApplySlow, OnWrites, MayDelay, false},
		{ApplyPartialRefuse, OnGroup, NoDelay, false},
		{LeaderLoseMidBatch, NoTarget, MayDelay, false},
		{LeaderFlap, NoTarget, MayDelay, false},
		{LeaderTwo, NoTarget, MustDelay, false},
		{LeaderPaused, NoTarget, MustDelay, false},
		{WatchDelay, NoTarget, MustDelay, false},
		{WatchCoalesce, NoTarget, MustDelay, false},
		{WatchSpurious, NoTarget, MayDelay, false},
		{ViewStale, NoTarget, MustDelay, false},
		{ClientSlowStop, OnAllocs, NoDelay, false},
		{ClientNeverStop, OnAllocs, NoDelay, false},
		{ClientFailNew, OnAllocs, NoDelay, false},
		{ClientMute, OnAllocs, NoDelay, false},
		{SchedSlow, NoTarget, MustDelay, false},
		{SchedFailEval, OnJob, NoDelay, false},
		{SchedUnplaceable, NoTarget, MustDelay, true},
		{NodeCrash, OnNode, MustDelay, true},
		{NodeDisconnect, OnNode, MustDelay, true},
		{NodeReturn, OnNode, MayDelay, false},
		{APIDup, OnNode, NoDelay, false},
		{APITimeout, OnNode, MustDelay, false},
		{DrainUpdate, OnNode, MayDelay, false},
		{DrainCancel, OnNode, MayDelay, false},
		{DrainAgain, OnNode, MayDelay, false},
		{JobEdit, OnJob, MayDelay, false},
		{JobScale, OnJob, MayDelay, false},
		{JobPurge, OnJob, MayDelay, false},
		{ClockForward, NoTarget, MustDelay, false},
		{ClockBack, NoTarget, MustDelay, false},
		{ClockSkew, NoTarget, MustDelay, false},
		{StoreRestore, NoTarget, MayDelay, false},
	}
}

// Operates reports whether what the fault does is an operation, which it has done at its
// opportunities as an event has it done at its time.
func (n FaultName) Operates() bool {
	switch n {
	case NodeReturn, APIDup, APITimeout, DrainUpdate, DrainCancel, DrainAgain, JobEdit, JobScale, JobPurge,
		ClockForward, ClockBack, ClockSkew, StoreRestore:
		return true
	}
	return false
}

// Kind returns the description of a fault. That of a name that is none is zero: it has
// no name.
func (n FaultName) Kind() FaultKind {
	for _, k := range Faults() {
		if k.Name == n {
			return k
		}
	}
	return FaultKind{}
}
