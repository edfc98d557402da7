package witness

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// mark is the mark of a drain on an allocation.
type mark struct {
	drain             cluster.DrainID
	class             cluster.MarkClass
	stopped, replaced bool
}

// observeAlloc follows the allocation's mark. It returns the allocation if the entry marked
// it.
func (w *Witness) observeAlloc(e Entry, id cluster.AllocID) *cluster.Allocation {
	before, after := e.Before.Alloc(id), e.After.Alloc(id)
	if after == nil {
		if m := w.marks[id]; m != nil {
			m.stopped = true
		}
		return nil
	}
	var was cluster.DesiredTransition
	if before != nil {
		was = before.DesiredTransition
	}
	is, fresh := after.DesiredTransition, newlyMarked(before, after)
	f := findingOf(after)
	observeStandby(w, e, f, before, after)
	observeRequest(w, e, f, was, after)
	switch {
	case fresh:
		w.observeMark(e, was, after)
	case !is.Migrate:
		w.observeWithdrawn(e, f, was, after)
	case before != nil && (is.Drain != was.Drain || is.Class != was.Class || !is.MarkedAt.Equal(was.MarkedAt)):
		f.Kind, f.Why = UnexplainedMark, "its mark was changed"
		w.find(e, f)
	}
	if m := w.marks[id]; m != nil {
		m.stopped, m.replaced = !opinion.Live(after), after.NextAllocation != ""
	}
	if fresh {
		return after
	}
	return nil
}

// findingOf returns a finding about an allocation and its mark.
func findingOf(a *cluster.Allocation) Finding {
	return Finding{Drain: a.DesiredTransition.Drain, Node: a.NodeID, Alloc: a.ID, Group: groupOf(a)}
}

// newlyMarked reports whether a drain marked the allocation in this entry.
func newlyMarked(before, after *cluster.Allocation) bool {
	t := after.DesiredTransition
	if !t.Migrate || t.Drain == "" {
		return false
	}
	return before == nil || !before.DesiredTransition.Migrate ||
		before.DesiredTransition.Drain != t.Drain || before.DesiredTransition.Class != t.Class
}

// observeWithdrawn judges and records the end of a mark. Only the cancel of its drain withdraws a
// mark, and it withdraws all of it: a class without its mark would take a slot of the group for
// ever.
func (w *Witness) observeWithdrawn(e Entry, f Finding, was cluster.DesiredTransition, after *cluster.Allocation) {
	if m := w.marks[after.ID]; m != nil {
		w.drains[m.drain].Withdrawn++
		delete(w.marks, after.ID)
	}
	if !was.Migrate {
		return
	}
	f.Drain = was.Drain
	switch record := e.After.DrainRecord(was.Drain); {
	case was.Drain == "":
		f.Kind, f.Why = ForeignMarkWithdrawn, "a mark that no drain made was withdrawn"
	case record == nil || record.Outcome != cluster.OutcomeCancelled || drainOn(e.Before, after.NodeID, was.Drain) == nil:
		f.Kind, f.Why = MarkLost, "its mark was removed, and its drain was not cancelled"
	case after.DesiredTransition != withoutRequest(withoutMark(was)):
		f.Kind, f.Why = NotWithdrawn, fmt.Sprintf("the cancel left %+v of its mark", after.DesiredTransition)
	default:
		return
	}
	w.find(e, f)
}

// drainOn returns the drain with the id if it runs on the node, or nil.
func drainOn(s State, id cluster.NodeID, drain cluster.DrainID) *cluster.Drain {
	if n := s.Node(id); n != nil && n.Drain != nil && n.Drain.ID == drain {
		return n.Drain
	}
	return nil
}

// withoutMark returns the transition of an allocation without its mark.
func withoutMark(t cluster.DesiredTransition) cluster.DesiredTransition {
	t.Migrate, t.MigrateDisablePlacement = false, false
	t.Drain, t.Class, t.MarkedAt = "", cluster.MarkNone, time.Time{}
	return t
}

// withoutRequest returns the transition of an allocation without the request for its replacement.
func withoutRequest(t cluster.DesiredTransition) cluster.DesiredTransition {
	t.Surge, t.SurgeAt = "", time.Time{}
	return t
}

// observeMark judges one new mark by the state before the entry, and records it.
func (w *Witness) observeMark(e Entry, was cluster.DesiredTransition, a *cluster.Allocation) {
	t := a.DesiredTransition
	w.marks[a.ID] = &mark{drain: t.Drain, class: t.Class}
	d := w.drains[t.Drain]
	if d == nil {
		d = &drain{DrainReport: DrainReport{ID: t.Drain, Node: a.NodeID, StartIndex: e.Index}}
		w.drains[t.Drain] = d
	}
	if t.Class < cluster.MarkClassCount {
		d.Marked[t.Class]++
	}
	f := findingOf(a)
	w.judgeFields(e, f, was, a)
	running := drainOn(e.Before, a.NodeID, t.Drain)
	if running == nil {
		f.Kind, f.Why = NotDraining, "marked on a node that was not in that drain"
		w.find(e, f)
		return
	}
	if !hasToLeave(a, running, e.Before) {
		f.Kind, f.Why = Excluded, "marked although the request excludes it"
		w.find(e, f)
	}
	w.judgeDue(e, f, t, running)
	if why := whyNotFree(e, f, t); why != "" {
		f.Kind, f.Why = NotFree, why
		w.find(e, f)
	}
	w.judgeTurn(e, f, a, e.Before.Node(a.NodeID))
	w.judgePlan(e, f, t, running)
}

