package rules

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// GroupPlan is what one group needs at one time.
type GroupPlan struct {
	// Marks are in allocation order. Postponed are the marks that the caller postponed. They use no
	// room.
	Marks, Postponed []Mark
	// RunsOnMarked means that marked allocations still run. Stuck means that no evaluation is open
	// that would stop them.
	RunsOnMarked, Stuck bool
	// Holds are the reasons why allocations that stay are not marked.
	Holds [ReasonCount]bool
	// WakeAt is when a missing verdict becomes overdue, or an unhealthy allocation is no longer held,
	// so that the plan changes although the view does not. It may be zero.
	WakeAt time.Time
	// Nodes are the draining nodes of the group's live allocations, in order, once for
	// each allocation.
	Nodes []cluster.NodeID
	// Placed are the allocations that a scheduler placed on a draining node after its drain began,
	// which it must not do. Unowned are the running allocations on draining nodes whose mark has no
	// drain. Both are read-only, and nil if there are none.
	Placed, Unowned []*cluster.Allocation
}

// PlanGroup decides which allocations of a group are marked now. Allocations that leave with their
// whole stage, or at the deadline, are planned with their node ([Planner.PlanNode]), but they use
// room here too. Marks for which postpone returns true are postponed. A nil postpone postpones
// none.
func (s *Planner) PlanGroup(key cluster.GroupKey, postpone func(Mark) bool) GroupPlan {
	g := s.group(key)
	return g.plan(g.census(), g.budget(), nil, postpone)
}

// plan plans a group from its census, and counts the marks in the budget. Marks in flight come
// before all others. Either function may be nil.
func (g *group) plan(c *census, b *budget, inFlight func(cluster.AllocID) bool, postpone func(Mark) bool) GroupPlan {
	plan := GroupPlan{
		RunsOnMarked: c.runsOnMarked, Stuck: c.runsOnMarked && len(g.openEvals()) == 0,
		WakeAt: c.verdictDue, Nodes: c.onDraining, Placed: c.placed, Unowned: c.unowned,
	}
	candidates := make([]candidate, 0, len(c.staying))
	for _, a := range c.staying {
		could := g.judge(a.Allocation, a.node)
		switch {
		case PlannedWithNode(could.class):
			b.countLeaving(a.Allocation, a.node)
		case could.class == cluster.MarkNone:
			plan.Holds[could.hold] = true
			switch could.hold {
			case ReasonWaitingForHealth: // also one that was judged healthy but does not run
				plan.WakeAt = earliest(plan.WakeAt, g.overdueAt(a.Allocation))
			case ReasonBelowBudget:
				plan.WakeAt = earliest(plan.WakeAt, a.HeldUntil(g.pace))
			}
		case postpone != nil && postpone(markUnder(could, a, could.class)):
			plan.Postponed = append(plan.Postponed, markUnder(could, a, could.class))
		default:
			candidates = append(candidates, candidate{resident: a, ruling: could, rank: rank(could.class, inFlight != nil && inFlight(a.ID))})
		}
	}
	b.order(candidates)
	orderRequests(g, candidates)
	plan.choose(b, c, candidates)
	slices.SortFunc(plan.Marks, Mark.Compare)
	slices.SortFunc(plan.Postponed, Mark.Compare)
	if len(c.staying) == 0 {
		plan.WakeAt = time.Time{}
	}
	return plan
}

// PlannedWithNode reports whether marks of the class are planned with their node.
func PlannedWithNode(c cluster.MarkClass) bool {
	return c == cluster.MarkStage || c == cluster.MarkDeadline || c == cluster.MarkForced
}

// candidate is an allocation that could be marked.
type candidate struct {
	resident
	ruling
	// rank is zero for marks in flight, two for paced marks, which use room, and one for the
	// others.
	rank, consumers int
}

// compare orders candidates: by rank, then by the node's deadline, the consumers left on
// the node, node id and allocation id.
func (c candidate) compare(o candidate) int {
	return cmp.Or(
		cmp.Compare(c.rank, o.rank),
		c.node.Drain.Strategy.CompareUrgency(&o.node.Drain.Strategy),
		cmp.Compare(c.consumers, o.consumers),
		cmp.Compare(c.node.ID, o.node.ID),
		cmp.Compare(c.ID, o.ID),
	)
}

func rank(class cluster.MarkClass, inFlight bool) int {
	switch {
	case inFlight:
		return 0
	case class == cluster.MarkPaced:
		return 2
	}
	return 1
}

// order sorts the candidates in the order of marking, if the order matters. Most groups have no
// room, or room for all candidates, so that it does not: room is all that limits paced marks without a surge.
func (b *budget) order(candidates []candidate) {
	if len(candidates) == 0 {
		return
	}
	takesNoRoom := func(c candidate) bool { return !takesRoom(c.ruling) }
	none := b.room() <= 0 && b.group.planner.policy.BelowBudget != BelowBudgetProceed
	all := b.room() >= len(candidates)
	if (none || all) && !slices.ContainsFunc(candidates, takesNoRoom) {
		return
	}
	for i, c := range candidates {
		candidates[i].consumers = b.group.planner.view.Consumers(c.node.ID)
	}
	slices.SortFunc(candidates, candidate.compare)
}

