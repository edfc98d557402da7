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

// Rates are the rates that swarms are held to, some two thirds of what seeds 1 to
// 10,000 have shown, and 1 to 1,000 of the medium ones. Of large ones too few are
// played to say more than that what is common comes.
func Rates() []Rate {
	rates := []Rate{
		{EntrySurvives, "an entry of unknown outcome is applied between an election and the barrier", each(0.05)},
		{EntryLate, "an entry is applied after its drainer was told that nobody knows", each(0.04)},
		{EntryRejected, "an entry is rejected", each(0.04)},
		{EntryNotTaken, "an entry is not taken", each(0.05)},
		{EntryAbreast, "an entry is proposed while another is in flight", each(0.12)},
		{TermBlind, "a term ends before its drainer has looked at the state", each(0.10)},
		{DeposedSteps, "a drainer steps that does not know that its term is over", each(0.06)},
		{DeposedProposes, "a drainer proposes that does not know that its term is over", each(0.01)},
		{RestoreInDrain, "a snapshot is restored while nodes drain", each(0.12)},
		{MarksRefused, "a mark is refused: a group has changed between plan and apply", each(0.15)},
		{MarksPartlyRefused, "marks are refused in part", each(0.04)},
		{MarksOfCancelled, "a drain is cancelled with marks in flight", each(0.03)},
		{MarksOfRedrained, "a drain is cancelled and another begins with marks in flight", each(0.02)},
		{MarksOfOldRevision, "a strategy is changed with marks in flight", each(0.02)},
		{MarksOfLate, "what is marked has landed on its node while it drained", each(0.08)},
		{MarksOfManyNodes, "an entry marks some of a group on several nodes", each(0.20)},
		{Reevaluated, "a marked allocation needs another evaluation", each(0.10)},
		{EndRefused, "a completion is refused", each(0.08)},
		{EndOfRedrained, "a drain is cancelled and another begins with its completion in flight", each(0.015)},
		{EndOfOldRevision, "a strategy is changed with the drain's completion in flight", each(0.02)},
		{EndTooEarly, "an allocation lands with the completion in flight", each(0.03)},
		{EndOfMany, "several drains end in one entry", each(0.10)},
		{EndLeavesRunning, "a drain ends and leaves something running", each(0.12)},
		{StageAcrossTerms, "a stage ends in a later term than it began in", each(0.30)},
		{DeadlineNoLeader, "a deadline passes while nobody leads", each(0.03)},
		{DeadlineAway, "a deadline takes what is out of touch", each(0.012)},
		{CancelWithdraws, "a cancel takes marks back", each(0.05)},
		{CancelTooLate, "a cancel comes when what was marked is stopping", each(0.10)},
		{Repeated, "a request comes again with its key", each(0.20)},
		{RepeatedAfterEnd, "a request comes again when its drain is over", each(0.08)},
		{PurgedRunning, "a job is purged that runs on a draining node", each(0.10)},
		{ManyDrains, "three nodes drain at once", each(0.35)},
		{PlanRefused, "a plan is refused in part", each(0.30)},
		{PlanBlocked, "something can be placed nowhere", each(0.30)},
	}
	rates = append(rates, classRates()...)
	rates = append(rates, outcomeRates()...)
	rates = append(rates, reasonRates()...)
	return append(rates, faultRates()...)
}

// each is the rate of small and medium runs.
func each(share float64) [sizeCount]float64 { return [sizeCount]float64{Small: share, Medium: share} }

func classRates() []Rate {
	least := [cluster.MarkClassCount]float64{
		cluster.MarkPaced: 0.6, cluster.MarkFree: 0.15, cluster.MarkCanary: 0.10, cluster.MarkGone: 0.05,
		cluster.MarkStage: 0.30, cluster.MarkDeadline: 0.35, cluster.MarkForced: 0.10, cluster.MarkProceed: 0.05,
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
		{cluster.OutcomeComplete, 0.5}, {cluster.OutcomeDeadlineReached, 0.35}, {cluster.OutcomeForced, 0.10},
		{cluster.OutcomeCancelled, 0.35}, {cluster.OutcomeNodeGone, 0.12},
	} {
		rates = append(rates, Rate{outcomeEvent(o.is), "a drain's outcome is " + string(o.is), each(o.least)})
	}
	return rates
}

func reasonRates() []Rate {
	var rates []Rate
	for r := range drainer.ReasonCount {
		rates = append(rates, Rate{reasonEvent(r), "an allocation is left for the reason " + r.String(), each(0.15)})
	}
	return rates
}

func faultRates() []Rate {
	var rates []Rate
	for _, f := range scenario.Faults() {
		rates = append(rates, Rate{faultEvent(f.Name), "the fault strikes", each(0.08)})
	}
	return rates
}
