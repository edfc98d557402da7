package invariant

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// G7 from state: a drainer that has only the state, such as a new leader's, reaches the same
// end. At a quiet point, a fresh drainer plans only items that the running one has planned or
// has in flight. A run of the same story with drainers that lose their memory reaches the same
// facts.

// checkFreshPlan finds the items that a fresh drainer plans and that the running one has
// neither planned nor in flight. For paced marks only their number in a group matters, because
// the choice among equal candidates may depend on earlier plans.
func (j *progressJudge) checkFreshPlan(m *snapshot, t *term, w Plan, planned map[cluster.AllocID]bool) {
	if j.options.MinInterval > 0 && m.at.Before(t.lastWrite.Add(j.options.MinInterval)) {
		return // the running drainer waits after its last round; a fresh one has none
	}
	waiting := map[cluster.GroupKey]bool{}
	for _, n := range m.draining {
		if coalesces(m, n) {
			for _, a := range n.live {
				waiting[a.group.key] = true
			}
		}
	}
	wanted, has := map[cluster.GroupKey]int{}, map[cluster.GroupKey]int{}
	//lint:order counts
	for id := range planned {
		if a := m.allocs[id]; a != nil {
			has[a.group.key]++
		}
	}
	for _, mark := range w.Marks {
		if t.waits(m.at, refusedItem{mark.Drain, mark.Alloc}) {
			continue
		}
		wanted[mark.Group]++
		subject := Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group}
		switch {
		case planned[mark.Alloc] || t.sent[markItem(mark.Alloc)] > 0:
		case waiting[mark.Group]:
		case ofWholeNode(mark.Class) || mark.Class == cluster.MarkGone:
			j.find(Forgotten, subject, "a fresh drainer would mark it %s", mark.Class)
		case wanted[mark.Group] > has[mark.Group]:
			j.find(Forgotten, subject, "a fresh drainer would mark %d allocations of the group, but only %d marks are planned", wanted[mark.Group], has[mark.Group])
		}
	}
	if t.inFlight > 0 {
		// The drainer collects further items for its next round. Reports show only the marks
		// among them. The judge checks the rest after the round.
		return
	}
	for _, c := range w.Completions {
		if t.sent[endItem(c.Node)] == 0 && !t.waits(m.at, refusedItem{drain: c.Drain}) && !t.failures.waits(&j.options, m.at) && !coalesces(m, m.node(c.Node)) {
			j.find(Forgotten, Violation{Drain: c.Drain, Node: c.Node}, "a fresh drainer would end the drain")
		}
	}
	for _, key := range w.Reevaluate {
		if !t.reevaluates(m.at, key) && !t.failures.waits(&j.options, m.at) {
			j.find(Forgotten, Violation{Group: key}, "a fresh drainer would have the group evaluated again")
		}
	}
}
