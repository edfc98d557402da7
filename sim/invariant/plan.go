package invariant

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Plan are all items that a drainer plans for one state if none of them is in flight yet.
type Plan struct {
	Marks       []rules.Mark
	Reevaluate  []cluster.GroupKey
	Completions []rules.Completion
}

// candidates are the candidates of a group: allocations that take room or slots.
type candidates struct {
	group        *group
	paced, slots []*alloc
	// requests wait for a request, and replaced have their replacement.
	requests, replaced []*alloc
}

// plan returns the items that a term must plan at this snapshot. Among equal candidates of a
// group, any choice is right. An item that the term may wait with takes no room. Within the
// coalescing window of a deadline, the node and the groups on it need no items, because their
// room may be kept for the deadline.
func (m *snapshot) plan(t *term) Plan {
	var w Plan
	groups, skipped := map[*group]*candidates{}, map[*group]bool{}
	var order []*group
	for _, n := range m.draining {
		if coalesces(m, n) {
			for _, a := range n.live {
				skipped[a.group] = true
			}
			continue
		}
		if _, why := m.unfinished(n); why == "" && !t.waits(m.at, refusedItem{drain: n.drain().ID}) {
			w.Completions = append(w.Completions, rules.Completion{Node: n.id, Drain: n.drain().ID, Revision: n.drain().Revision})
		}
		for _, a := range n.live {
			g := groups[a.group]
			if g == nil {
				g = &candidates{group: a.group}
				groups[a.group] = g
				order = append(order, a.group)
			}
			if !t.waits(m.at, refusedItem{n.drain().ID, a.id()}) {
				w.addAlloc(m, a, g)
			}
		}
	}
	for _, g := range order {
		if !skipped[g] {
			w.addGroup(m, groups[g])
		}
	}
	return w
}

// coalesces reports whether the node's deadline has passed and may still wait for the deadlines
// of other nodes.
func coalesces(m *snapshot, n *node) bool {
	d := n.drain()
	return d != nil && d.Strategy.Deadline > 0 && passed(m, n) && m.at.Before(d.Strategy.ForceDeadline.Add(m.coalesce))
}

// addAlloc adds the mark of an allocation on a draining node, or a candidate of its group.
func (w *Plan) addAlloc(m *snapshot, a *alloc, g *candidates) {
	if a.leaving() {
		return
	}
	switch r := m.rule(a); {
	case r.class == cluster.MarkNone:
	case r.requests:
		g.requests = append(g.requests, a)
	case r.replaced:
		g.replaced = append(g.replaced, a)
	case r.class == cluster.MarkPaced:
		g.paced = append(g.paced, a)
	case r.class == cluster.MarkFree, r.class == cluster.MarkCanary:
		g.slots = append(g.slots, a)
	default:
		w.Marks = append(w.Marks, markOf(a, r.class))
	}
}

func markOf(a *alloc, c cluster.MarkClass) rules.Mark {
	d := a.node.drain()
	return rules.Mark{Alloc: a.id(), Group: a.group.key, Node: a.node.id, Drain: d.ID, Revision: d.Revision, Class: c}
}

// addGroup adds the items of a group.
func (w *Plan) addGroup(m *snapshot, g *candidates) {
	t := m.tally(g.group)
	for i := range min(len(g.slots), max(0, t.slotsLeft())) {
		w.Marks = append(w.Marks, markOf(g.slots[i], m.rule(g.slots[i]).class))
	}
	w.addSurge(t, g)
	for i := range min(len(g.paced), max(0, t.room())) {
		w.Marks = append(w.Marks, markOf(g.paced[i], cluster.MarkPaced))
	}
	if len(g.paced) > 0 && len(g.slots) == 0 && m.mayProceed(g.group) {
		w.Marks = append(w.Marks, markOf(g.paced[0], cluster.MarkProceed))
	}
	if m.stuck(g.group) {
		w.Reevaluate = append(w.Reevaluate, g.group.key)
	}
}

// G4 and G6 at a quiet point: every possible item is applied or planned, unless the drainer
// has a reason to wait. The judge accepts these reasons: a missing answer, the wait after a
// failure or a refusal, a clock that was set since the last read, and delays in the world.

// progressJudge judges the items that a drainer has not planned: G4, G6, G7 and G12.
type progressJudge struct{ *facts }

// checkProgress finds possible items that a drainer without a reason to wait has not planned.
func (j *progressJudge) checkProgress(m *snapshot, t *term) {
	w := m.plan(t)
	for _, mark := range w.Marks {
		subject := Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group}
		if t.failed[markItem(mark.Alloc)] {
			j.find(NotRetried, subject, "a write of its mark failed. It could be marked %s now, and no mark is planned", mark.Class)
		} else {
			j.find(Stalled, subject, "it could be marked %s, and no mark is planned", mark.Class)
		}
	}
	for _, c := range w.Completions {
		subject := Violation{Drain: c.Drain, Node: c.Node}
		if t.failed[endItem(c.Node)] {
			j.find(NotRetried, subject, "a write of its end failed. The drain could end now, and no end is planned")
		} else {
			j.find(Stalled, subject, "the drain could end, and no end is planned")
		}
	}
	for key := range t.reevaluated { //lint:order each group by itself
		if !m.tally(m.group(key)).stuck {
			delete(t.reevaluated, key) // the drainer counts from one again
		}
	}
	for _, key := range w.Reevaluate {
		if !t.reevaluates(m.at, key) {
			j.find(NotReevaluated, Violation{Group: key}, "marked allocations run on, their job has no open evaluation, and none is planned")
		}
	}
}

// G12 cost: the work of a drainer is proportional to the changes that concern a drain. A
// drainer reads each change of a job that it follows. So it follows a job only as long as a
// drain needs it.

// checkFollowed finds jobs that the drainer follows needlessly: none of their allocations is
// live on a draining node or has a mark of a running drain.
func (j *progressJudge) checkFollowed(followed []cluster.JobKey) {
	if len(followed) == 0 {
		return
	}
	needed := map[cluster.JobKey]bool{}
	for _, n := range j.tables.draining {
		for _, a := range n.live {
			needed[a.group.key.Job] = true
		}
		for _, a := range slices.Concat(j.tables.marked[n.drain().ID], n.ended) {
			needed[a.group.key.Job] = true
		}
	}
	for _, job := range followed {
		if !needed[job] {
			j.find(NeedlesslyFollowed, ofJob(job), "the drainer follows job %s, but no running drain concerns it", job)
		}
	}
}
