package drainer

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// groupPlan is what one group wants now.
type groupPlan struct {
	// marks are in allocation order.
	marks []Mark
	// waiting says that marked allocations run on, stuck that no evaluation is
	// open that would stop them.
	waiting, stuck bool
	// holds are the reasons why allocations that stay are not marked. It dates
	// those for which the state holds no time.
	holds [ReasonCount]bool
	// wakeAt is when a missing verdict becomes overdue, if that makes a difference, or
	// zero.
	wakeAt time.Time
	// onDraining are the group's live allocations on draining nodes, by id.
	onDraining []*cluster.Allocation
}

// progress is how far a mark had come when its group was planned again.
type progress uint8

const (
	notAsked progress = iota
	// wasAsked: it was wanted and is not answered.
	wasAsked
	// wasSent: it is in flight, and comes before all that is yet to be written. The
	// room it takes nobody else has.
	wasSent
)

// candidate is an allocation that could be marked.
type candidate struct {
	resident
	class     cluster.MarkClass
	progress  progress
	consumers int
}

// compare orders candidates: those whose marks have come furthest first, then those
// whose loss costs nothing, then by the node's deadline, by how little is left on the
// node, by node, by allocation.
func (c candidate) compare(o candidate) int {
	return cmp.Or(
		cmp.Compare(o.progress, c.progress),
		cmp.Compare(c.cost(), o.cost()),
		c.node.Drain.Strategy.CompareUrgency(&o.node.Drain.Strategy),
		cmp.Compare(c.consumers, o.consumers),
		cmp.Compare(c.node.ID, o.node.ID),
		cmp.Compare(c.ID, o.ID),
	)
}

func (c candidate) cost() int {
	if c.class == cluster.MarkPaced {
		return 1
	}
	return 0
}

// planGroup decides which allocations of a group are to be marked now. Before says how
// far their marks have come already; nil is none at all. Those that were wanted and still
// make sense are wanted again and take room, slots and order before all others, those in
// flight first.
//
// What leaves with its whole stage, or at the deadline, is not planned here but
// with its node. It takes room all the same.
func (m *moment) planGroup(key cluster.GroupKey, before func(cluster.AllocID) progress) groupPlan {
	return m.lookAt(key).plan(before)
}

// plan is planGroup of a group that has been counted. It counts what it marks.
func (g *group) plan(before func(cluster.AllocID) progress) groupPlan {
	plan := groupPlan{waiting: g.waiting, stuck: g.stuck(), wakeAt: g.verdictDue, onDraining: g.onDraining}
	candidates := make([]candidate, 0, len(g.staying))
	for _, a := range g.staying {
		could := g.judge(a.Allocation, a.node)
		if leavesWithNode(could.class) {
			g.release(a.Allocation, a.node) // its node wants it marked now
			continue
		}
		if could.class == cluster.MarkNone {
			plan.holds[could.hold] = true
			if could.hold == ReasonWaitingForHealth { // also one that is judged healthy but does not run
				plan.wakeAt = earliest(plan.wakeAt, a.DueAt(g.pace, g.policy.HealthGrace))
			}
			continue
		}
		c := candidate{resident: a, class: could.class}
		if before != nil {
			c.progress = before(a.ID)
		}
		candidates = append(candidates, c)
	}
	g.order(candidates)
	plan.choose(g, candidates)
	slices.SortFunc(plan.marks, func(a, b Mark) int { return cmp.Compare(a.Alloc, b.Alloc) }) // of one group
	if len(g.staying) == 0 {
		plan.wakeAt = time.Time{}
	}
	return plan
}

// leavesWithNode reports whether marks of the class are planned with their node.
func leavesWithNode(c cluster.MarkClass) bool {
	return c == cluster.MarkStage || c == cluster.MarkDeadline || c == cluster.MarkForced
}

// order puts the candidates in the order in which they are marked, if that makes a
// difference: a group that waits for room, as most do most of the time, and one that has
// room for all are planned for less.
func (g *group) order(candidates []candidate) {
	if len(candidates) == 0 {
		return // and nobody asks for room
	}
	takesNoRoom := func(c candidate) bool { return c.class != cluster.MarkPaced }
	none := g.room() <= 0 && g.policy.BelowBudget != Proceed
	all := g.room() >= len(candidates)
	if (none || all) && !slices.ContainsFunc(candidates, takesNoRoom) {
		return
	}
	for i, c := range candidates {
		candidates[i].consumers = g.consumers(c.node.ID)
	}
	slices.SortFunc(candidates, candidate.compare)
}

