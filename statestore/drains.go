package statestore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// UpdateNodeDrain starts, updates or ends the drain of a node. The error is
// [ErrNodeNotFound], or means that the id of a new drain is missing or taken.
func (t *Txn) UpdateNodeDrain(u cluster.DrainUpdate) (cluster.DrainResult, error) {
	t.rows.written.journals.at = u.At
	n := t.State().Node(u.Node)
	if n == nil {
		return cluster.DrainResult{}, ErrNodeNotFound
	}
	if d := drainWithKey(t.State(), n, u.Key); d != nil {
		return cluster.DrainResult{Drain: d.ID, Repeated: true}, nil
	}
	switch {
	case u.Spec == nil:
		return t.cancelDrain(n, u), nil
	case n.Draining():
		t.rows.putNode(n, lifecycle.UpdateDrain(n, u, t.rows.written.index))
		journalWriter{&t.rows}.journal(n.Drain.ID).Plan = u.Plan
		return cluster.DrainResult{Drain: n.Drain.ID}, nil
	}
	started, err := lifecycle.StartDrain(n, u, t.rows.written.index)
	if err == nil {
		err = checkDrainID(t, u.Drain)
	}
	if err != nil {
		return cluster.DrainResult{}, err
	}
	if versionIn(t.rows.tables) >= cluster.VersionOfPauses {
		lifecycle.NoteEligibility(started, n)
	}
	t.rows.putNode(n, started)
	journalWriter{&t.rows}.journal(u.Drain).Plan = u.Plan
	return cluster.DrainResult{Drain: u.Drain}, nil
}

// drainWithKey returns the node's drain, running or recorded, that a request with the key
// has started or updated, or nil.
func drainWithKey(s State, n *cluster.Node, key string) *cluster.Drain {
	if n.Draining() && n.Drain.HasKey(key) {
		return n.Drain
	}
	for d := range s.DrainsByNode(n.ID) {
		if d.HasKey(key) {
			return d
		}
	}
	return nil
}

func checkDrainID(t *Txn, id cluster.DrainID) error {
	if t.State().DrainRecord(id) != nil || nodeInDrain(t.rows.tables, id) != nil {
		return fmt.Errorf("starting a drain: the id %s is taken", id)
	}
	return nil
}

// nodeInDrain returns the node whose running drain has the id, or nil.
func nodeInDrain(t *tables, id cluster.DrainID) *cluster.Node {
	return first[cluster.Node](t, TableNodes, indexLists, drainOfNode(id))
}

// cancelDrain ends the node's drain on the operator's request.
func (t *Txn) cancelDrain(n *cluster.Node, u cluster.DrainUpdate) cluster.DrainResult {
	c := lifecycle.CancelDrain(t.State().DrainView(), n, u, t.rows.written.index)
	before := make([]*cluster.Allocation, len(c.Withdrawn))
	for i, a := range c.Withdrawn {
		before[i] = t.State().Alloc(a.ID)
	}
	for i, a := range c.Withdrawn {
		t.rows.putAlloc(before[i], a)
	}
	result := cluster.DrainResult{Withdrawn: len(c.Withdrawn), Stopping: c.Stopping, Moved: c.Moved}
	if c.Record != nil {
		result.Drain = c.Record.ID
		t.rows.recordDrain(c.Record)
		t.rows.nameOutcome(c.Node, c.Record)
	}
	t.rows.putNode(n, c.Node)
	return result
}

// CompleteDrains ends drains that [rules.RecheckCompletions] has accepted in this state. An ending
// is ignored if its node does not exist or is not in that drain. The nodes stay ineligible.
func (t *Txn) CompleteDrains(at time.Time, endings []rules.Ending) {
	t.rows.written.journals.at = at
	for _, e := range endings {
		n := t.State().Node(e.Node)
		if n.Draining() {
			e.VolumesLeft = volumesLeft(t, n.Drain)
		}
		if after, record := lifecycle.EndDrain(n, e, at, t.rows.written.index); after != nil {
			t.rows.recordDrain(record)
			t.rows.nameOutcome(after, record)
			t.rows.putNode(n, after)
		}
	}
}

// nameOutcome adds the outcome to the event of a drain's end, from [cluster.VersionOfData] on.
func (t *rowWrites) nameOutcome(after *cluster.Node, record *cluster.Drain) {
	if versionIn(t.tables) >= cluster.VersionOfData {
		lifecycle.NameOutcome(after, record)
	}
}