// judgeFields judges the fields that a mark writes.
func (w *Witness) judgeFields(e Entry, f Finding, was cluster.DesiredTransition, a *cluster.Allocation) {
	t := a.DesiredTransition
	f.Kind = UnexplainedMark
	switch {
	case e.Source == Drainer && !e.At.IsZero() && !t.MarkedAt.Equal(e.At):
		f.Why = fmt.Sprintf("the mark has the time %s and its entry %s", t.MarkedAt, e.At)
	case withoutMark(t) != withoutMark(was):
		f.Why = fmt.Sprintf("the mark changed more than its own fields: %+v became %+v", was, t)
	case e.Source != UnknownSource && !slices.ContainsFunc(e.Planned, func(p Planned) bool { return p.Alloc == a.ID && p.Class == t.Class && !p.Surge }):
		f.Why = fmt.Sprintf("an entry without this mark marked it %s", t.Class)
	}
	if f.Why != "" {
		w.find(e, f)
	}
	// A deadline is the end of batch work.
	last := opinion.TypeOf(a) == cluster.JobBatch && (t.Class == cluster.MarkDeadline || t.Class == cluster.MarkForced)
	if t.MigrateDisablePlacement != last {
		f.Kind, f.Why = PlacedAgain, fmt.Sprintf("a mark %s on %s work has MigrateDisablePlacement %t", t.Class, opinion.TypeOf(a), t.MigrateDisablePlacement)
		w.find(e, f)
	}
}

// judgePlan finds marks planned against another revision of the drain, and marks without an
// evaluation.
func (w *Witness) judgePlan(e Entry, f Finding, t cluster.DesiredTransition, d *cluster.Drain) {
	revisions := planned(e, func(p Planned) bool { return p.Alloc == f.Alloc && !p.Surge })
	if len(revisions) == 0 {
		return
	}
	bound := t.Class == cluster.MarkDeadline || t.Class == cluster.MarkForced || t.Class == cluster.MarkStage
	if bound && !slices.Contains(revisions, d.Revision) {
		f.Kind, f.Why = StaleRevision, fmt.Sprintf("planned against revision %d and marked at revision %d", revisions[0], d.Revision)
		w.find(e, f)
	}
	if !evaluates(e, f.Group.Job) {
		f.Kind, f.Why = NoEvaluation, "marked without an evaluation of its job in the same entry"
		w.find(e, f)
	}
}

// evaluates reports whether the entry created a pending evaluation of the job.
func evaluates(e Entry, job cluster.JobKey) bool {
	for eval := range e.After.EvalsByJob(job) {
		if eval.CreateIndex == e.Index && eval.Status == "pending" {
			return true
		}
	}
	return false
}

// planned returns the revisions against which the matching items were planned.
func planned(e Entry, match func(Planned) bool) (revisions []cluster.Revision) {
	for _, p := range e.Planned {
		if match(p) {
			revisions = append(revisions, p.Revision)
		}
	}
	return revisions
}

// judgeDue finds deadline marks before the deadline and forced marks without force.
func (w *Witness) judgeDue(e Entry, f Finding, t cluster.DesiredTransition, d *cluster.Drain) {
	f.Kind = NotDue
	switch deadline := d.Strategy.Deadline; t.Class {
	case cluster.MarkDeadline:
		if deadline > 0 && !t.MarkedAt.Before(d.Strategy.ForceDeadline) {
			return
		}
		f.Why = "deadline mark before the deadline"
	case cluster.MarkForced:
		if deadline < 0 {
			return
		}
		f.Why = "forced mark in a drain without force"
	default:
		return
	}
	w.find(e, f)
}

// whyNotFree returns why the allocation of a free mark counts in its group, or may count again. It is
// empty if it does not, and for marks of other classes.
func whyNotFree(e Entry, f Finding, t cluster.DesiredTransition) string {
	a := e.Before.Alloc(f.Alloc)
	pace, exists := opinion.PaceOf(e.Before.Job(f.Group.Job), f.Group.Name)
	switch {
	case t.Class != cluster.MarkFree || a == nil || !exists:
	case healthy(a, e.Before):
		return "free mark on a healthy allocation"
	case a.Standby && opinion.TakesOver(a, e.Before.Node(a.NodeID)):
		return "free mark on a healthy allocation that stands by"
	case t.MarkedAt.Before(pace.HeldUntil(a)):
		return fmt.Sprintf("free mark on an allocation that was healthy and may recover until %s", pace.HeldUntil(a))
	}
	return ""
}

// judgeTurn finds a mark on an allocation while an earlier stage was not over in the state
// before the entry.
func (w *Witness) judgeTurn(e Entry, f Finding, marked *cluster.Allocation, node *cluster.Node) {
	at, stage := marked.DesiredTransition.MarkedAt, opinion.StageOf(marked)
	if stage == opinion.Consumer {
		return
	}
	patient := stage == opinion.Plugin && w.options.PluginsAfterStop
	var waiting cluster.AllocID // the first one by stage and id
	waitingStage := stage
	for a := range e.Before.AllocsByNode(node.ID) {
		if !opinion.Live(a) || opinion.StageOf(a) >= stage || !hasToLeave(a, node.Drain, e.Before) {
			continue
		}
		outOfTouch := !opinion.InTouch(a, node)
		if w.waitOver(a, node, node.Drain, at) && (outOfTouch || !patient) {
			continue
		}
		if c := cmp.Compare(opinion.StageOf(a), waitingStage); c < 0 || c == 0 && a.ID < waiting {
			waiting, waitingStage = a.ID, opinion.StageOf(a)
		}
	}
	if waiting != "" {
		f.Kind, f.Why = OutOfTurn, fmt.Sprintf("marked while %s had not left", waiting)
		w.find(e, f)
	}
}
