package swarm

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Event is a rare event that the observer counts. A swarm without it does not test the drainer's
// answer to it. [Rates] lists all events.
type Event string

// Families of events.
func faultEvent(f scenario.FaultName) Event { return "fault/" + Event(f) }
func reasonEvent(r rules.Reason) Event      { return "reason/" + Event(r.String()) }
func classEvent(c cluster.MarkClass) Event  { return "class/" + Event(c.String()) }
func outcomeEvent(o cluster.Outcome) Event  { return "outcome/" + Event(o) }

// Rate is the least share of runs with an event.
type Rate struct {
	Event Event
	// What describes the event.
	What string
	// Least is the least share of runs of each size.
	Least [sizeCount]float64
}

// Rates returns the rates of all events. They come from measurements. The rate for small and medium
// runs is at most 0.7 of the share in the small seeds 1 to 2,000, and at most the share in the medium
// seeds 1 to 200. The rate for large runs is 0.7 of the share in the seeds 1 to 256. It is 0.95 for
// events that all of these had.
func Rates() []Rate {
	rates := []Rate{
		{"entry/survives", "an entry of unknown outcome is applied between an election and the barrier", in(0.1, 0.27)},
		{"entry/late", "an entry is applied after its drainer got the answer that the outcome is unknown", in(0.047, 0.092)},
		{"entry/rejected", "an entry is rejected", in(0.054, 0.12)},
		{"entry/not-taken", "an entry is not accepted", in(0.065, 0.14)},
		{"entry/abreast", "an entry is proposed while another is in flight", in(0.12, 0.59)},
		{"term/blind", "a term ends before its drainer has read a state", in(0.13, 0.19)},
		{"term/behind", "a drainer first reads an older state than others have", in(0.008, rare)},
		{"term/deposed", "a drainer steps after the end of its term", in(0.025, 0.1)},
		{"term/deposed-asks", "a drainer proposes after the end of its term", in(0.009, 0.06)},
		{"term/restore", "a snapshot is restored while nodes drain", in(0.18, 0.18)},
		{"clock/skewed", "a term begins by a clock that is wrong by seconds", in(0.26, 0.27)},
		{"clock/forward", "a clock is set forward", in(0.25, 0.31)},
		{"clock/back", "a clock is set back", in(0.24, 0.33)},
		{"term/forgets", "a drainer loses its memory while nodes drain", in(0.23, 0.3)},
		{"job/limit", "a job gets another limit while nodes drain", in(0.11, 0.39)},
		{"job/scaled", "a job gets another count while nodes drain", in(0.16, 0.41)},
		{"job/regrouped", "a group is removed or renamed while nodes drain", in(0.13, 0.42)},
		{"node/returned", "a lost node returns while nodes drain", in(0.28, 0.62)},
		{"alloc/worsened", "an allocation becomes unhealthy while nodes drain", in(0.053, 0.06)},
		{"alloc/recovered", "an allocation becomes healthy again while nodes drain", in(0.036, 0.055)},
		{"marks/refused", "a mark is refused: a group has changed between plan and apply", in(0.13, 0.35)},
		{"marks/partly-refused", "marks are refused in part", in(0.032, 0.3)},
		{"marks/of-cancelled", "a drain is cancelled with marks in flight", in(0.025, 0.1)},
		{"marks/of-redrained", "a drain is cancelled and another begins with marks in flight", in(0.02, 0.068)},
		{"marks/of-old-revision", "a strategy is changed with marks in flight", in(0.025, 0.073)},
		{"marks/of-late", "a marked allocation was placed on its node during the drain", in(0.071, 0.26)},
		{"marks/of-many-nodes", "an entry marks allocations of one group on several nodes", in(0.11, 0.95)},
		{"marks/reevaluated", "a marked allocation needs another evaluation", in(0.11, 0.31)},
		{"end/refused", "a completion is refused", in(0.095, 0.13)},
		{"end/of-redrained", "a drain is cancelled and another begins with its completion in flight", in(0.012, 0.035)},
		{"end/of-old-revision", "a strategy is changed with the drain's completion in flight", in(0.021, 0.038)},
		{"end/too-early", "an allocation is placed with the completion in flight", in(0.043, rare)},
		{"end/of-many", "several drains end in one entry", in(0.075, 0.64)},
		{"end/leaves-running", "a drain ends and leaves allocations running", in(0.19, 0.34)},
		{"drain/stage-across-terms", "a stage ends in a later term than it began in", in(0.29, 0.57)},
		{"drain/deadline-no-leader", "a deadline passes without a leader", in(0.028, 0.13)},
		{"drain/deadline-away", "a deadline marks an allocation on a disconnected node", in(0.009, 0.057)},
		{"drain/cancel-withdraws", "a cancel withdraws marks", in(0.052, 0.27)},
		{"drain/cancel-too-late", "a cancel comes while marked allocations stop", in(0.13, 0.25)},
		{"drain/repeated", "a request comes again with its key", in(0.25, 0.4)},
		{"drain/repeated-after-end", "a request comes again after the end of its drain", in(0.065, 0.18)},
		{"drain/confirmed", "an operator confirms that unconfirmed allocations have ended", in(0.021, rare)},
		{"drain/purged", "a job is purged that runs on a draining node", in(0.12, 0.27)},
		{"drain/many", "three nodes drain at once", in(0.12, 0.95)},
		{"plan/refused", "a plan is refused in part", in(0.2, 0.48)},
		{"plan/blocked", "an allocation fits on no node", in(0.29, 0.19)},
		{"plan/holds-lost", "a lost allocation keeps its slot until its end is confirmed", in(0.08, rare)},
		{"plan/keeps-replacement", "an original whose node is back is stopped, and its replacement stays", in(0.003, rare)},
		{"alloc/given-up", "an allocation ended that is not placed again, because it ended too often in a row", in(0.02, rare)},
		{"alloc/permitted-again", "an allocation is replaced because earlier attempts have left the interval of its policy", in(0.01, rare)},
		{"device/given", "a new allocation has devices while nodes drain", small(0.019)},
		{"device/two-requests", "a new allocation has devices of two requests", small(0.002)},
		{"device/of-lost", "a new allocation has a device of a lost one", small(0.002)},
		{"device/sick-in-use", "a device that an allocation has becomes unhealthy or goes", small(0.01)},
		{"port/given", "a new allocation has ports while nodes drain", in(0.083, 0.07)},
		{"port/of-lost", "a new allocation has a port of a lost one", in(0.02, 0.02)},
		{"service/given", "a new allocation has a service while nodes drain", in(0.05, rare)},
		{"service/edited", "a new version gives its services to allocations that run while nodes drain", in(0.01, rare)},
		{"check/unhealthy", "a check makes an allocation unhealthy while nodes drain", small(0.005)},
		{"check/restart", "a check restarts a task", small(0.002)},
		{"alloc/expired", "a client stops an allocation that has run for its longest time", small(0.01)},
		{"core/given", "a new allocation has cores for itself while nodes drain", in(0.05, 0.05)},
		{"data/copied", "a replacement has the data of the allocation that it replaces", small(0.02)},
		{"data/given-up", "a replacement starts without the data of the allocation that it replaces", small(0.018)},
		{"data/kept-too-long", "a client gives up the data that no replacement has taken", small(0.01)},
		{"volumes/left", "the end of an allocation is reported with volumes on the node", small(0.0024)},
		{"claim/freed-away", "the servers free a claim on an unreachable node", small(0.0045)},
		{"claim/forced", "an operator detaches a volume that an allocation uses", small(0.0013)},
		{"claim/for-controller", "a claim waits until a controller has detached its volume", small(0.0045)},
	}
	rates = append(rates, pauseRates()...)
	rates = append(rates, surgeRates()...)
	rates = append(rates, classRates()...)
	rates = append(rates, outcomeRates()...)
	rates = append(rates, reasonRates()...)
	rates = append(rates, faultRates()...)
	return rates
}

