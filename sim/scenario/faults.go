package scenario

import "time"

// FaultName names a fault.
type FaultName string

// The faults, by their opportunities.
const (
	// At each write, when it is proposed.
	ApplyReject           FaultName = "apply/reject"            // not applied, and the writer gets the answer
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
	// At each election: the old leader still acts as a leader for Delay.
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
	// At each allocation, when its client first reads it.
	ClientSlowStop  FaultName = "client/slow-stop"  // it uses all of its stop time
	ClientNeverStop FaultName = "client/never-stop" // it never stops
	ClientFailNew   FaultName = "client/fail-new"   // its verdict is unhealthy
	ClientMute      FaultName = "client/mute"       // it never has a verdict
	// At each step of the scheduler.
	SchedSlow FaultName = "sched/slow" // it comes after Delay
	// At the answer to each write of the scheduler: the scheduler gets it after Delay, and may read the
	// write in the state before.
	SchedLateAnswer FaultName = "sched/late-answer"
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
	DrainPause  FaultName = "drain/pause"
	PauseAll    FaultName = "drain/pause-all"
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
	// At each allocation, when its real client first reads it: its driver does not do what it reports.
	DriverLie FaultName = "driver/lie"
	// When armed, at the node On or a drawn node: for Delay its machine is off, its client is frozen, or
	// its disk is full.
	NodeReboot FaultName = "node/reboot"
	NodeFreeze FaultName = "node/freeze"
	DiskFull   FaultName = "disk/full"
	// When armed, at the node On or a drawn node: a record on its disk is damaged, and its client dies
	// and starts again after Delay.
	RecordLose FaultName = "record/lose"
	DiskWipe   FaultName = "disk/wipe" // all records of a client are lost
	// At each call of a real client to a device plugin.
	DeviceCrash FaultName = "device/crash" // the plugin dies before or after the call takes effect, or after Delay
	DeviceHang  FaultName = "device/hang"  // the plugin stands still for Delay
	// At each reservation of devices: it fails.
	DeviceFail FaultName = "device/fail"
	// When armed, at the node On or a drawn node with devices, for Delay.
	DeviceSick   FaultName = "device/sick"   // a device is unhealthy
	DeviceVanish FaultName = "device/vanish" // a device is not there
	DeviceRename FaultName = "device/rename" // all devices have other ids
	DeviceMute   FaultName = "device/mute"   // the plugins end their reports
	// At each call of a real client to a storage plugin.
	StorageFail  FaultName = "storage/fail"  // it fails, before or after it takes effect; also at calls of the leader
	StorageSlow  FaultName = "storage/slow"  // its answer comes after Delay
	StorageHang  FaultName = "storage/hang"  // the plugin stands still for Delay
	StorageCrash FaultName = "storage/crash" // the plugin's task dies before or after the call takes effect, or after Delay
	// At each call of the leader to a controller: it is not answered for Delay.
	ControllerHang FaultName = "controller/hang" // it takes effect after Delay
	ControllerMute FaultName = "controller/mute" // it takes effect at once
	// At each call of a client that takes a volume off an allocation: processes keep its mount busy for Delay.
	MountBusy FaultName = "mount/busy"
	// At each request of a real client for a claim, or to release one: the answer is lost.
	ClaimLose FaultName = "claim/lose"
	// At each copy of data to a real client, when it begins.
	DataCut  FaultName = "data/cut"  // it is cut after Delay
	DataSlow FaultName = "data/slow" // nothing arrives for Delay
	// At each request of a real client for data: an earlier one comes again after Delay and ends it.
	DataTwice FaultName = "data/twice"
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

// Delays reports whether a fault has a delay.
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
	// Usual has the bounds of a delay that a generator draws. It is zero without a delay.
	Usual Range
	// Lasts is true if the fault strikes once, when it is armed, and lasts for its delay. It has
	// neither Count nor For.
	Lasts bool
	// Operates is true if the fault performs an operation of the language at its opportunities.
	Operates bool
	// Real is true if the fault needs real clients; see [Cluster].Clients.
	Real bool
	// Devices is true if the fault needs nodes with devices, Volumes if it needs volumes, Data if it needs groups whose
	// data moves.
	Devices, Volumes, Data bool
}

