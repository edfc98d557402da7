package invariant

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// verdict says whether the contract allows one item of an entry in the state where it is
// applied. If not, check is the violation of an entry that applies it.
type verdict struct {
	allowed bool
	check   Check
	why     string
}

func allowed() verdict                  { return verdict{allowed: true} }
func fails(c Check, why string) verdict { return verdict{check: c, why: why} }

func compareMarks(a, b rules.Mark) int {
	return cmp.Or(a.Group.Compare(b.Group), cmp.Compare(a.Alloc, b.Alloc))
}

// markJudge judges one entry of marks.
type markJudge struct {
	*facts
	e   *entry
	m   *shims.AllocUpdateDesiredTransition
	now *snapshot
	// claimed counts the applied items, refused the others.
	claimed, refused int
	// refusals are the refusals in the answer.
	refusals []rules.Refusal
	// accepted are the accepted marks of the answer, from the present item on.
	accepted []rules.Mark
	// made counts the applied marks by node and class. jobs are their jobs, sorted.
	made map[*node]*[cluster.MarkClassCount]int
	jobs []cluster.JobKey
}

// judgeMarks judges an entry of marks. The FSM must apply an item exactly if the contract allows
// it in the state after the items before it.
func (j *Judge) judgeMarks(e *entry, m *shims.AllocUpdateDesiredTransition) {
	w := &markJudge{
		facts: j.facts, e: e, m: m, now: j.tables.snapshot(m.At, j.options.Policy),
		made: make(map[*node]*[cluster.MarkClassCount]int),
	}
	j.checkPolicy(m.Policy)
	marks := m.Marks.Marks
	if !slices.IsSortedFunc(marks, compareMarks) {
		marks = slices.Clone(marks)
		slices.SortStableFunc(marks, compareMarks)
	}
	answer, _ := e.Response.(shims.MarksApplied)
	w.accepted, w.refusals = answer.Accepted, answer.Refused
	made := false
	for i, mark := range marks {
		if made = made && marks[i-1].Alloc == mark.Alloc; made {
			w.refused++ // the allocation has its mark already
			continue
		}
		made = w.judge(mark)
	}
	w.checkAnswer()
	w.checkEvals()
	w.checkMarked()
	if w.refused > 0 {
		j.noteRefused(e, answer.Refused)
	}
}

// judge judges one mark and reports whether the entry made it. If the entry has several marks
// for one allocation, the answer names the one that was made.
func (w *markJudge) judge(mark rules.Mark) (made bool) {
	v := w.now.judgeMark(mark)
	about := Violation{Drain: mark.Drain, Node: mark.Node, Alloc: mark.Alloc, Group: mark.Group}
	another := len(w.accepted) > 0 && w.accepted[0].Alloc == mark.Alloc
	accepted := another && w.accepted[0] == mark
	if accepted {
		w.accepted = w.accepted[1:]
	}
	if !w.e.made(mark) || another && !accepted {
		w.refused++
		switch {
		case accepted && !v.allowed:
			w.find(v.check, about, "the answer accepts the mark %s, but %s", mark.Class, v.why)
		case v.allowed && w.carriesEval(mark.Group.Job):
			w.find(ValidRefused, about, "the FSM refused a valid mark %s: %q", mark.Class, whyRefused(w.refusals, mark.Node, mark.Alloc))
		}
		return false
	}
	if !v.allowed {
		w.find(v.check, about, "the FSM marked it %s, but %s", mark.Class, v.why)
	}
	w.claimed++
	a := w.tables.allocs[mark.Alloc]
	if a == nil {
		return true // the verdict above is a violation
	}
	w.now.countMark(a, mark.Class)
	if w.made[a.node] == nil {
		w.made[a.node] = new([cluster.MarkClassCount]int)
	}
	if mark.Class < cluster.MarkClassCount {
		w.made[a.node][mark.Class]++
	}
	if n := len(w.jobs); n == 0 || w.jobs[n-1] != a.group.key.Job {
		w.jobs = append(w.jobs, a.group.key.Job)
	}
	return true
}

