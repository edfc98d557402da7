package statestore

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
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
