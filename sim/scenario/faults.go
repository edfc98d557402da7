package scenario

// FaultName names a fault.
type FaultName string

// The faults, by their opportunities.
const (
	// At each write, when it is proposed.
	ApplyReject           FaultName = "apply/reject"            // not applied, and the writer knows it
	ApplyFull             FaultName = "apply/full"              // not accepted
	ApplyAmbiguousApplied FaultName = "apply/ambiguous-applied" // outcome unknown; applied
	ApplyAmbiguousLate    FaultName = "apply/ambiguous-late"    // outcome unknown; applied later
	ApplyAmbiguousLost    FaultName = "apply/ambiguous-lost"    // outcome unknown; never applied
	ApplySlow             FaultName = "apply/slow"              // applied late, with the writes behind it
	// At each entry of marks, just before its apply: another write makes some marks invalid.
	ApplyPartialRefuse FaultName = "apply/partial-refuse"
	// At each write of the drainer: the term ends before the answer.
	LeaderLoseMidBatch FaultName = "leader/lose-mid-batch"
	// At the beginning of each term: the term ends after Delay.
	LeaderFlap FaultName = "leader/flap"
	// At each election: the old leader believes for Delay that it still leads.
	LeaderTwo FaultName = "leader/two"
	// At each step of the drainer: its server stops for Delay, before the writes of the step
	// leave.
	LeaderPaused FaultName = "leader/paused"
	// At each wake-up of the drainer.
	WatchDelay    FaultName = "watch/delay"    // it comes after Delay
	WatchCoalesce FaultName = "watch/coalesce" // it comes with the next one, or after Delay
	WatchSpurious FaultName = "watch/spurious" // a second one comes after Delay, without a reason
	// At each step of the drainer: it reads the state of some entries ago, for Delay.
	ViewStale FaultName = "view/stale"
	// At each allocation, when its client first sees it.
	ClientSlowStop  FaultName = "client/slow-stop"  // it uses all of its stop time
	ClientNeverStop FaultName = "client/never-stop" // it never stops
	ClientFailNew   FaultName = "client/fail-new"   // its verdict is unhealthy
	ClientMute      FaultName = "client/mute"       // it never has a verdict
	// At each step of the scheduler.
	SchedSlow FaultName = "sched/slow" // it comes after Delay
	// At the apply of each evaluation of a drain: the evaluation fails.
	SchedFailEval FaultName = "sched/fail-eval"
	// When armed: all nodes are ineligible for Delay.
	SchedUnplaceable FaultName = "sched/unplaceable"
	// When armed, at the node On or a drawn node: its client dies, or is unreachable, and
	// returns after Delay.
	NodeCrash      FaultName = "node/crash"
	NodeDisconnect FaultName = "node/disconnect"
	// At each node that becomes down or disconnected: it returns after Delay.
	NodeReturn FaultName = "node/return"
	// At each drain request.
	APIDup     FaultName = "api/dup"     // it comes twice, with one key
	APITimeout FaultName = "api/timeout" // its answer is lost, and it comes again with the same key
	// At each node on which an entry marks allocations: the drain gets another strategy, or is
	// cancelled. At the end of each drain: its node is drained again.
	DrainUpdate FaultName = "drain/update"
	DrainCancel FaultName = "drain/cancel"
	DrainAgain  FaultName = "drain/again"
	// At each job of which an entry marks allocations: its limits or counts change, or it is
	// purged.
	JobEdit  FaultName = "job/edit"
	JobScale FaultName = "job/scale"
	JobPurge FaultName = "job/purge"
	// At each step of the drainer: its server's clock is set forward or back by Delay, or to
	// Delay ahead or behind.
	ClockForward FaultName = "clock/forward"
	ClockBack    FaultName = "clock/back"
	ClockSkew    FaultName = "clock/skew"
	// At each entry of marks: the leader restores a snapshot.
	StoreRestore FaultName = "store/restore"
	// At each effect of a real client, when it begins and when it is answered: the client dies, and
	// starts again after Delay.
	ClientCrash FaultName = "client/crash"
	// At each call of a real client to a driver.
	DriverCrash FaultName = "driver/crash" // the driver dies before or after the call takes effect, or after Delay
	DriverHang  FaultName = "driver/hang"  // the driver stands still for Delay
	ShimKill    FaultName = "shim/kill"    // the shims of the call's allocation die after Delay
	// At each allocation, when its real client first sees it: its driver does not do as it says.
	DriverLie FaultName = "driver/lie"
	// When armed, at the node On or a drawn node: its machine is off for Delay, or its disk is full.
	NodeReboot FaultName = "node/reboot"
	DiskFull   FaultName = "disk/full"
	// When armed, at the node On or a drawn node: a record on its disk is damaged, and its client dies
	// and starts again after Delay.
	RecordLose FaultName = "record/lose"
)