// Faults returns all faults.
func Faults() []FaultKind {
	return []FaultKind{
		{Name: ApplyReject, On: OnWrites},
		{Name: ApplyFull, On: OnWrites},
		{Name: ApplyAmbiguousApplied, On: OnWrites},
		{Name: ApplyAmbiguousLate, On: OnWrites, Delays: MayDelay, Usual: Range{100 * time.Millisecond, 30 * time.Second}},
		{Name: ApplyAmbiguousLost, On: OnWrites},
		{Name: ApplySlow, On: OnWrites, Delays: MayDelay, Usual: Range{100 * time.Millisecond, 30 * time.Second}},
		{Name: ApplyPartialRefuse, On: OnGroup},
		{Name: LeaderLoseMidBatch, Delays: MayDelay, Usual: Range{time.Millisecond, 100 * time.Millisecond}},
		{Name: LeaderFlap, Delays: MayDelay, Usual: Range{50 * time.Millisecond, 20 * time.Second}},
		{Name: LeaderTwo, Delays: MustDelay, Usual: Range{100 * time.Millisecond, 20 * time.Second}},
		{Name: LeaderPaused, Delays: MustDelay, Usual: Range{100 * time.Millisecond, time.Minute}},
		{Name: WatchDelay, Delays: MustDelay, Usual: Range{10 * time.Millisecond, 20 * time.Second}},
		{Name: WatchCoalesce, Delays: MustDelay, Usual: Range{10 * time.Millisecond, 20 * time.Second}},
		{Name: WatchSpurious, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 20 * time.Second}},
		{Name: ViewStale, Delays: MustDelay, Usual: Range{100 * time.Millisecond, 20 * time.Second}},
		{Name: ClientSlowStop, On: OnAllocs},
		{Name: ClientNeverStop, On: OnAllocs},
		{Name: ClientFailNew, On: OnAllocs},
		{Name: ClientMute, On: OnAllocs},
		{Name: SchedSlow, Delays: MustDelay, Usual: Range{100 * time.Millisecond, time.Minute}},
		{Name: SchedLateAnswer, Delays: MustDelay, Usual: Range{10 * time.Millisecond, 20 * time.Second}},
		{Name: SchedFailEval, On: OnJob},
		{Name: SchedUnplaceable, Delays: MustDelay, Usual: Range{5 * time.Second, 3 * time.Minute}, Lasts: true},
		{Name: NodeCrash, On: OnNode, Delays: MustDelay, Usual: Range{time.Second, 3 * time.Minute}, Lasts: true},
		{Name: NodeDisconnect, On: OnNode, Delays: MustDelay, Usual: Range{time.Second, 3 * time.Minute}, Lasts: true},
		{Name: NodeReturn, On: OnNode, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 2 * time.Minute}, Operates: true},
		{Name: APIDup, On: OnNode, Operates: true},
		{Name: APITimeout, On: OnNode, Delays: MustDelay, Usual: Range{10 * time.Millisecond, 30 * time.Second}, Operates: true},
		{Name: DrainUpdate, On: OnNode, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 30 * time.Second}, Operates: true},
		{Name: DrainCancel, On: OnNode, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 30 * time.Second}, Operates: true},
		{Name: DrainPause, On: OnNode, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 30 * time.Second}, Operates: true},
		{Name: PauseAll, On: OnNode, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 30 * time.Second}, Operates: true},
		{Name: DrainAgain, On: OnNode, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 2 * time.Minute}, Operates: true},
		{Name: JobEdit, On: OnJob, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 30 * time.Second}, Operates: true},
		{Name: JobScale, On: OnJob, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 30 * time.Second}, Operates: true},
		{Name: JobPurge, On: OnJob, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 30 * time.Second}, Operates: true},
		{Name: ClockForward, Delays: MustDelay, Usual: Range{time.Second, time.Hour}, Operates: true},
		{Name: ClockBack, Delays: MustDelay, Usual: Range{time.Second, 10 * time.Minute}, Operates: true},
		{Name: ClockSkew, Delays: MustDelay, Usual: Range{100 * time.Millisecond, 2500 * time.Millisecond}, Operates: true},
		{Name: StoreRestore, Delays: MayDelay, Usual: Range{10 * time.Millisecond, 30 * time.Second}, Operates: true},
		{Name: ClientCrash, On: OnNode, Delays: MayDelay, Usual: Range{100 * time.Millisecond, time.Minute}, Real: true},
		{Name: DriverCrash, On: OnNode, Delays: MayDelay, Usual: Range{50 * time.Millisecond, 10 * time.Second}, Real: true},
		{Name: DriverHang, On: OnNode, Delays: MustDelay, Usual: Range{10 * time.Millisecond, time.Minute}, Real: true},
		{Name: DriverLie, On: OnAllocs, Real: true},
		{Name: ShimKill, On: OnNode, Delays: MayDelay, Usual: Range{10 * time.Millisecond, time.Minute}, Real: true},
		{Name: NodeReboot, On: OnNode, Delays: MustDelay, Usual: Range{100 * time.Millisecond, time.Minute}, Lasts: true, Real: true},
		{Name: NodeFreeze, On: OnNode, Delays: MustDelay, Usual: Range{time.Second, 5 * time.Minute}, Lasts: true, Real: true},
		{Name: DiskFull, On: OnNode, Delays: MustDelay, Usual: Range{100 * time.Millisecond, time.Minute}, Lasts: true, Real: true},
		{Name: RecordLose, On: OnNode, Delays: MustDelay, Usual: Range{100 * time.Millisecond, time.Minute}, Lasts: true, Real: true},
		{Name: DiskWipe, On: OnNode, Delays: MustDelay, Usual: Range{100 * time.Millisecond, time.Minute}, Lasts: true, Real: true},
		{Name: DeviceCrash, On: OnNode, Delays: MayDelay, Usual: Range{50 * time.Millisecond, 10 * time.Second}, Real: true, Devices: true},
		{Name: DeviceHang, On: OnNode, Delays: MustDelay, Usual: Range{10 * time.Millisecond, 2 * time.Minute}, Real: true, Devices: true},
		{Name: DeviceFail, On: OnNode, Real: true, Devices: true},
		{Name: DeviceSick, On: OnNode, Delays: MustDelay, Usual: Range{10 * time.Millisecond, 2 * time.Minute}, Lasts: true, Real: true, Devices: true},
		{Name: DeviceVanish, On: OnNode, Delays: MustDelay, Usual: Range{10 * time.Millisecond, 2 * time.Minute}, Lasts: true, Real: true, Devices: true},
		{Name: DeviceRename, On: OnNode, Delays: MustDelay, Usual: Range{10 * time.Millisecond, 2 * time.Minute}, Lasts: true, Real: true, Devices: true},
		{Name: DeviceMute, On: OnNode, Delays: MustDelay, Usual: Range{10 * time.Millisecond, 2 * time.Minute}, Lasts: true, Real: true, Devices: true},
		{Name: StorageFail, On: OnNode, Real: true, Volumes: true},
		{Name: StorageSlow, On: OnNode, Delays: MustDelay, Usual: Range{50 * time.Millisecond, 10 * time.Second}, Real: true, Volumes: true},
		{Name: StorageHang, On: OnNode, Delays: MustDelay, Usual: Range{10 * time.Millisecond, time.Minute}, Real: true, Volumes: true},
		{Name: StorageCrash, On: OnNode, Delays: MayDelay, Usual: Range{50 * time.Millisecond, 10 * time.Second}, Real: true, Volumes: true},
		{Name: ControllerHang, On: OnNode, Delays: MustDelay, Usual: Range{time.Second, 4 * time.Minute}, Real: true, Volumes: true},
		{Name: ControllerMute, On: OnNode, Delays: MustDelay, Usual: Range{time.Second, 4 * time.Minute}, Real: true, Volumes: true},
		{Name: MountBusy, On: OnNode, Delays: MustDelay, Usual: Range{10 * time.Millisecond, 2 * time.Minute}, Real: true, Volumes: true},
		{Name: ClaimLose, On: OnNode, Real: true, Volumes: true},
		{Name: DataCut, On: OnNode, Delays: MayDelay, Usual: Range{10 * time.Millisecond, time.Minute}, Real: true, Data: true},
		{Name: DataSlow, On: OnNode, Delays: MustDelay, Usual: Range{time.Second, 3 * time.Minute}, Real: true, Data: true},
		{Name: DataTwice, On: OnNode, Delays: MayDelay, Usual: Range{10 * time.Millisecond, time.Minute}, Real: true, Data: true},
	}
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
