package rules

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// group is one group as a snapshot shows it. It is read-only; a [budget] counts marks. Plan and
// re-check both decide with it.
type group struct {
	planner *Planner
	key     cluster.GroupKey
	// job is the current version, or nil if the job is gone.
	job  *cluster.Job
	pace cluster.Pace
	// exists means that the job and the group exist in the current version.
	exists bool
	// evals are the open evaluations of the job; nil until a decision needs them.
	evals []*cluster.Evaluation
}

func (s *Planner) group(key cluster.GroupKey) *group {
	g := &group{planner: s, key: key, job: s.view.Job(key.Job)}
	g.pace, g.exists = cluster.PaceOf(g.job, key.Name)
	return g
}

// ruling is the decision about one allocation that is not leaving a draining node: the class that
// its mark would have, or, with [cluster.MarkNone], the reason why it cannot be marked. It does not
// consider room and slots.
type ruling struct {
	class cluster.MarkClass
	hold  Reason
	// surge means that the allocation needs a replacement beside it before the mark, and replaced that it has a
	// healthy one. Both are only set with [cluster.MarkPaced].
	surge, replaced bool
}

// judge returns the ruling on an allocation. The node is the allocation's own and drains.
func (g *group) judge(a *cluster.Allocation, node *cluster.Node) ruling {
	stage := a.Stage()
	switch {
	case leavesWithNode(g.planner, a, node):
		return g.planner.judgeWithNode(a, node)
	case !g.planner.leaves(a, node):
		return ruling{hold: ReasonLeftByRequest}
	case !canReport(a, node):
		return ruling{hold: ReasonDisconnected}
	case !g.exists && (stage == cluster.StageConsumers || a.JobType() == cluster.JobService && g.planner.turnHasCome(node, stage)):
		return ruling{class: cluster.MarkGone}
	case paused(g.planner, node):
		return ruling{hold: ReasonPaused}
	case a.JobType() != cluster.JobService:
		return ruling{hold: ReasonBatchRunning}
	case !g.planner.turnHasCome(node, stage):
		return ruling{hold: ReasonWaitingForStage}
	case a.Canary():
		return ruling{class: cluster.MarkCanary}
	}
	return g.judgeHealth(a, node)
}

// judgeHealth judges a service allocation whose turn has come.
func (g *group) judgeHealth(a *cluster.Allocation, node *cluster.Node) ruling {
	switch {
	case a.Healthy(node):
		return g.judgeHealthy(a, node)
	case a.Standby && cluster.TakesOver(a, node):
		return ruling{hold: ReasonWaitingForSurge} // the allocation that it replaces leaves first
	case a.HasVerdict() && !a.JudgedHealthy() && g.planner.now.Before(a.HeldUntil(g.pace)):
		return ruling{hold: ReasonBelowBudget} // it was healthy and may recover
	case a.HasVerdict() && !a.JudgedHealthy():
		return ruling{class: cluster.MarkFree}
	case !g.planner.now.Before(g.dueAt(a)):
		return ruling{class: cluster.MarkFree}
	}
	return ruling{hold: ReasonWaitingForHealth}
}

// judgeWithNode judges an allocation that leaves with its whole stage, or because of the deadline
// or force.
func (s *Planner) judgeWithNode(a *cluster.Allocation, node *cluster.Node) ruling {
	switch {
	case !s.leaves(a, node):
		return ruling{hold: ReasonLeftByRequest}
	case a.Stage() == cluster.StageConsumers && node.Drain.Strategy.Forced():
		return ruling{class: cluster.MarkForced}
	case a.Stage() == cluster.StageConsumers:
		return ruling{class: cluster.MarkDeadline}
	case !passed(s, node) && !canReport(a, node):
		return ruling{hold: ReasonDisconnected}
	case paused(s, node):
		return ruling{hold: ReasonPaused}
	case !s.turnHasCome(node, a.Stage()):
		return ruling{hold: ReasonWaitingForStage}
	}
	return ruling{class: cluster.MarkStage}
}