// rare is the rate of an event in fewer than one of twenty large seeds. Such an event may be missing
// from all runs by chance, so it has no rate.
const rare = 0

// in returns a rate for small and medium runs, and another for large ones.
func in(share, large float64) [sizeCount]float64 {
	return [sizeCount]float64{Small: share, Medium: share, Large: large}
}

// small returns a rate for small runs alone.
func small(share float64) [sizeCount]float64 { return [sizeCount]float64{Small: share} }

func pauseRates() []Rate {
	return []Rate{
		{"drain/paused", "one drain is paused", in(0.14, 0.14)},
		{"drain/all-paused", "all drains are paused", in(0.11, 0.11)},
		{"drain/resume-moves-deadline", "the deadline of a drain moves by the time of a pause", in(0.15, 0.15)},
		{"drain/resume-under-all", "a resume of one drain comes while all are paused", in(0.011, rare)},
		{"end/of-paused", "a drain is paused with its completion in flight", in(0.0006, rare)},
	}
}

func classRates() []Rate {
	least := [cluster.MarkClassCount][sizeCount]float64{
		cluster.MarkPaced: in(0.50, 0.95), cluster.MarkFree: in(0.11, 0.38),
		cluster.MarkCanary: in(0.086, 0.28), cluster.MarkGone: in(0.032, 0.16),
		cluster.MarkStage: in(0.32, 0.37), cluster.MarkDeadline: in(0.28, 0.68),
		cluster.MarkForced: in(0.088, 0.36), cluster.MarkProceed: in(0.031, 0.11),
	}
	var rates []Rate
	for c := cluster.MarkPaced; c < cluster.MarkClassCount; c++ {
		rates = append(rates, Rate{classEvent(c), "an allocation is marked " + c.String(), least[c]})
	}
	return rates
}