// choose marks the candidates that the group, as marked so far, lets go. A group
// below its budget gives one up only if there is nothing else to mark: a mark to
// proceed holds only where nothing is on its way, in whatever order the marks
// are judged.
func (p *groupPlan) choose(g *group, candidates []candidate) {
	left := candidates[:0] // of which no more is used than was looked at
	for _, c := range candidates {
		full := c.class == cluster.MarkPaced && g.room() <= 0
		if full || !p.mark(g, c, c.class) {
			left = append(left, c)
		}
	}
	for i, c := range left {
		if g.policy.BelowBudget != Proceed {
			break
		}
		if c.class == cluster.MarkPaced && p.mark(g, c, cluster.MarkProceed) {
			left = slices.Delete(left, i, i+1)
			break
		}
	}
	var short [cluster.MarkClassCount]bool
	for _, c := range left {
		short[c.class] = true
	}
	for class, is := range short {
		if is {
			p.holds[g.shortFor(cluster.MarkClass(class), 0)] = true
		}
	}
	if short[cluster.MarkFree] || short[cluster.MarkCanary] {
		p.wakeAt = earliest(p.wakeAt, g.slotDue)
	}
}

// mark marks the candidate under the class if the group lets it go, and reports
// whether it did.
func (p *groupPlan) mark(g *group, c candidate, class cluster.MarkClass) bool {
	if why := g.admitAs(ruling{class: c.class}, c.Allocation, c.node, class); why != "" {
		return false
	}
	if p.marks == nil {
		p.marks = make([]Mark, 0, min(len(g.staying), g.maxSlots())) // mostly as many leave at once
	}
	p.marks = append(p.marks, markOf(c.Allocation, c.node, class))
	return true
}

func markOf(a *cluster.Allocation, n *cluster.Node, class cluster.MarkClass) Mark {
	return Mark{Alloc: a.ID, Group: a.GroupKey(), Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: class}
}

// shortFor is why an allocation that could be marked under the class is held by
// the group's numbers: what could change them. The asked are how many marks of
// the group are wanted and not answered yet.
func (g *group) shortFor(class cluster.MarkClass, asked int) Reason {
	switch {
	case class == cluster.MarkFree || class == cluster.MarkCanary:
		return ReasonWaitingForRoom
	case g.blockedEval() != nil:
		return ReasonWaitingForReplacement
	case len(g.underway)+asked > 0:
		return ReasonWaitingForRoom
	}
	return ReasonBelowBudget
}

// blockedEval is the evaluation of the job that waits for capacity for this
// group, or nil.
func (g *group) blockedEval() *cluster.Evaluation {
	for _, e := range g.evals() {
		if e.Status == cluster.EvalBlocked && (e.Queued == nil || e.Queued[g.key.Name] > 0) {
			return e
		}
	}
	return nil
}

// nodePlan is what one node's drain wants now.
type nodePlan struct {
	// marks are what leaves with its stage, or by deadline or force.
	marks []Mark
	// completion is the end of the drain if it may end, or nil.
	completion *Completion
	// end is how far it is.
	end endState
}

// planNode decides what leaves a node together, stage by stage, and whether its
// drain may end.
func (m *moment) planNode(n *cluster.Node) nodePlan {
	end := m.judgeEnd(n)
	plan := nodePlan{end: end}
	if end.done {
		plan.completion = &Completion{Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision}
	}
	if end.stage == cluster.StageCount || !m.turnHasCome(n, end.stage) {
		return plan
	}
	if end.stage == cluster.StageConsumers && !n.Drain.Strategy.Passed(m.now) {
		return plan // each leaves at its group's pace
	}
	for a := range m.view.NodeAllocs(n.ID, end.stage, false) {
		if class := m.classWithNode(a, n); class != cluster.MarkNone {
			plan.marks = append(plan.marks, markOf(a, n, class))
		}
	}
	slices.SortFunc(plan.marks, Mark.compare)
	return plan
}

// classWithNode is the class under which the allocation leaves together with
// its stage, or [cluster.MarkNone] if it is not to leave so now.
func (m *moment) classWithNode(a *cluster.Allocation, n *cluster.Node) cluster.MarkClass {
	if !leavesAsWhole(a, n, m.now) {
		return cluster.MarkNone
	}
	g := group{moment: m, key: a.GroupKey()}
	return g.judgeStage(a, n).class
}

// leavesAsWhole reports whether the allocation leaves with its whole stage
// rather than at its group's pace: system allocations and storage plugins do,
// but for plugins of type service; and everything once the deadline has passed.
func leavesAsWhole(a *cluster.Allocation, n *cluster.Node, now time.Time) bool {
	switch {
	case n.Drain.Strategy.Passed(now):
		return true
	case a.Stage() == cluster.StagePlugins:
		return a.JobType() != cluster.JobService
	}
	return a.Stage() == cluster.StageSystem
}