// leavesWithNode reports whether the allocation leaves with its whole stage, not at its group's
// pace. System allocations and storage plugins do, except plugins of type service. After the
// deadline all allocations do.
func leavesWithNode(s *Planner, a *cluster.Allocation, n *cluster.Node) bool {
	switch {
	case passed(s, n):
		return true
	case a.Stage() == cluster.StagePlugins:
		return a.JobType() != cluster.JobService
	}
	return a.Stage() == cluster.StageSystem
}

// canReport reports whether the allocation's client can report what happens to it.
func canReport(a *cluster.Allocation, n *cluster.Node) bool {
	return a.ClientStatus != cluster.ClientUnknown && n.Reachable()
}

// dueAt is when a missing health verdict of the allocation becomes overdue.
func (g *group) dueAt(a *cluster.Allocation) time.Time {
	return a.DueAt(g.pace, g.planner.policy.HealthGrace)
}

// overdueAt is dueAt, or zero while the allocation waits for its data: the end of this wait is a write.
func (g *group) overdueAt(a *cluster.Allocation) time.Time {
	if a.DataIn.Pending() {
		return time.Time{}
	}
	return g.dueAt(a)
}

// lacksVerdict reports whether the allocation has no verdict on its health and is not
// overdue.
func (g *group) lacksVerdict(a *cluster.Allocation) bool {
	return a.JobType() == cluster.JobService && a.ClientStatus != cluster.ClientUnknown &&
		!a.HasVerdict() && !a.ClientTerminal() && g.planner.now.Before(g.dueAt(a))
}

// awaitsVerdict reports whether a health verdict on the allocation can still come in time.
// Allocations of a removed group leave without one.
func (g *group) awaitsVerdict(a *cluster.Allocation) bool {
	return g.exists && !a.Leaving() && g.lacksVerdict(a)
}

// isUnderway reports whether the group's numbers may still change because of the allocation: the
// allocation is leaving, or its health verdict is missing and can still come.
func (g *group) isUnderway(a *cluster.Allocation, node *cluster.Node) bool {
	return a.Leaving() || (!a.Canary() && node.Reachable() && g.awaitsVerdict(a))
}

// runsOnMarked reports whether the allocation is marked and not stopped, or needs a replacement beside it, on a
// draining node on which a scheduler could stop it.
func runsOnMarked(a *cluster.Allocation, node *cluster.Node) bool {
	return (a.Marked() || unanswered(a, node)) && !a.ServerTerminal() && node.Draining() && canReport(a, node)
}

// anyChanging reports whether a changing allocation of the group satisfies the
// condition. It reads no more than necessary.
func (g *group) anyChanging(is func(*cluster.Allocation, *cluster.Node) bool) bool {
	for a := range g.planner.view.ChangingAllocs(g.key) {
		if a.Progress() > cluster.ProgressChanging {
			break
		}
		if !a.ClientTerminal() && is(a, g.planner.Node(a.NodeID)) {
			return true
		}
	}
	return false
}

// stuck reports whether a marked allocation still runs, or one has no replacement beside it, and no evaluation is open
// that would change that.
func (g *group) stuck() bool {
	return len(g.openEvals()) == 0 && g.anyChanging(runsOnMarked)
}

// openEvals are the job's evaluations that are pending or blocked.
func (g *group) openEvals() []*cluster.Evaluation {
	if g.evals == nil {
		g.evals = slices.AppendSeq([]*cluster.Evaluation{}, g.planner.view.OpenEvals(g.key.Job))
	}
	return g.evals
}

// blockedEval is the evaluation of the job that waits for capacity for this group, or nil.
func (g *group) blockedEval() *cluster.Evaluation {
	for _, e := range g.openEvals() {
		if e.Status == cluster.EvalBlocked && (e.Queued == nil || e.Queued[g.key.Name] > 0) {
			return e
		}
	}
	return nil
}

func hasOpenEval(v View, job cluster.JobKey) bool { return len(slices.Collect(v.OpenEvals(job))) > 0 }

func hasPendingEval(v View, job cluster.JobKey) bool {
	pending := func(e *cluster.Evaluation) bool { return e.Status == cluster.EvalPending }
	return slices.ContainsFunc(slices.Collect(v.OpenEvals(job)), pending)
}
