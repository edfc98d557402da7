package lint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

// writers are the functions of the product that write each value of an enum of the state, one for each.
func writers() map[string]string {
	return map[string]string{
		"NodeInitializing": "cluster.Node.Canonicalize",
		"NodeReady":        "server/agent.writer.Heartbeat",
		"NodeDown":         "scheduler.AwayStatus",
		"NodeDisconnected": "server/agent.heartbeats.due",

		"NodeEligible":   "drainer/lifecycle.CancelDrain",
		"NodeIneligible": "drainer/lifecycle.setDrain",

		"DesiredRun":  "scheduler.draft.place",
		"DesiredStop": "statestore.planWriter.stop",

		"ClientPending":  "scheduler.draft.place",
		"ClientRunning":  "client.allocRunner.updateStatus",
		"ClientComplete": "client.allocRunner.updateStatus",
		"ClientFailed":   "client.allocRunner.updateStatus",
		"ClientLost":     "statestore.planWriter.stop",
		"ClientUnknown":  "statestore.planWriter.stop",

		"EvalPending":   "scheduler.JobEval",
		"EvalBlocked":   "scheduler.draft.blocked",
		"EvalComplete":  "scheduler.draft.conclude",
		"EvalCancelled": "scheduler.draft.answerOthers",

		"TriggerJobRegister":   "server.Requests.RegisterJob",
		"TriggerJobDeregister": "server.Requests.StopJob",
		"TriggerNodeDrain":     "drainer.evalsFor",
		"TriggerNodeUpdate":    "shims.nodeEvals",
		"TriggerQueuedAllocs":  "scheduler.draft.blocked",
		"TriggerAllocFailure":  "scheduler.ReportEvals",
		"TriggerAllocStop":     "server.Requests.StopAlloc",

		"OutcomeComplete":        "cluster.Drain.CompletedOutcome",
		"OutcomeUnconfirmed":     "drainer/rules.Planner.endingOf",
		"OutcomeDeadlineReached": "cluster.Drain.CompletedOutcome",
		"OutcomeForced":          "cluster.Drain.CompletedOutcome",
		"OutcomeCancelled":       "drainer/lifecycle.CancelDrain",
		"OutcomeNodeGone":        "drainer/lifecycle.NodeGone",

		"DrainStatusDraining": "drainer/lifecycle.setDrain",
		"DrainStatusComplete": "drainer/lifecycle.EndDrain",
		"DrainStatusCanceled": "drainer/lifecycle.CancelDrain",

		"MarkCanary":   "drainer/rules.group.judge",
		"MarkDeadline": "drainer/rules.Planner.judgeWithNode",
		"MarkForced":   "drainer/rules.Planner.judgeWithNode",
		"MarkFree":     "drainer/rules.group.judgeHealth",
		"MarkGone":     "drainer/rules.group.judge",
		"MarkPaced":    "drainer/rules.group.judgeHealthy",
		"MarkProceed":  "drainer/rules.budget.admit",
		"MarkStage":    "drainer/rules.Planner.judgeWithNode",

		"ClaimUnpublishing":       "statestore.claimEdits.release",
		"ClaimNodeDetached":       "statestore.claimEdits.release",
		"ClaimControllerDetached": "statestore.claimEdits.change",

		"CauseNode":        "httpapi/wire.ClaimsRequest.Changes",
		"CauseAttached":    "cluster/volumes.Call.Changes",
		"CauseDetached":    "cluster/volumes.Call.Changes",
		"CauseUnreachable": "cluster/volumes.Expired",
	}
}

// unwritten are the values that no code of the product writes, with the reason.
func unwritten() map[string]string {
	return map[string]string{
		"DesiredEvict":     "schedulers of embedders preempt allocations, and the generator of drainertest draws it",
		"EvalFailed":       "schedulers of embedders give up evaluations",
		"OutcomeNone":      "the zero value: the drain runs",
		"MarkNone":         "the zero value: the allocation has no mark",
		"MarkClassCount":   "not a value, but their number",
		"ClaimTaken":       "the zero value: a new claim",
		"ClaimReadyToFree": "the state never contains it: the claim is deleted instead",
	}
}

// Bug: only the simulator wrote the status disconnected, so every test of it was about a state that no
// cluster had. Each value of the enums of the state is written by the product, or has a reason.
func TestProject_writtenValues(t *testing.T) {
	t.Parallel()
	m, err := project()
	must.NoError(t, err)
	enums := []string{
		"NodeStatus", "Eligibility", "DesiredStatus", "ClientStatus", "EvalStatus", "EvalTrigger", "Outcome", "DrainStatus", "MarkClass",
		"ClaimState", "ClaimCause",
	}
	values := lint.WrittenValues(m, module, module+"/cluster", enums, ofProduct)
	for name, in := range values { //lint:order each value by itself
		by, reason := writers()[name], unwritten()[name]
		switch {
		case (by == "") == (reason == ""):
			t.Errorf("cluster.%s needs a line in writers or in unwritten: it is used as a value in %v", name, in)
		case by != "" && !slices.Contains(in, by):
			t.Errorf("cluster.%s is not written by %s, but maybe by one of %v", name, by, in)
		}
	}
	for name := range writers() { //lint:order each value by itself
		_, is := values[name]
		must.True(t, is, must.Sprint("no enum has the value ", name))
	}
}

// ofProduct reports whether a package is part of what runs in a cluster.
func ofProduct(path string) bool {
	folder := strings.TrimPrefix(path, module+"/")
	return !slices.ContainsFunc([]string{
		"sim", "internal", "examples", "witness", "client/simclient", "drainer/drainertest", "drainer/internal/fixture", "cmd/nodedrain/demo",
	}, func(other string) bool { return folder == other || strings.HasPrefix(folder, other+"/") })
}
