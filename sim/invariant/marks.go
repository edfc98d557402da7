package invariant

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
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
	// refused counts the items that the entry did not apply.
	refused int
	// refusals are the refusals in the answer.
	refusals []rules.Refusal
	// accepted are the accepted marks of the answer, from the present item on.
	accepted []rules.Mark
	// jobs are the jobs of the applied marks, sorted.
	jobs []cluster.JobKey
}

// judgeMarks judges an entry of marks. The FSM must apply an item exactly if the contract allows
// it in the state after the items before it.
func (j *Judge) judgeMarks(e *entry, m *shims.AllocUpdateDesiredTransition) {
	w := &markJudge{facts: j.facts, e: e, m: m, now: j.tables.snapshot(m.At, j.options.Policy)}
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
	a := w.tables.allocs[mark.Alloc]
	if a == nil {
		return true // the verdict above is a violation
	}
	w.now.countMark(a, mark.Class)
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
	if c == nil || c.after == nil {
		return false
	}
	t := c.after.DesiredTransition
	return t.Migrate && t.Drain == mark.Drain && t.Class == mark.Class && (c.before == nil || c.before.DesiredTransition != t)
}
