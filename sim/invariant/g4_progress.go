package invariant

// G4 and G6 at a quiet point: every possible item is applied or planned, unless the drainer
// has a reason to wait. The judge knows these reasons: a missing answer, the wait after a
// failure or a refusal, a clock that was set since the last look, and delays in the world.

// progressJudge judges the items that a drainer has not planned: G4, G6, G7 and G12.
type progressJudge struct{ *facts }

// checkProgress finds possible items that a drainer without a reason to wait has not planned.
func (j *progressJudge) checkProgress(m *snapshot, t *term) {
	w := j.wants(m, t)
	for _, mark := range w.Marks {
		about := Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group}
		if t.failed[mark.Alloc] {
			j.find(NotRetried, about, "a write of its mark failed. It could be marked %s now, and no mark is planned", mark.Class)
		} else {
			j.find(Stalled, about, "it could be marked %s, and no mark is planned", mark.Class)
		}
	}
	for _, c := range w.Completions {
		about := Violation{Drain: c.Drain, Node: c.Node}
		if t.failedEnds[c.Node] {
			j.find(NotRetried, about, "a write of its end failed. The drain could end now, and no end is planned")
		} else {
			j.find(Stalled, about, "the drain could end, and no end is planned")
		}
	}
	for key := range t.reevaluated { //lint:order each group by itself
		if !m.tally(m.group(key)).stuck {
			delete(t.reevaluated, key) // the drainer counts from one again
		}
	}
	for _, key := range w.Reevaluate {
		if !j.reevaluates(t, m.at, key) {
			j.find(NotReevaluated, Violation{Group: key}, "marked allocations run on, their job has no open evaluation, and none is planned")
		}
	}
}