func outcomeRates() []Rate {
	var rates []Rate
	for _, o := range []struct {
		is    cluster.Outcome
		least [sizeCount]float64
	}{
		{cluster.OutcomeComplete, in(0.44, 0.55)}, {cluster.OutcomeDeadlineReached, in(0.3, 0.67)}, {cluster.OutcomeForced, in(0.078, 0.32)},
		{cluster.OutcomeCancelled, in(0.38, 0.53)}, {cluster.OutcomeNodeGone, in(0.062, 0.18)},
		{cluster.OutcomeUnconfirmed, in(0.17, 0.2)},
	} {
		rates = append(rates, Rate{outcomeEvent(o.is), "a drain's outcome is " + string(o.is), o.least})
	}
	return rates
}

func reasonRates() []Rate {
	least := [rules.ReasonCount][sizeCount]float64{
		rules.ReasonWritePending: in(0.66, 0.95), rules.ReasonStopping: in(0.66, 0.95),
		rules.ReasonWaitingForScheduler: in(0.64, 0.95), rules.ReasonWaitingForStage: in(0.42, 0.39),
		rules.ReasonWaitingForRoom: in(0.4, 0.95), rules.ReasonBatchRunning: in(0.36, 0.45),
		rules.ReasonWaitingForHealth: in(0.19, 0.46), rules.ReasonDisconnected: in(0.16, 0.26),
		rules.ReasonLeftByRequest: in(0.14, 0.2), rules.ReasonBelowBudget: in(0.095, 0.6),
		rules.ReasonWaitingForReplacement: in(0.092, 0.071), rules.ReasonNoPacedMoves: in(0.071, 0.38),
		rules.ReasonPaused: in(0.15, 0.15), rules.ReasonWaitingForSurge: in(0.05, 0.05), rules.ReasonHeldForVolumes: small(0.002), rules.ReasonWaitingForData: small(0.015),
	}
	var rates []Rate
	for r := range rules.ReasonCount {
		rates = append(rates, Rate{reasonEvent(r), "an allocation is left for the reason " + r.String(), least[r]})
	}
	return rates
}

