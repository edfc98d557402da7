package witness

import (
	"fmt"
	"iter"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// drain is the witness's record of one drain.
type drain struct {
	DrainReport
	ended bool
	// counted is what the record counts as unconfirmed, after the end.
	counted counted
}

// observeNode follows the drain of a node.
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
	switch {
	case after == nil:
	case before == nil || after.ID != before.ID:
		w.observeStart(e, after)
	default:
		w.judgeStrategy(e, before, after)
	}
}

func (w *Witness) observeStart(e Entry, d *cluster.Drain) {
	f := Finding{Kind: SecondOutcome, Drain: d.ID, Node: d.NodeID}
	if e.Source != UnknownSource && e.Source != Operator {
		f.Why = "a drain started without a request"
		w.find(e, f)
	}
	if d.Revision != cluster.Revision(e.Index) {
		f.Kind, f.Why = RevisionMoved, fmt.Sprintf("the drain started at index %d with revision %d", e.Index, d.Revision)
		w.find(e, f)
	}
	if w.drains[d.ID] != nil {
		f.Kind, f.Why = SecondOutcome, "a drain's id was used again"
		w.find(e, f)
		return
	}
	w.drains[d.ID] = &drain{DrainReport: DrainReport{
		ID: d.ID, Node: d.NodeID, NodeName: d.NodeName, StartedAt: d.Strategy.StartedAt, StartIndex: e.Index,
	}}
}

// judgeStrategy judges the change of a drain that runs on. A request gives it a new strategy and a
// new revision: the index of the entry.
func (w *Witness) judgeStrategy(e Entry, was, is *cluster.Drain) {
	a, b := &was.Strategy, &is.Strategy
	same := a.DrainSpec == b.DrainSpec && a.ForceDeadline.Equal(b.ForceDeadline) && a.StartedAt.Equal(b.StartedAt) && was.UpdatedAt.Equal(is.UpdatedAt)
	f := Finding{Kind: RevisionMoved, Drain: is.ID, Node: is.NodeID}
	switch {
	case same && is.Revision == was.Revision:
		return
	case e.Source != UnknownSource && e.Source != Operator:
		f.Why = fmt.Sprintf("the strategy or the revision changed from %d to %d without a request", was.Revision, is.Revision)
	case is.Revision != cluster.Revision(e.Index) || !a.StartedAt.Equal(b.StartedAt):
		f.Why = fmt.Sprintf("the strategy was written at index %d, but the drain has revision %d, start %s", e.Index, is.Revision, b.StartedAt)
	default:
		return
	}
	w.find(e, f)
}

// judgeCounts compares the counts of the running drains with the marks and the purges of the log.
func (w *Witness) judgeCounts(e Entry, nodes []cluster.NodeID, allocs []cluster.AllocID) {
	purged := make(map[cluster.NodeID]int)
	for _, id := range allocs {
		if a := e.Before.Alloc(id); a != nil && (opinion.Live(a) || opinion.Unconfirmed(a) && counts(e.Before)) && e.After.Alloc(id) == nil {
			purged[a.NodeID]++
			confirmations{w, e}.judgeGone(a)
		}
	}
	for _, id := range nodes {
		n := e.After.Node(id)
		if n == nil || n.Drain == nil || w.drains[n.Drain.ID] == nil {
			continue
		}
		w.judgeMarked(e, n.Drain)
		was := drainOn(e.Before, id, n.Drain.ID)
		if was == nil {
			continue
		}
		if got := n.Drain.PurgedRunning - was.PurgedRunning; got != purged[id] {
			w.find(e, Finding{Kind: MiscountedPurged, Drain: n.Drain.ID, Node: id, Why: fmt.Sprintf(
				"the drain counts %d more allocations that ran when they were purged, and there were %d", got, purged[id])})
		}
	}
}

