package invariant

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G2 cause: an entry marks only allocations on a node that drains at apply. No item of a
// cancelled or replaced drain is applied. A mark of class deadline, forced or stage, and an
// end, is applied only if the drain still has the revision of the plan.

// checkCause judges whether the drain of a mark allows it.
func checkCause(a *alloc, mark rules.Mark) verdict {
	switch {
	case a == nil:
		return fails(WrongClass, "the allocation does not exist")
	case a.group.key != mark.Group || a.node.id != mark.Node:
		return fails(WrongClass, fmt.Sprintf("the allocation belongs to %s on %s", a.group.key, a.node.id))
	case !a.live():
		return fails(WrongClass, "the allocation has ended")
	case a.leaving():
		return fails(WrongClass, "the allocation was already asked to leave")
	}
	if v := checkDrain(a.node, mark.Drain); !v.allowed {
		return v
	}
	d := a.node.drain()
	bound := mark.Class == cluster.MarkDeadline || mark.Class == cluster.MarkForced || mark.Class == cluster.MarkStage
	switch {
	case bound && d.Revision != mark.Revision:
		return fails(StaleRevision, fmt.Sprintf("the drain is at revision %d, the plan at %d", d.Revision, mark.Revision))
	case !a.hasToLeave():
		return fails(MarkedExcluded, "the request excludes it")
	}
	return allowed()
}

// checkDrain judges whether the drain runs on the node.
func checkDrain(n *node, id cluster.DrainID) verdict {
	switch d := n.drain(); {
	case d == nil:
		return fails(NotDraining, "the node does not drain")
	case d.ID != id:
		return fails(NotDraining, fmt.Sprintf("the node is in drain %s", d.ID))
	}
	return allowed()
}

// causeJudge judges G2.
type causeJudge struct{ *facts }

// judgePlan judges the changes of a scheduler's plan to marked allocations.
func (j *causeJudge) judgePlan(e *entry, m *shims.ApplyPlan) {
	for _, s := range m.Stops {
		c := e.change(s.Alloc)
		if !s.Migrate || c == nil || c.before == nil || c.after == nil || opinion.Stopping(c.before) || !opinion.Stopping(c.after) {
			continue
		}
		if !c.before.DesiredTransition.Migrate {
			j.find(StoppedWithoutMark, Violation{Node: c.after.NodeID, Alloc: c.after.ID, Group: groupOf(c.after)},
				"a plan stopped it to migrate it, but it has no mark")
		}
	}
	for _, c := range e.allocs {
		if c.before != nil || c.after == nil {
			continue
		}
		if p := e.change(c.after.PreviousAllocation); p != nil && p.after != nil && stoppedForGood(p.before, p.after) {
			j.find(PlacedAgain, Violation{Node: p.after.NodeID, Alloc: p.after.ID, Group: groupOf(p.after)},
				"a deadline stopped it, but %s replaces it on %s", c.after.ID, c.after.NodeID)
		}
	}
}

// stoppedForGood reports whether batch work was stopped after a deadline had marked it. before and
// after are its rows around the plan that replaces it; before may be nil. Work that had ended by
// itself before its stop does not count: the scheduler may place it again. How the work ends after
// its stop does not matter.
func stoppedForGood(before, after *cluster.Allocation) bool {
	switch {
	case !after.DesiredTransition.MigrateDisablePlacement || !opinion.Stopping(after):
		return false
	case before != nil && !opinion.Stopping(before):
		return opinion.Live(before)
	}
	return after.DesiredDescription != "alloc was rescheduled because it failed"
}
