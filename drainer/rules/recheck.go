package rules

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Recheck checks an entry of marks in the state in which it is applied, and returns the marks that
// may be applied. It checks them in (namespace, job, group, allocation) order, each in the state
// after the accepted marks before it. A refused mark does not refuse others. Recheck also returns
// the evaluations to write: those of jobs with an accepted mark, and of groups that still need one.
//
// Every FSM calls it in the transaction that applies the entry. It reads the view and the entry and
// nothing else, and changes neither.
func Recheck(v View, m *Marks) (accepted []Mark, evals []*cluster.Evaluation, refused []Refusal) {
	c := &checker{Planner: NewPlanner(v, m.At, m.Policy)}
	marks := m.Marks
	if !slices.IsSortedFunc(marks, Mark.Compare) {
		marks = slices.Clone(marks)
		slices.SortStableFunc(marks, Mark.Compare)
	}
	wanted, evalled := map[cluster.JobKey]bool{}, map[cluster.JobKey]bool{}
	for _, e := range m.Evals {
		if e != nil {
			evalled[e.JobKey()] = true
		}
	}
	for _, mark := range marks {
		why := "the entry has no evaluation of the mark's job"
		if evalled[mark.Group.Job] {
			why = c.check(mark)
		}
		if why != "" {
			refused = append(refused, Refusal{Alloc: mark.Alloc, Node: mark.Node, Why: why})
			continue
		}
		accepted = append(accepted, mark)
		wanted[mark.Group.Job] = true
	}
	for _, key := range m.Reevaluate {
		if (&group{planner: c.Planner, key: key}).stuck() {
			wanted[key.Job] = true
		}
	}
	for _, e := range m.Evals {
		if e != nil && wanted[e.JobKey()] {
			evals = append(evals, e)
			delete(wanted, e.JobKey())
		}
	}
	return accepted, evals, refused
}

// RecheckCompletions checks an entry of completions in the state in which it is applied, node by
// node, and returns the drains that end, with their outcomes. Every FSM calls it in the transaction
// that applies the entry.
func RecheckCompletions(v View, c *Completions) (ended []Ending, refused []Refusal) {
	s := NewPlanner(v, c.At, c.Policy)
	ending := map[cluster.NodeID]bool{}
	for _, completion := range c.Completions {
		why := ""
		if ending[completion.Node] {
			why = "the node is in the entry twice"
		} else {
			why = s.checkCompletion(completion)
		}
		if why != "" {
			refused = append(refused, Refusal{Node: completion.Node, Why: why})
			continue
		}
		ending[completion.Node] = true
		ended = append(ended, s.endingOf(completion))
	}
	return ended, refused
}

func (s *Planner) checkCompletion(c Completion) string {
	n := s.Node(c.Node)
	if why := checkDrain(n, c.Drain); why != "" {
		return why
	}
	if n.Drain.Revision != c.Revision {
		return "the drain was changed since"
	}
	if paused(s, n) {
		return "the drain is paused"
	}
	if !s.judgeEnd(n).done {
		return "the drain is not done"
	}
	return ""
}

// endingOf returns the ending of a drain that may end. A drain that leaves something running was
// ended by its deadline, or by force, even if no mark has such a class. Its outcome is not
// complete, unless its completion policy is CompletionMarked. The same holds for a drain that leaves
// unconfirmed allocations.
func (s *Planner) endingOf(c Completion) Ending {
	n := s.Node(c.Node)
	e := Ending{
		Completion: c, Outcome: n.Drain.CompletedOutcome(), StillStopping: s.countLeft(n), Unconfirmed: Unconfirmed(s.view, n, cluster.OutcomeNone),
		DataNotCopied: DataNotCopied(s.view, n),
	}
	if e.Outcome == cluster.OutcomeComplete && e.StillStopping > 0 && s.policy.Completion != CompletionMarked {
		e.Outcome = cluster.OutcomeDeadlineReached
		if n.Drain.Strategy.Forced() {
			e.Outcome = cluster.OutcomeForced
		}
	}
	if e.Outcome == cluster.OutcomeComplete && e.Unconfirmed != nil && s.policy.Completion != CompletionMarked {
		e.Outcome = cluster.OutcomeUnconfirmed
	}
	return e
}

// checkDrain returns why the node is not in the drain, or the empty string.
func checkDrain(n *cluster.Node, id cluster.DrainID) string {
	switch {
	case n == nil:
		return "the node is gone"
	case n.Drain == nil:
		return "the node does not drain"
	case n.Drain.ID != id:
		return "the drain is over and another has begun"
	}
	return ""
}

// checker checks the marks of one entry. It counts a group only as far as the group's marks need,
// without reading stable allocations, and adds the accepted marks.
type checker struct {
	*Planner
	// last is the budget of the previous mark's group, or nil. Marks of a group are adjacent.
	last *budget
	// accepted is the allocation of the last accepted mark, or empty. Repeats of a mark are
	// adjacent.
	accepted cluster.AllocID
	// active are the standbys whose original has an accepted mark, or nil.
	active map[cluster.AllocID]bool
}

// check returns why a mark is refused, or counts the mark and returns the empty string.
func (c *checker) check(m Mark) string {
	a := c.view.Alloc(m.Alloc)
	if why := checkAlloc(a, m); why != "" {
		return why
	}
	if m.Alloc == c.accepted {
		return "the allocation is in the entry twice"
	}
	n := c.Node(a.NodeID)
	if why := checkDrain(n, m.Drain); why != "" {
		return why
	}
	if boundToRevision(m.Class) && n.Drain.Revision != m.Revision {
		return "the drain was changed since"
	}
	if !c.leaves(a, n) {
		return "the allocation is left by request"
	}
	if c.active[a.ID] {
		a = a.Copy()
		a.Standby = false
	}
	b := c.budgetOf(m.Group)
	if why := b.admit(b.group.judge(a, n), a, n, m.Class, m.Surge); why != "" {
		return why
	}
	c.accepted = m.Alloc
	if !m.Surge {
		for standby := range standbysOf(c.Planner, a) {
			if c.active == nil {
				c.active = map[cluster.AllocID]bool{}
			}
			c.active[standby.ID] = true
		}
	}
	return ""
}

func (c *checker) budgetOf(key cluster.GroupKey) *budget {
	if c.last != nil && c.last.group.key == key {
		return c.last
	}
	c.last = c.group(key).budget()
	return c.last
}

func checkAlloc(a *cluster.Allocation, m Mark) string {
	switch {
	case a == nil:
		return "the allocation is gone"
	case a.GroupKey() != m.Group || a.NodeID != m.Node:
		return "the allocation is not in the group or on the node of the mark"
	case a.ClientTerminal():
		return "the allocation has stopped"
	case a.ServerTerminal():
		return "the allocation is stopping"
	case a.Marked():
		return "the allocation is marked"
	}
	return ""
}

// boundToRevision reports whether marks of the class hold only for the strategy for which they
// were planned.
func boundToRevision(c cluster.MarkClass) bool {
	return c == cluster.MarkDeadline || c == cluster.MarkForced || c == cluster.MarkStage
}