// judgeMarked compares the marks that a drain counts with those of the log, and continues with the
// count of the drain.
func (w *Witness) judgeMarked(e Entry, d *cluster.Drain) {
	if counted := w.drains[d.ID]; counted.Marked != d.Marked {
		w.find(e, Finding{Kind: MiscountedMarks, Drain: d.ID, Node: d.NodeID, Why: fmt.Sprintf(
			"the drain counts the marks %v, but it made %v", d.Marked, counted.Marked)})
		counted.Marked = d.Marked
	}
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
	revisions := planned(e, func(p Planned) bool { return p.Alloc == "" && p.Node == running.NodeID })
	if len(revisions) > 0 && !slices.Contains(revisions, running.Revision) {
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
	deleted := e.After.Node(running.NodeID) == nil
	if e.Source != UnknownSource && e.Source != Operator && !deleted && len(revisions) == 0 {
		f.Kind, f.Why = EndedWithoutCause, fmt.Sprintf("an entry that ends no drains ended it as %q", record.Outcome)
		w.find(e, f)
		return
	}
	w.judgeEnd(e, d, running, record)
}

// judgeEnd judges the record of an ended drain.
func (w *Witness) judgeEnd(e Entry, d *drain, running, record *cluster.Drain) {
	f := Finding{Kind: UntrueOutcome, Drain: record.ID, Node: running.NodeID}
	left, expected := 0, cluster.Outcome("")
	unconfirmed := confirmations{w, e}.judgeUnconfirmed(d, running, record)
	switch after := e.After.Node(running.NodeID); {
	case after == nil:
		expected, left = cluster.OutcomeNodeGone, countLeft(e, running)
	case e.Source == Operator, e.Source == UnknownSource && record.Outcome == cluster.OutcomeCancelled:
		expected, left = cluster.OutcomeCancelled, w.judgeCancelled(e, running)
	default:
		left = w.judgeLeft(e, record)
		expected = w.outcomeOf(d, record, left, unconfirmed)
		if was := e.Before.Node(running.NodeID); was.SchedulingEligibility != after.SchedulingEligibility {
			w.find(e, Finding{Kind: MadeEligible, Drain: f.Drain, Node: f.Node, Why: "the end of the drain made its node " + string(after.SchedulingEligibility)})
		}
	}
	switch {
	case record.Outcome != expected:
		f.Why = fmt.Sprintf("the outcome is %q, but with its marks %v, %d allocations left and %d unconfirmed it must be %q", record.Outcome, d.Marked, left, unconfirmed, expected)
		w.find(e, f)
	case record.NodeID != running.NodeID || record.Revision != running.Revision || record.EndIndex != e.Index || !e.At.IsZero() && !record.EndedAt.Equal(e.At):
		f.Why = fmt.Sprintf("the record has node %s, revision %d, end %s and index %d; the drain ended on node %s with revision %d at %s and index %d",
			record.NodeID, record.Revision, record.EndedAt, record.EndIndex, running.NodeID, running.Revision, e.At, e.Index)
		w.find(e, f)
	}
	if left != record.StillStopping {
		f.Kind, f.Why = MiscountedStopping, fmt.Sprintf("the record counts %d allocations still stopping, but there were %d", record.StillStopping, left)
		w.find(e, f)
	}
	if volumes, has := e.After.(opinion.Volumes); has && expected != cluster.OutcomeCancelled {
		if named, left := volumesNamed(record), volumesLeft(e.After, volumes, record); named != left {
			f.Kind, f.Why = MiscountedVolumes, fmt.Sprintf("the record names %d volumes left on the node, but there were %d", named, left)
			w.find(e, f)
		}
	}
	if expected != cluster.OutcomeCancelled {
		judgeData(w, e, record)
	}
	w.judgeMarked(e, record)
}

// outcomeOf returns the correct outcome of an ended drain with that many allocations left and
// unconfirmed, which contain those left. The deadline or force gave up the allocations left, even if it
// marked nothing.
func (w *Witness) outcomeOf(d *drain, record *cluster.Drain, left, unconfirmed int) cluster.Outcome {
	givenUp := left > 0 && !w.options.MarkedIsComplete
	switch deadline := record.Strategy.Deadline; {
	case d.Marked[cluster.MarkForced] > 0, givenUp && deadline < 0 && d.Marked[cluster.MarkDeadline] == 0:
		return cluster.OutcomeForced
	case d.Marked[cluster.MarkDeadline] > 0, givenUp && deadline > 0:
		return cluster.OutcomeDeadlineReached
	case unconfirmed > left && !w.options.MarkedIsComplete:
		return cluster.OutcomeUnconfirmed
	}
	return cluster.OutcomeComplete
}

// judgeLeft judges and counts the live allocations on the node of a drain that ended
// complete, at its deadline or by force.
func (w *Witness) judgeLeft(e Entry, record *cluster.Drain) (left int) {
	node := e.After.Node(record.NodeID)
	awaited := 0
	var first cluster.AllocID // the lowest awaited id
	for a := range leaving(e.After, record) {
		left++
		if w.options.MarkedIsComplete && opinion.Leaving(a) || w.waitOver(a, node, record, record.EndedAt) {
			continue
		}
		if awaited++; first == "" || a.ID < first {
			first = a.ID
		}
	}
	if awaited > 0 {
		w.find(e, Finding{Kind: EndedEarly, Drain: record.ID, Node: record.NodeID, Alloc: first, Why: fmt.Sprintf(
			"the drain ended as %q while it still had to wait for %d of its allocations", record.Outcome, awaited)})
	}
	if w.options.MarkedIsComplete || opinion.Passed(record, record.EndedAt) {
		return left
	}
	for a := range e.After.AllocsByNode(record.NodeID) {
		if _, may := opinion.MayMove(a, e.After); may && keepsForDrain(a, record) {
			w.find(e, Finding{Kind: EndedEarly, Drain: record.ID, Node: record.NodeID, Alloc: a.ID, Why: fmt.Sprintf(
				"the drain ended as %q while the data of an allocation was on the way to its replacement", record.Outcome)})
		}
	}
	return left
}

// countLeft counts the live allocations that a drain had to wait for.
func countLeft(e Entry, d *cluster.Drain) (left int) {
	for range leaving(e.After, d) {
		left++
	}
	return left
}

// leaving yields the live allocations on the node of a drain that the drain has to wait for.
func leaving(s State, d *cluster.Drain) iter.Seq[*cluster.Allocation] {
	return func(yield func(*cluster.Allocation) bool) {
		for a := range s.AllocsByNode(d.NodeID) {
			if opinion.Live(a) && hasToLeave(a, d, s) && !yield(a) {
				return
			}
		}
	}
}

// judgeCancelled finds marks that a cancel left, and counts the marked allocations that already
// stop.
func (w *Witness) judgeCancelled(e Entry, d *cluster.Drain) (stopping int) {
	for a := range e.After.AllocsByNode(d.NodeID) {
		switch t := a.DesiredTransition; {
		case opinion.RequestedBy(a, d) && opinion.Live(a):
			f := findingOf(a)
			f.Kind, f.Drain, f.Why = NotWithdrawn, d.ID, "the cancel left its request for a replacement"
			w.find(e, f)
		case !opinion.Live(a) || !t.Migrate || t.Drain != d.ID:
		case opinion.Stopping(a):
			stopping++
		default:
			f := findingOf(a)
			f.Kind, f.Why = NotWithdrawn, "the cancel left its mark"
			w.find(e, f)
		}
	}
	return stopping
}

// volumesNamed counts the volumes that the record of a drain names.
func volumesNamed(record *cluster.Drain) int {
	if record.VolumesLeft == nil {
		return 0
	}
	return len(record.VolumesLeft.Volumes) + record.VolumesLeft.More
}

// volumesLeft counts the claimed volumes that may be on the node at the end of its drain, except
// volumes of allocations that the request excluded.
func volumesLeft(s State, volumes opinion.Volumes, record *cluster.Drain) (left int) {
	for c := range volumes.ClaimsOnNode(record.NodeID) {
		a := s.Alloc(c.Alloc)
		excluded := a != nil && opinion.StageOf(a) == opinion.System && record.Strategy.IgnoreSystemJobs
		if !excluded && (c.State == cluster.ClaimTaken || c.State == cluster.ClaimUnpublishing) {
			left++
		}
	}
	return left
}