// judgeMark judges a mark in the state after the marks before it.
func (m *snapshot) judgeMark(mark rules.Mark) verdict {
	a := m.allocs[mark.Alloc]
	if v := checkCause(a, mark); !v.allowed {
		return v
	}
	r := m.rule(a)
	if v := m.checkTurn(a, r); !v.allowed {
		return v
	}
	return m.checkClass(a, mark.Class, r)
}

// change is the change of the entry to an allocation, or nil.
func (e *entry) change(id cluster.AllocID) *change[cluster.Allocation] {
	at, ok := slices.BinarySearchFunc(e.allocs, id, func(c change[cluster.Allocation], id cluster.AllocID) int {
		return cmp.Compare(newest(c).ID, id)
	})
	if !ok {
		return nil
	}
	return &e.allocs[at]
}

// made reports whether the entry has made the mark.
func (e *entry) made(mark rules.Mark) bool {
	c := e.change(mark.Alloc)
	return c != nil && newlyMarked(*c) &&
		c.after.DesiredTransition.Drain == mark.Drain && c.after.DesiredTransition.Class == mark.Class
}

// newlyMarked reports whether a drain has marked the allocation in this entry.
func newlyMarked(c change[cluster.Allocation]) bool {
	if c.after == nil || !c.after.DesiredTransition.Migrate || c.after.DesiredTransition.Drain == "" {
		return false
	}
	return c.before == nil || !c.before.DesiredTransition.Migrate ||
		c.before.DesiredTransition.Drain != c.after.DesiredTransition.Drain ||
		c.before.DesiredTransition.Class != c.after.DesiredTransition.Class
}

// checkMarked checks the contents of the new marks, and the counts of the drains.
func (w *markJudge) checkMarked() {
	for _, c := range w.e.allocs {
		if !newlyMarked(c) {
			continue
		}
		w.claimed--
		w.noteMark(c.after)
		t := c.after.DesiredTransition
		about := Violation{Drain: t.Drain, Node: c.after.NodeID, Alloc: c.after.ID, Group: groupOf(c.after)}
		if !t.MarkedAt.Equal(w.m.At) {
			w.find(UnexplainedMark, about, "the mark has the time %s and its entry %s", t.MarkedAt, w.m.At)
		}
		if c.before != nil && unmarked(t) != unmarked(c.before.DesiredTransition) {
			w.find(UnexplainedMark, about, "the mark changed more than its own fields: %+v became %+v", c.before.DesiredTransition, t)
		}
		last := opinion.TypeOf(c.after) == cluster.JobBatch && (t.Class == cluster.MarkDeadline || t.Class == cluster.MarkForced)
		if t.MigrateDisablePlacement != last {
			w.find(PlacedAgain, about, "a mark %s on %s work has MigrateDisablePlacement %t", t.Class, opinion.TypeOf(c.after), t.MigrateDisablePlacement)
		}
	}
	if w.claimed != 0 {
		w.find(UnexplainedMark, Violation{}, "the entry made %d marks without an item", -w.claimed)
	}
	for _, c := range w.e.nodes {
		if c.before == nil || c.after == nil || c.before.Drain == nil || c.after.Drain == nil {
			continue
		}
		var made [cluster.MarkClassCount]int
		if n := w.made[w.tables.nodes[c.after.ID]]; n != nil {
			made = *n
		}
		for class := range made {
			if got := c.after.Drain.Marked[class] - c.before.Drain.Marked[class]; got != made[class] {
				w.find(MiscountedMarks, Violation{Drain: c.after.Drain.ID, Node: c.after.ID},
					"the drain counts %d more marks %s, but the entry made %d", got, cluster.MarkClass(class), made[class])
			}
		}
	}
}