// Target is the kind of target of a fault.
type Target uint8

// The targets of faults.
const (
	// NoTarget: the fault has no target.
	NoTarget Target = iota
	// OnWrites: a writer ("drainer", "scheduler", "clients", "operator") or a kind of entry
	// ("marks", "completion", "plan", "report", "barrier").
	OnWrites
	// OnAllocs: the allocations that a [Selector] matches.
	OnAllocs
	// OnJob: a [Selector] with only a job.
	OnJob
	// OnGroup: a [Selector] with only a job, or a job and a group.
	OnGroup
	// OnNode: a node.
	OnNode
)

// Delays says whether a fault has a delay.
type Delays uint8

// The values of [Delays].
const (
	NoDelay   Delays = iota // no delay
	MayDelay                // an optional delay; zero is at once
	MustDelay               // a required delay
)

// FaultKind describes a fault.
type FaultKind struct {
	Name   FaultName
	On     Target
	Delays Delays
	// Lasts is true if the fault strikes once, when it is armed, and lasts for its delay. It has
	// neither Count nor For.
	Lasts bool
	// Real is true if the fault needs real clients; see [Cluster].Clients.
	Real bool
}

// Faults returns all faults.
func Faults() []FaultKind {
	return []FaultKind{
		{ApplyReject, OnWrites, NoDelay, false, false},
		{ApplyFull, OnWrites, NoDelay, false, false},
		{ApplyAmbiguousApplied, OnWrites, NoDelay, false, false},
		{ApplyAmbiguousLate, OnWrites, MayDelay, false, false},
		{ApplyAmbiguousLost, OnWrites, NoDelay, false, false},
		{ApplySlow, OnWrites, MayDelay, false, false},
		{ApplyPartialRefuse, OnGroup, NoDelay, false, false},
		{LeaderLoseMidBatch, NoTarget, MayDelay, false, false},
		{LeaderFlap, NoTarget, MayDelay, false, false},
		{LeaderTwo, NoTarget, MustDelay, false, false},
		{LeaderPaused, NoTarget, MustDelay, false, false},
		{WatchDelay, NoTarget, MustDelay, false, false},
		{WatchCoalesce, NoTarget, MustDelay, false, false},
		{WatchSpurious, NoTarget, MayDelay, false, false},
		{ViewStale, NoTarget, MustDelay, false, false},
		{ClientSlowStop, OnAllocs, NoDelay, false, false},
		{ClientNeverStop, OnAllocs, NoDelay, false, false},
		{ClientFailNew, OnAllocs, NoDelay, false, false},
		{ClientMute, OnAllocs, NoDelay, false, false},
		{SchedSlow, NoTarget, MustDelay, false, false},
		{SchedFailEval, OnJob, NoDelay, false, false},
		{SchedUnplaceable, NoTarget, MustDelay, true, false},
		{NodeCrash, OnNode, MustDelay, true, false},
		{NodeDisconnect, OnNode, MustDelay, true, false},
		{NodeReturn, OnNode, MayDelay, false, false},
		{APIDup, OnNode, NoDelay, false, false},
		{APITimeout, OnNode, MustDelay, false, false},
		{DrainUpdate, OnNode, MayDelay, false, false},
		{DrainCancel, OnNode, MayDelay, false, false},
		{DrainAgain, OnNode, MayDelay, false, false},
		{JobEdit, OnJob, MayDelay, false, false},
		{JobScale, OnJob, MayDelay, false, false},
		{JobPurge, OnJob, MayDelay, false, false},
		{ClockForward, NoTarget, MustDelay, false, false},
		{ClockBack, NoTarget, MustDelay, false, false},
		{ClockSkew, NoTarget, MustDelay, false, false},
		{StoreRestore, NoTarget, MayDelay, false, false},
		{ClientCrash, OnNode, MayDelay, false, true},
		{DriverCrash, OnNode, MayDelay, false, true},
		{DriverHang, OnNode, MustDelay, false, true},
		{DriverLie, OnAllocs, NoDelay, false, true},
		{ShimKill, OnNode, MayDelay, false, true},
		{NodeReboot, OnNode, MustDelay, true, true},
		{DiskFull, OnNode, MustDelay, true, true},
		{RecordLose, OnNode, MustDelay, true, true},
	}
}

// Operates reports whether the fault performs an operation of the language at its opportunities.
func (n FaultName) Operates() bool {
	switch n {
	case NodeReturn, APIDup, APITimeout, DrainUpdate, DrainCancel, DrainAgain, JobEdit, JobScale, JobPurge,
		ClockForward, ClockBack, ClockSkew, StoreRestore:
		return true
	}
	return false
}

// Kind returns the description of a fault. It is zero for an unknown name.
func (n FaultName) Kind() FaultKind {
	for _, k := range Faults() {
		if k.Name == n {
			return k
		}
	}
	return FaultKind{}
}
