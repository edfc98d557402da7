package witness

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// drain is the witness's record of one drain.
type drain struct {
	DrainReport
	ended bool
}

// observeNode follows the start and the end of the node's drain.
func (w *Witness) observeNode(e Entry, id cluster.NodeID) {
	var before, after *cluster.Drain
	if n := e.Before.Node(id); n != nil {
		before = n.Drain
	}
	if n := e.After.Node(id); n != nil {
		after = n.Drain
	}
	if before != nil && (after == nil || after.ID != before.ID) {
		w.observeEnd(e, before)
	}
	if after != nil && (before == nil || after.ID != before.ID) {
		w.observeStart(e, after)
	}
}

func (w *Witness) observeStart(e Entry, d *cluster.Drain) {
	if known := w.drains[d.ID]; known != nil {
		w.find(e, Finding{Kind: SecondOutcome, Drain: d.ID, Node: d.NodeID, Why: "a drain's id was used again"})
		return
	}
	w.drains[d.ID] = &drain{DrainReport: DrainReport{
		ID: d.ID, Node: d.NodeID, NodeName: d.NodeName, StartedAt: d.Strategy.StartedAt, StartIndex: e.Index,
	}}
}

// observeEnd judges the end of a drain by its record and by the allocations left on the
// node. running is the drain before the entry.
func (w *Witness) observeEnd(e Entry, running *cluster.Drain) {
	f := Finding{Drain: running.ID, Node: running.NodeID}
	d := w.drains[running.ID]
	switch {
	case d == nil:
		f.Kind, f.Why = Unseen, "a drain ended that no entry started"
		w.find(e, f)
		return
	case d.ended:
		f.Kind, f.Why = SecondOutcome, "a drain ended again"
		w.find(e, f)
		return
	}
	d.ended, d.EndIndex = true, e.Index
	if revisions := planned(e, func(p Planned) bool { return p.Alloc == "" && p.Node == running.NodeID }); len(revisions) > 0 &&
		!slices.Contains(revisions, running.Revision) {
		f.Kind, f.Why = StaleRevision, fmt.Sprintf("planned against revision %d and ended at revision %d", revisions[0], running.Revision)
		w.find(e, f)
	}
	record := e.After.DrainRecord(running.ID)
	if record == nil || record.Outcome == "" {
		f.Kind, f.Why = NoRecord, "a drain ended without a record of its outcome"
		w.find(e, f)
		return
	}
	d.Outcome, d.EndedAt, d.StillStopping = record.Outcome, record.EndedAt, record.StillStopping
	w.judgeEnd(e, d, record)
}

func (w *Witness) judgeEnd(e Entry, d *drain, record *cluster.Drain) {
	f := Finding{Kind: UntrueOutcome, Drain: record.ID, Node: record.NodeID}
	if e.After.Node(record.NodeID) == nil {
		if record.Outcome != cluster.OutcomeNodeGone {
			f.Why = fmt.Sprintf("the node was deleted and the outcome is %q", record.Outcome)
			w.find(e, f)
		}
		return
	}
	if record.Outcome == cluster.OutcomeCancelled {
		return
	}
	left := w.judgeLeft(e, record)
	if want := w.outcomeOf(d, record, left); record.Outcome != want {
		f.Why = fmt.Sprintf("the outcome is %q, but with its marks and %d allocations left it must be %q", record.Outcome, left, want)
		w.find(e, f)
	}
}

// outcomeOf returns the correct outcome of an ended drain with that many allocations left.
// The deadline or force gave up the allocations left, even if it marked nothing.
func (w *Witness) outcomeOf(d *drain, record *cluster.Drain, left int) cluster.Outcome {
	givenUp := left > 0 && !w.options.AskedIsComplete
	switch deadline := record.Strategy.Deadline; {
	case d.Marked[cluster.MarkForced] > 0, givenUp && deadline < 0 && d.Marked[cluster.MarkDeadline] == 0:
		return cluster.OutcomeForced
	case d.Marked[cluster.MarkDeadline] > 0, givenUp && deadline > 0:
		return cluster.OutcomeDeadlineReached
	}
	return cluster.OutcomeComplete
}

// judgeLeft judges and counts the live allocations on the node of a drain that ended
// complete, at its deadline or by force.
func (w *Witness) judgeLeft(e Entry, record *cluster.Drain) (left int) {
	node := e.After.Node(record.NodeID)
	awaited := 0
	var first cluster.AllocID // the lowest awaited id
	for a := range e.After.AllocsByNode(record.NodeID) {
		if !opinion.Live(a) || !hasToLeave(a, record, e.After) {
			continue
		}
		left++
		if w.options.AskedIsComplete && opinion.Asked(a) || w.waitOver(a, node, record, record.EndedAt) {
			continue
		}
		if awaited++; first == "" || a.ID < first {
			first = a.ID
		}
	}
	f := Finding{Drain: record.ID, Node: record.NodeID}
	if awaited > 0 {
		f.Kind, f.Alloc = EndedEarly, first
		f.Why = fmt.Sprintf("the drain ended as %q while it still had to wait for %d of its allocations", record.Outcome, awaited)
		w.find(e, f)
	}
	if left != record.StillStopping {
		f.Kind, f.Alloc = MiscountedStopping, ""
		f.Why = fmt.Sprintf("the record counts %d allocations still stopping, but there were %d", record.StillStopping, left)
		w.find(e, f)
	}
	return left
}

// observeMark judges one new mark by the state before the entry, and records it.
func (w *Witness) observeMark(e Entry, a *cluster.Allocation) {
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
	f := Finding{Drain: t.Drain, Node: a.NodeID, Alloc: a.ID, Group: groupOf(a)}
	node := e.Before.Node(a.NodeID)
	if node == nil || node.Drain == nil || node.Drain.ID != t.Drain {
		f.Kind, f.Why = NotDraining, "marked on a node that was not in that drain"
		w.find(e, f)
		return
	}
	w.judgeDue(e, f, t, node.Drain)
	w.judgeTurn(e, f, a, node)
	w.judgePlan(e, f, t, node.Drain)
}

// judgePlan finds marks planned against another revision of the drain, and marks without an
// evaluation.
func (w *Witness) judgePlan(e Entry, f Finding, t cluster.DesiredTransition, d *cluster.Drain) {
	revisions := planned(e, func(p Planned) bool { return p.Alloc == f.Alloc })
	if len(revisions) == 0 {
		return
	}
	bound := t.Class == cluster.MarkDeadline || t.Class == cluster.MarkForced || t.Class == cluster.MarkStage
	if bound && !slices.Contains(revisions, d.Revision) {
		f.Kind, f.Why = StaleRevision, fmt.Sprintf("planned against revision %d and marked at revision %d", revisions[0], d.Revision)
		w.find(e, f)
	}
	for eval := range e.After.EvalsByJob(f.Group.Job) {
		if eval.CreateIndex == e.Index && eval.Status == "pending" {
			return
		}
	}
	f.Kind, f.Why = NoEvaluation, "marked without an evaluation of its job in the same entry"
	w.find(e, f)
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
