package swarm

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Rate is in how many runs an event has to happen.
type Rate struct {
	Event Event
	// What says what it is, in words.
	What string
	// Least is in which share of the runs of each size it happens at least.
	Least [sizeCount]float64
}

// Rates are the rates that swarms are held to: some seven tenths at most of what the small
// seeds 1 to 2,000 had shown when they were set, and no more than what the medium ones 1
// to 200 had. Of large ones few are played: see [ofLarge].
func Rates() []Rate {
	rates := []Rate{
		{EntrySurvives, "an entry of unknown outcome is applied between an election and the barrier", each(0.1)},
		{EntryLate, "an entry is applied after its drainer was told that nobody knows", each(0.047)},
		{EntryRejected, "an entry is rejected", each(0.054)},
		{EntryNotTaken, "an entry is not taken", each(0.065)},
		{EntryAbreast, "an entry is proposed while another is in flight", each(0.12)},
		{TermBlind, "a term ends before its drainer has looked at the state", each(0.13)},
		{TermBehind, "a drainer first sees an older state than others have", each(0.008)},
		{DeposedSteps, "a drainer steps that does not know that its term is over", each(0.025)},
		{DeposedProposes, "a drainer proposes that does not know that its term is over", each(0.009)},
		{RestoreInDrain, "a snapshot is restored while nodes drain", each(0.18)},
		{ClockSkewed, "a term begins by a clock that is wrong by seconds", each(0.26)},
		{ClockForward, "a clock is set forward", each(0.25)},
		{ClockBack, "a clock is set back", each(0.24)},
		{TermForgets, "a drainer forgets all while nodes drain", each(0.23)},
		{LimitEdited, "a job gets another limit while nodes drain", each(0.11)},
		{JobScaled, "a job gets another count while nodes drain", each(0.16)},
		{GroupsEdited, "a group is removed or renamed while nodes drain", each(0.13)},
		{NodeReturned, "a lost node returns while nodes drain", each(0.28)},
		{MarksRefused, "a mark is refused: a group has changed between plan and apply", each(0.13)},
		{MarksPartlyRefused, "marks are refused in part", each(0.032)},
		{MarksOfCancelled, "a drain is cancelled with marks in flight", each(0.025)},
		{MarksOfRedrained, "a drain is cancelled and another begins with marks in flight", each(0.02)},
		{MarksOfOldRevision, "a strategy is changed with marks in flight", each(0.025)},
		{MarksOfLate, "what is marked has landed on its node while it drained", each(0.071)},
		{MarksOfManyNodes, "an entry marks some of a group on several nodes", each(0.11)},
		{Reevaluated, "a marked allocation needs another evaluation", each(0.11)},
		{EndRefused, "a completion is refused", each(0.095)},
		{EndOfRedrained, "a drain is cancelled and another begins with its completion in flight", each(0.012)},
		{EndOfOldRevision, "a strategy is changed with the drain's completion in flight", each(0.021)},
		{EndTooEarly, "an allocation lands with the completion in flight", each(0.043)},
		{EndOfMany, "several drains end in one entry", each(0.075)},
		{EndLeavesRunning, "a drain ends and leaves something running", each(0.19)},
		{StageAcrossTerms, "a stage ends in a later term than it began in", each(0.29)},
		{DeadlineNoLeader, "a deadline passes while nobody leads", each(0.028)},
		{DeadlineAway, "a deadline takes what is out of touch", each(0.009)},
		{CancelWithdraws, "a cancel takes marks back", each(0.052)},
		{CancelTooLate, "a cancel comes when what was marked is stopping", each(0.13)},
		{Repeated, "a request comes again with its key", each(0.25)},
		{RepeatedAfterEnd, "a request comes again when its drain is over", each(0.065)},
		{PurgedRunning, "a job is purged that runs on a draining node", each(0.12)},
		{ManyDrains, "three nodes drain at once", each(0.12)},
		{PlanRefused, "a plan is refused in part", each(0.2)},
		{PlanBlocked, "something can be placed nowhere", each(0.29)},
	}
	rates = append(rates, classRates()...)
	rates = append(rates, outcomeRates()...)
	rates = append(rates, reasonRates()...)
	rates = append(rates, faultRates()...)
	large := ofLarge()
	for i := range rates {
		rates[i].Least[Large] = large[rates[i].Event]
	}
	return rates
}

