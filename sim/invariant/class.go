package invariant

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// ruling says under which class the contract allows a mark on an allocation of a draining
// node, apart from room and slots. With [cluster.MarkNone] it says why no mark is allowed.
type ruling struct {
	class cluster.MarkClass
	hold  rules.Reason
}

func leavesAs(c cluster.MarkClass) ruling { return ruling{class: c} }
func heldFor(r rules.Reason) ruling       { return ruling{hold: r} }

// rule applies the contract to an allocation on a draining node.
func (m *snapshot) rule(a *alloc) ruling {
	d := a.node.drain()
	passed := opinion.Passed(d, m.at)
	switch {
	case !a.hasToLeave():
		return heldFor(rules.ReasonLeftByRequest)
	case a.stage == opinion.Consumer && d.Strategy.Deadline < 0:
		return leavesAs(cluster.MarkForced)
	case a.stage == opinion.Consumer && passed:
		return leavesAs(cluster.MarkDeadline)
	case !passed && !a.inTouch(): // the deadline also takes allocations out of touch
		return heldFor(rules.ReasonDisconnected)
	case a.stage == opinion.Consumer:
		return m.ruleConsumer(a)
	case m.waitsFor(a.node, a.stage) != nil:
		return heldFor(rules.ReasonWaitingForStage)
	case passed || a.stage == opinion.System || !a.service():
		return leavesAs(cluster.MarkStage)
	}
	return m.ruleService(a) // a storage plugin of a service keeps its group's pace
}

// ruleConsumer applies the contract to a consumer before the deadline.
func (m *snapshot) ruleConsumer(a *alloc) ruling {
	if m.exists(a.group) && !a.service() {
		return heldFor(rules.ReasonBatchRunning)
	}
	return m.ruleService(a)
}

// ruleService applies the contract to an allocation before the deadline whose turn has come.
// The allocation leaves at the pace of its group, if the group exists.
func (m *snapshot) ruleService(a *alloc) ruling {
	pace, exists := opinion.PaceOf(a.group.job.row, a.group.key.Name)
	healthy, given := opinion.Verdict(a.row)
	switch {
	case !exists:
		return leavesAs(cluster.MarkGone)
	case opinion.Canary(a.row):
		return leavesAs(cluster.MarkCanary)
	case a.healthy() && pace.MaxParallel == 0:
		return heldFor(rules.ReasonNoPacedMoves)
	case a.healthy():
		return leavesAs(cluster.MarkPaced)
	case given && !healthy, !m.at.Before(pace.Due(a.row, m.policy.HealthGrace)):
		return leavesAs(cluster.MarkFree)
	}
	return heldFor(rules.ReasonWaitingForHealth)
}

// exists reports whether the group is in the current version of its job.
func (m *snapshot) exists(g *group) bool {
	_, exists := opinion.PaceOf(g.job.row, g.key.Name)
	return exists
}

// ofWholeNode reports whether marks of the class ignore the pace of the group.
func ofWholeNode(c cluster.MarkClass) bool {
	return c == cluster.MarkStage || c == cluster.MarkDeadline || c == cluster.MarkForced
}