// recordDrain writes the record of an ended drain. It deletes the oldest records above
// [cluster.MaxDrainRecordsPerNode] and [cluster.MaxDrainRecords].
func (t *rowWrites) recordDrain(d *cluster.Drain) {
	if versionIn(t.tables) < cluster.VersionOfConfirmation {
		d.Unconfirmed = nil
	}
	if versionIn(t.tables) < cluster.VersionOfData {
		d.DataNotCopied = nil
	}
	put(t, TableDrains, nil, d)
	t.written.journals.ended = append(t.written.journals.ended, d)
	t.counters.Records++
	if oldest := t.oldestBeyond(d.NodeID); oldest != nil {
		deleteRecord(t, oldest)
	}
	if t.counters.Records > cluster.MaxDrainRecords {
		deleteRecord(t, first[cluster.Drain](t.tables, TableDrains, indexAge, key{}))
	}
}

// deleteRecord deletes the record of an ended drain, and its journal.
func deleteRecord(t *rowWrites, d *cluster.Drain) {
	put(t, TableDrains, d, nil)
	t.counters.Records--
	journalWriter{t}.drop(d.ID)
}

// oldestBeyond returns the oldest record of the node if the node has too many, or nil.
func (t *rowWrites) oldestBeyond(id cluster.NodeID) *cluster.Drain {
	var oldest *cluster.Drain
	count := 0
	for d := range t.state().DrainsByNode(id) {
		if count++; count == 1 {
			oldest = d
		}
	}
	if count <= cluster.MaxDrainRecordsPerNode {
		return nil
	}
	return oldest
}

// ApplyMarks marks allocations, counts the marks in their drains, and upserts the
// evaluations that act on them. [rules.Recheck] has accepted the marks in this state. A mark
// that [lifecycle.CanMark] rejects is ignored. The error is that of UpsertEvals.
func (t *Txn) ApplyMarks(at time.Time, marks []rules.Mark, evals []*cluster.Evaluation) error {
	t.rows.written.journals.at = at
	at = at.UTC()
	allocs, nodes := editAllocs(&t.rows), editDrainingNodes(&t.rows)
	for _, m := range marks {
		a := allocs.row(m.Alloc)
		if a == nil || !lifecycle.CanMark(nodes.row(a.NodeID), a, m) {
			continue
		}
		lifecycle.ApplyMark(nodes.edit(a.NodeID), allocs.edit(a, at), m, at, t.rows.written.index)
	}
	allocs.write()
	nodes.write()
	return t.UpsertEvals(evals)
}

// markRow means that a drain has marked an allocation. It is a separate row instead of an index of
// allocations, so that later writes to the allocation do not write it again.
type markRow struct {
	Drain cluster.DrainID
	Alloc cluster.AllocID
}

// markOf returns the allocation's mark, zero if no drain has marked it.
func markOf(a *cluster.Allocation) markRow {
	if a == nil || !a.MarkedBy(a.DesiredTransition.Drain) {
		return markRow{}
	}
	return markRow{a.DesiredTransition.Drain, a.ID}
}

// accountMark updates the rows of marks.
func (t *rowWrites) accountMark(before, after *cluster.Allocation) {
	was, is := markOf(before), markOf(after)
	if was == is {
		return
	}
	if was != (markRow{}) {
		t.delete(tableMarks, &was)
	}
	if is != (markRow{}) {
		t.insert(tableMarks, &is)
	}
}

// ErrNotDraining means that a node does not drain. Start a drain first.
var ErrNotDraining = errors.New("node does not drain")

// ErrNotPausable is wrapped by errors that refuse the pause of a drain. Cancel the drain instead, or change its
// deadline.
var ErrNotPausable = errors.New("drain cannot be paused")

// PauseDrains pauses or resumes one drain, or all. The error wraps [ErrNodeNotFound], [ErrNotDraining] or
// [ErrNotPausable].
func PauseDrains(t *Txn, u cluster.DrainPauseUpdate) (cluster.DrainPauseResult, error) {
	u.At = u.At.UTC()
	w := pauseWriter{&t.rows, t.State()}
	w.rows.written.journals.at = u.At
	w.rows.written.journals.pausing = true
	switch {
	case u.Node != "":
		return w.one(u)
	case u.Pause:
		return w.all(u), nil
	}
	return w.resumeAll(u), nil
}

// pauseWriter writes the pauses of one transaction.
type pauseWriter struct {
	rows *rowWrites
	// before is the state before the request.
	before State
}