// ofLarge are the rates of large runs: what all of the seeds 1 to 256 had shown when they
// were set is shown by every run, since with so much going on at once only a generator
// that is broken leaves any of it out; of what more than half had shown, some seven tenths
// of that.
func ofLarge() map[Event]float64 {
	return map[Event]float64{
		ManyDrains: 1, MarksOfManyNodes: 1, classEvent(cluster.MarkPaced): 1,
		reasonEvent(drainer.ReasonWritePending): 1, reasonEvent(drainer.ReasonStopping): 1,
		reasonEvent(drainer.ReasonWaitingForScheduler): 1, reasonEvent(drainer.ReasonWaitingForRoom): 1,

		classEvent(cluster.MarkDeadline): 0.7, outcomeEvent(cluster.OutcomeDeadlineReached): 0.7, EndOfMany: 0.65,
		NodeReturned: 0.65, outcomeEvent(cluster.OutcomeComplete): 0.6, reasonEvent(drainer.ReasonBelowBudget): 0.6,
		EntryAbreast: 0.6, StageAcrossTerms: 0.55, outcomeEvent(cluster.OutcomeCancelled): 0.55, PlanRefused: 0.5,
		reasonEvent(drainer.ReasonWaitingForHealth): 0.45, reasonEvent(drainer.ReasonBatchRunning): 0.45,
		GroupsEdited: 0.4, JobScaled: 0.4, Repeated: 0.4, LimitEdited: 0.4, reasonEvent(drainer.ReasonWaitingForStage): 0.4,
		reasonEvent(drainer.ReasonNoPacedMoves): 0.4, classEvent(cluster.MarkFree): 0.4, classEvent(cluster.MarkStage): 0.35,
		classEvent(cluster.MarkForced): 0.35, MarksRefused: 0.35,
	}
}

// each is the rate of small and medium runs.
func each(share float64) [sizeCount]float64 { return [sizeCount]float64{Small: share, Medium: share} }

func classRates() []Rate {
	least := [cluster.MarkClassCount]float64{
		cluster.MarkPaced: 0.50, cluster.MarkFree: 0.11, cluster.MarkCanary: 0.086, cluster.MarkGone: 0.032,
		cluster.MarkStage: 0.32, cluster.MarkDeadline: 0.28, cluster.MarkForced: 0.088, cluster.MarkProceed: 0.031,
	}
	var rates []Rate
	for c := cluster.MarkPaced; c < cluster.MarkClassCount; c++ {
		rates = append(rates, Rate{classEvent(c), "an allocation is marked " + c.String(), each(least[c])})
	}
	return rates
}

func outcomeRates() []Rate {
	var rates []Rate
	for _, o := range []struct {
		is    cluster.Outcome
		least float64
	}{
		{cluster.OutcomeComplete, 0.52}, {cluster.OutcomeDeadlineReached, 0.3}, {cluster.OutcomeForced, 0.078},
		{cluster.OutcomeCancelled, 0.38}, {cluster.OutcomeNodeGone, 0.062},
	} {
		rates = append(rates, Rate{outcomeEvent(o.is), "a drain's outcome is " + string(o.is), each(o.least)})
	}
	return rates
}

func reasonRates() []Rate {
	least := [drainer.ReasonCount]float64{
		drainer.ReasonWritePending: 0.66, drainer.ReasonStopping: 0.66, drainer.ReasonWaitingForScheduler: 0.64,
		drainer.ReasonWaitingForStage: 0.42, drainer.ReasonWaitingForRoom: 0.4, drainer.ReasonBatchRunning: 0.36,
		drainer.ReasonWaitingForHealth: 0.19, drainer.ReasonDisconnected: 0.16, drainer.ReasonLeftByRequest: 0.14,
		drainer.ReasonBelowBudget: 0.095, drainer.ReasonWaitingForReplacement: 0.092, drainer.ReasonNoPacedMoves: 0.071,
	}
	var rates []Rate
	for r := range drainer.ReasonCount {
		rates = append(rates, Rate{reasonEvent(r), "an allocation is left for the reason " + r.String(), each(least[r])})
	}
	return rates
}

// faultRates: each has a rate of its own. Held to what the rare ones reach, the frequent
// ones could hardly fail.
func faultRates() []Rate {
	least := map[scenario.FaultName]float64{
		scenario.ApplyReject: 0.21, scenario.ApplyFull: 0.21, scenario.ApplyAmbiguousApplied: 0.21,
		scenario.ApplyAmbiguousLate: 0.2, scenario.ApplyAmbiguousLost: 0.2, scenario.ApplySlow: 0.19, scenario.ApplyPartialRefuse: 0.089,
		scenario.LeaderLoseMidBatch: 0.15, scenario.LeaderFlap: 0.19, scenario.LeaderTwo: 0.069, scenario.LeaderPaused: 0.22,
		scenario.WatchDelay: 0.21, scenario.WatchCoalesce: 0.21, scenario.WatchSpurious: 0.21, scenario.ViewStale: 0.21,
		scenario.ClientSlowStop: 0.16, scenario.ClientNeverStop: 0.17, scenario.ClientFailNew: 0.13, scenario.ClientMute: 0.13,
		scenario.SchedSlow: 0.23, scenario.SchedFailEval: 0.095, scenario.SchedUnplaceable: 0.1,
		scenario.NodeCrash: 0.31, scenario.NodeDisconnect: 0.32, scenario.NodeReturn: 0.024,
		scenario.APIDup: 0.036, scenario.APITimeout: 0.034,
		scenario.DrainUpdate: 0.045, scenario.DrainCancel: 0.043, scenario.DrainAgain: 0.052,
		scenario.JobEdit: 0.043, scenario.JobScale: 0.043, scenario.JobPurge: 0.043,
		scenario.ClockForward: 0.13, scenario.ClockBack: 0.13, scenario.ClockSkew: 0.13, scenario.StoreRestore: 0.04,
	}
	var rates []Rate
	for _, f := range scenario.Faults() {
		rates = append(rates, Rate{faultEvent(f.Name), "the fault strikes", each(least[f.Name])})
	}
	return rates
}
