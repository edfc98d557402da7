package invariant

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// ruling is what the contract says of an allocation on a draining node that
// has no mark: under which class it could be marked, room and slots
// aside, or, with [cluster.MarkNone], why it cannot.
type ruling struct {
	class cluster.MarkClass
	hold  rules.Reason
}

func leavesAs(c cluster.MarkClass) ruling { return ruling{class: c} }
func heldFor(r rules.Reason) ruling       { return ruling{hold: r} }

// rule says what the contract says of the allocation, whose node drains.
func (m *snapshot) rule(a *alloc) ruling {
	d := a.node.drain()
	passed := opinion.Passed(d, m.at)
	switch {
	case !opinion.HasToLeave(a.turn, d):
		return heldFor(rules.ReasonLeftByRequest)
	case a.turn == opinion.Consumer && d.Strategy.Deadline < 0:
		return leavesAs(cluster.MarkForced)
	case a.turn == opinion.Consumer && passed:
		return leavesAs(cluster.MarkDeadline)
	case !passed && !a.inTouch(): // past it those out of touch are taken, too
		return heldFor(rules.ReasonDisconnected)
	case a.turn == opinion.Consumer:
		return m.ruleConsumer(a)
	case m.waitsFor(a.node, a.turn) != nil:
		return heldFor(rules.ReasonWaitingForStage)
	case passed || a.turn == opinion.System || !a.service():
		return leavesAs(cluster.MarkStage)
	}
	return m.ruleService(a) // a storage plugin that keeps its group's pace
}

// ruleConsumer rules on a consumer before the deadline.
func (m *snapshot) ruleConsumer(a *alloc) ruling {
	if m.exists(a.group) && !a.service() {
		return heldFor(rules.ReasonBatchRunning)
	}
	return m.ruleService(a)
}

// ruleService rules on an allocation before the deadline, in its turn, that
// leaves at the pace of its group as long as there is one.
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

// withNode reports whether marks of the class are made for a node as a whole
// rather than at the pace of a group.
func withNode(c cluster.MarkClass) bool {
	return c == cluster.MarkStage || c == cluster.MarkDeadline || c == cluster.MarkForced
}