// one pauses or resumes one drain.
func (w pauseWriter) one(u cluster.DrainPauseUpdate) (cluster.DrainPauseResult, error) {
	n, all := w.before.Node(u.Node), w.before.DrainView().DrainPause()
	switch {
	case n == nil:
		return cluster.DrainPauseResult{}, fmt.Errorf("node %s: %w", u.Node, ErrNodeNotFound)
	case !n.Draining():
		return cluster.DrainPauseResult{}, fmt.Errorf("node %s: %w", u.Node, ErrNotDraining)
	}
	since := n.Drain.PausedSince(all)
	if why := n.Drain.WhyNotPaused(u.At); u.Pause && since.IsZero() && why != "" {
		return cluster.DrainPauseResult{}, fmt.Errorf("node %s: %w: %s", u.Node, ErrNotPausable, why)
	}
	result := cluster.DrainPauseResult{All: all}
	after, kind := n, journal.Paused
	switch {
	case u.Pause:
		if paused := lifecycle.PauseDrain(n, all, u, w.rows.written.index); paused != nil {
			after = paused
		}
	case !since.IsZero() && !all.Holds(n.Drain):
		after, kind = lifecycle.ResumeDrain(n, since, u.At, w.rows.written.index), journal.Resumed
	}
	if after != n {
		result.Changed = true
		w.rows.putNode(n, after)
		w.note(n.Drain.ID, kind, u.At, u.By)
	}
	result.Drains = []cluster.PausedDrain{w.describe(after)}
	return result, nil
}

// all pauses all drains with one row. It makes no drain's row newer, so it wakes the feeds of all.
func (w pauseWriter) all(u cluster.DrainPauseUpdate) cluster.DrainPauseResult {
	result := cluster.DrainPauseResult{All: w.before.DrainView().DrainPause()}
	if result.All == nil {
		result.All, result.Changed = &cluster.DrainPause{At: u.At, By: u.By}, true
		w.rows.insert(tablePause, &pauseRow{*result.All})
		w.touchAll()
	}
	for n := range w.before.DrainView().DrainingNodes() {
		described := w.describe(n)
		if !result.All.Holds(n.Drain) {
			described.Why = n.Drain.WhyNotPaused(result.All.At)
			result.Skipped = append(result.Skipped, described)
			continue
		}
		result.Drains = append(result.Drains, described)
	}
	return result
}

// resumeAll ends the pause of all.
func (w pauseWriter) resumeAll(u cluster.DrainPauseUpdate) cluster.DrainPauseResult {
	var result cluster.DrainPauseResult
	all := w.before.DrainView().DrainPause()
	if all == nil {
		return result
	}
	result.Changed = true
	w.rows.delete(tablePause, &pauseRow{*all})
	w.touchAll()
	for _, n := range slices.Collect(w.before.DrainView().DrainingNodes()) {
		if !all.Holds(n.Drain) {
			continue
		}
		if n.Drain.Paused != nil {
			continue // its pause has the earlier time of both
		}
		since := n.Drain.PausedSince(all)
		after := lifecycle.ResumeDrain(n, since, u.At, w.rows.written.index)
		w.rows.putNode(n, after)
		w.note(n.Drain.ID, journal.Paused, since, all.By)
		w.note(n.Drain.ID, journal.Resumed, u.At, u.By)
		result.Drains = append(result.Drains, w.describe(after))
	}
	return result
}

// touchAll moves the index of nodes and makes the feeds report all draining nodes.
func (w pauseWriter) touchAll() {
	w.rows.counters.Nodes = w.rows.written.index
	for n := range w.before.DrainView().DrainingNodes() {
		w.rows.written.changes.nodes = append(w.rows.written.changes.nodes, n.ID)
	}
}

// note adds an event to the journal of a drain.
func (w pauseWriter) note(id cluster.DrainID, kind journal.Kind, at time.Time, by string) {
	journalWriter{w.rows}.journal(id).Add(journal.Event{Kind: kind, At: at, Index: w.rows.written.index, By: by})
}

func (w pauseWriter) describe(n *cluster.Node) cluster.PausedDrain {
	d := cluster.PausedDrain{Drain: n.Drain.ID, Node: n.ID, ForceDeadline: n.Drain.Strategy.ForceDeadline}
	for a := range w.before.DrainView().DrainAllocs(n.Drain.ID) {
		if !a.ClientTerminal() {
			d.Stopping++
		}
	}
	return d
}

// pauseRow is the pause of all drains. There is at most one.
type pauseRow struct{ cluster.DrainPause }

func pauseID(*pauseRow) key { return key{0} }