// choose marks the candidates that the budget admits. A mark of class proceed is tried last: it is
// admitted only while nothing else of the group is marked or under way.
func (p *GroupPlan) choose(b *budget, c *census, candidates []candidate) {
	held := candidates[:0]
	for _, c := range candidates {
		full := takesRoom(c.ruling) && b.room() <= 0
		if full || !p.mark(b, c, c.class) {
			held = append(held, c)
		}
	}
	for i, c := range held {
		if b.group.planner.policy.BelowBudget != BelowBudgetProceed {
			break
		}
		if c.class == cluster.MarkPaced && p.mark(b, c, cluster.MarkProceed) {
			held = slices.Delete(held, i, i+1)
			break
		}
	}
	var classes [cluster.MarkClassCount]bool
	for _, c := range held {
		switch {
		case c.surge:
			p.Holds[ReasonWaitingForSurge] = true
		case c.replaced:
			p.Holds[ReasonWaitingForRoom] = true
		default:
			classes[c.class] = true
		}
	}
	for class, is := range classes {
		if is {
			p.Holds[b.group.shortage(cluster.MarkClass(class), b.marked || len(c.underway) > 0)] = true
		}
	}
	if classes[cluster.MarkFree] || classes[cluster.MarkCanary] {
		p.WakeAt = earliest(p.WakeAt, b.slotDue)
	}
}

// mark marks the candidate under the class if the budget admits it, and reports whether it was
// marked.
func (p *GroupPlan) mark(b *budget, c candidate, class cluster.MarkClass) bool {
	if b.admit(c.ruling, c.Allocation, c.node, class, c.surge) != "" {
		return false
	}
	p.Marks = append(p.Marks, markUnder(c.ruling, c.resident, class))
	return true
}

// takesRoom reports whether a mark under the ruling needs room of the group's budget.
func takesRoom(r ruling) bool { return r.class == cluster.MarkPaced && !r.surge && !r.replaced }

// markUnder returns the mark of an allocation under the class, or the request for its replacement.
func markUnder(r ruling, a resident, class cluster.MarkClass) Mark {
	m := markOf(a.Allocation, a.node, class)
	m.Surge = r.surge
	return m
}

func markOf(a *cluster.Allocation, n *cluster.Node, class cluster.MarkClass) Mark {
	return Mark{Alloc: a.ID, Group: a.GroupKey(), Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: class}
}

// shortage returns the reason why the budget or the slots hold an allocation that could be marked
// under the class. underway means that marks, stops or verdicts of the group are outstanding.
func (g *group) shortage(class cluster.MarkClass, underway bool) Reason {
	switch {
	case takesSlot(class):
		return ReasonWaitingForRoom
	case g.blockedEval() != nil:
		return ReasonWaitingForReplacement
	case underway:
		return ReasonWaitingForRoom
	}
	return ReasonBelowBudget
}

// NodePlan is what the drain of one node needs at one time.
type NodePlan struct {
	// Marks are of allocations that leave with their stage, or because of the deadline or force, in
	// (namespace, job, group, allocation) order.
	Marks []Mark
	// Completion ends the drain; or nil if the drain may not end.
	Completion *Completion
	// WakeAt is when the wait of a stage ends, so that the plan changes although the view does not.
	// It does not consider the deadline. It may be zero.
	WakeAt time.Time
	// WaitsFor are the jobs whose replacements the end of the drain waits for, or for whose data, in order.
	WaitsFor []cluster.JobKey
	// Passed means that the deadline has passed or that the drain is forced, and Paused that the drain is paused.
	// PluginsTurn means that the stage of storage plugins has begun and is not over. The plans of the groups on the
	// node depend on all of them.
	Passed, Paused, PluginsTurn bool
	// Serving are, in order, the storage plugins that serve allocations that the drain leaves. It
	// is set with PluginsTurn. The plans of the groups on the node depend on it too.
	Serving []cluster.PluginID
}

// PlanNode decides which allocations leave a draining node together, stage by stage, and whether
// its drain may end.
func (s *Planner) PlanNode(n *cluster.Node) NodePlan {
	end := s.judgeEnd(n)
	plan := NodePlan{WakeAt: end.waitEnds, WaitsFor: end.waitsFor, Passed: passed(s, n), Paused: paused(s, n)}
	if end.done {
		plan.Completion = &Completion{Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision}
	}
	if end.stage == cluster.StageCount || !s.turnHasCome(n, end.stage) {
		return plan
	}
	if plan.PluginsTurn = end.stage == cluster.StagePlugins; plan.PluginsTurn {
		plan.Serving = slices.Sorted(maps.Keys(s.usersOn(n)))
	}
	if end.stage == cluster.StageConsumers && !plan.Passed {
		return plan // each leaves at its group's pace
	}
	for a := range s.view.NodeAllocs(n.ID, end.stage, false) {
		if !leavesWithNode(s, a, n) {
			continue
		}
		if class := s.judgeWithNode(a, n).class; class != cluster.MarkNone {
			plan.Marks = append(plan.Marks, markOf(a, n, class))
		}
	}
	slices.SortFunc(plan.Marks, Mark.Compare)
	return plan
}
