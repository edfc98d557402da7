package invariant

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// G2 cause: only allocations on a node that is draining at apply are marked;
// nothing planned for a cancelled or replaced drain is applied, and nothing of
// class deadline, forced or stage, and no end, planned against an older revision.

// checkCause judges whether a mark has its cause where it is applied.
func checkCause(a *alloc, mark rules.Mark) verdict {
	switch {
	case a == nil:
		return fails(ClassUntrue, "there is no such allocation")
	case a.group.key != mark.Group || a.node.id != mark.Node:
		return fails(ClassUntrue, fmt.Sprintf("the allocation is of %s on %s", a.group.key, a.node.id))
	case !a.live():
		return fails(ClassUntrue, "it has ended")
	case a.leaving():
		return fails(ClassUntrue, "it was asked to leave before")
	}
	if v := checkDrain(a.node, mark.Drain); !v.holds {
		return v
	}
	d := a.node.drain()
	bound := mark.Class == cluster.MarkDeadline || mark.Class == cluster.MarkForced || mark.Class == cluster.MarkStage
	switch {
	case bound && d.Revision != mark.Revision:
		return fails(StaleRevision, fmt.Sprintf("the drain is at revision %d, the plan at %d", d.Revision, mark.Revision))
	case !opinion.HasToLeave(a.turn, d):
		return fails(MarkedLeftBehind, "the request leaves it on the node")
	}
	return held()
}

// checkDrain judges whether the drain runs on the node.
func checkDrain(n *node, id cluster.DrainID) verdict {
	switch d := n.drain(); {
	case d == nil:
		return fails(NotDraining, "the node does not drain")
	case d.ID != id:
		return fails(NotDraining, fmt.Sprintf("the node is in drain %s", d.ID))
	}
	return held()
}

// causeJudge judges G2.
type causeJudge struct{ *facts }

// judgeRows judges what entries of any kind do to marks and drains.
func (j *Judge) judgeRows(e *entry) {
	for i := range e.allocs {
		j.causes.judgeMarkRow(e, e.allocs[i])
	}
	for i := range e.nodes {
		j.truth.judgeDrainRow(e, e.nodes[i])
	}
	for _, c := range e.records {
		j.truth.judgeRecordRow(c)
	}
}

// judgeMarkRow judges the change of an entry to the mark of an allocation.
func (j *causeJudge) judgeMarkRow(e *entry, c change[cluster.Allocation]) {
	if c.after == nil {
		return
	}
	var was cluster.DesiredTransition
	if c.before != nil {
		was = c.before.DesiredTransition
	}
	is := c.after.DesiredTransition
	about := Violation{Drain: is.Drain, Node: c.after.NodeID, Alloc: c.after.ID, Group: groupOf(c.after)}
	switch {
	case newlyMarked(c) && e.Type != shims.AllocUpdateDesiredTransitionType:
		j.find(MarkOutOfNowhere, about, "marked %s in an entry that makes no marks", is.Class)
	case !newlyMarked(c) && is.Migrate && (is.Drain != was.Drain || is.Class != was.Class || !is.MarkedAt.Equal(was.MarkedAt)):
		j.find(MarkOutOfNowhere, about, "the mark is another than before")
	case was.Migrate && !is.Migrate && was.Drain == "":
		j.find(OthersMarkTaken, about, "a mark that no drain made was withdrawn")
	case was.Migrate && !is.Migrate && !e.cancels(was.Drain):
		about.Drain = was.Drain
		j.find(MarkLost, about, "the mark of drain %s is gone, and the drain was not cancelled", was.Drain)
	}
}

// cancels reports whether the entry is the cancel of the drain.
func (e *entry) cancels(id cluster.DrainID) bool {
	m, ok := e.Message.(*shims.NodeUpdateDrain)
	if !ok || m.Spec != nil {
		return false
	}
	for _, c := range e.nodes {
		if c.before != nil && c.before.ID == m.Node && c.before.Drain != nil {
			return c.before.Drain.ID == id
		}
	}
	return false
}

// judgePlan judges the changes of a scheduler's plan to marked allocations.
func (j *causeJudge) judgePlan(e *entry, m *shims.ApplyPlan) {
	for _, s := range m.Stops {
		c := e.change(s.Alloc)
		if !s.Migrate || c == nil || c.before == nil || c.after == nil || opinion.Stopping(c.before) || !opinion.Stopping(c.after) {
			continue
		}
		if !c.before.DesiredTransition.Migrate {
			j.find(StoppedWithoutMark, Violation{Node: c.after.NodeID, Alloc: c.after.ID, Group: groupOf(c.after)},
				"stopped to be moved, and its mark was gone")
		}
	}
	for _, c := range e.allocs {
		if c.before != nil || c.after == nil {
			continue
		}
		if p := e.change(c.after.PreviousAllocation); p != nil && p.after != nil && stoppedForGood(p.after) {
			j.find(PlacedAgain, Violation{Node: p.after.NodeID, Alloc: p.after.ID, Group: groupOf(p.after)},
				"a deadline stopped it, and %s takes its place on %s", c.after.ID, c.after.NodeID)
		}
	}
}

// stoppedForGood reports whether a deadline has stopped batch work, and nothing
// else has ended it: what failed, or was lost, is placed again for that.
func stoppedForGood(a *cluster.Allocation) bool {
	ended := a.ClientStatus == "failed" || a.ClientStatus == "lost" || a.ClientStatus == "unknown"
	return a.DesiredTransition.MigrateDisablePlacement && opinion.Stopping(a) && !ended
}