// faultRates returns a rate for each fault.
func faultRates() []Rate {
	least := map[scenario.FaultName][sizeCount]float64{
		scenario.ApplyReject: in(0.21, 0.29), scenario.ApplyFull: in(0.21, 0.25),
		scenario.ApplyAmbiguousApplied: in(0.21, 0.3), scenario.ApplyAmbiguousLate: in(0.2, 0.28),
		scenario.ApplyAmbiguousLost: in(0.2, 0.24), scenario.ApplySlow: in(0.19, 0.29),
		scenario.ApplyPartialRefuse: in(0.089, 0.16), scenario.LeaderLoseMidBatch: in(0.15, 0.25),
		scenario.LeaderFlap: in(0.19, 0.21), scenario.LeaderTwo: in(0.069, 0.12), scenario.LeaderPaused: in(0.22, 0.31),
		scenario.WatchDelay: in(0.21, 0.3), scenario.WatchCoalesce: in(0.21, 0.27), scenario.WatchSpurious: in(0.21, 0.3),
		scenario.ViewStale: in(0.21, 0.29), scenario.ClientSlowStop: in(0.16, 0.22),
		scenario.ClientNeverStop: in(0.17, 0.25), scenario.ClientFailNew: in(0.13, 0.22),
		scenario.ClientMute: in(0.13, 0.23), scenario.SchedSlow: in(0.23, 0.31), scenario.SchedLateAnswer: in(0.1, 0.1), scenario.SchedFailEval: in(0.095, 0.17),
		scenario.SchedUnplaceable: in(0.1, rare), scenario.NodeCrash: in(0.31, 0.33),
		scenario.NodeDisconnect: in(0.32, 0.32), scenario.NodeReturn: in(0.024, rare), scenario.APIDup: in(0.036, 0.046),
		scenario.APITimeout: in(0.034, 0.046), scenario.DrainUpdate: in(0.045, 0.098),
		scenario.DrainCancel: in(0.043, 0.09), scenario.DrainAgain: in(0.052, 0.071), scenario.DrainPause: in(0.038, 0.04), scenario.PauseAll: in(0.035, 0.04), scenario.JobEdit: in(0.043, 0.087),
		scenario.JobScale: in(0.043, 0.073), scenario.JobPurge: in(0.043, 0.1), scenario.ClockForward: in(0.13, 0.17),
		scenario.ClockBack: in(0.13, 0.15), scenario.ClockSkew: in(0.13, 0.15), scenario.StoreRestore: in(0.04, 0.15),
		scenario.ClientCrash: small(0.02), scenario.DriverCrash: small(0.02), scenario.DriverHang: small(0.02), scenario.DriverLie: small(0.02),
		scenario.ShimKill: small(0.02), scenario.NodeReboot: small(0.02), scenario.NodeFreeze: small(0.02), scenario.DiskFull: small(0.02),
		scenario.RecordLose: small(0.02), scenario.DiskWipe: small(0.02), scenario.DeviceCrash: small(0.007), scenario.DeviceHang: small(0.007), scenario.DeviceFail: small(0.0038),
		scenario.DeviceSick: small(0.015), scenario.DeviceVanish: small(0.018), scenario.DeviceRename: small(0.017), scenario.DeviceMute: small(0.016),
		scenario.StorageFail: small(0.0028), scenario.StorageSlow: small(0.0046), scenario.StorageHang: small(0.0024),
		scenario.StorageCrash: small(0.0029), scenario.ControllerHang: small(0.0024), scenario.ControllerMute: small(0.0028), scenario.MountBusy: small(0.0037), scenario.ClaimLose: small(0.0037),
		scenario.DataCut: small(0.0025), scenario.DataSlow: small(0.003), scenario.DataTwice: small(0.004),
	}
	var rates []Rate
	for _, f := range scenario.Faults() {
		rates = append(rates, Rate{faultEvent(f.Name), "the fault strikes", least[f.Name]})
	}
	return rates
}
