package statestore

import (
	"errors"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// Errors of [Txn.ConfirmDrain].
var (
	// ErrDrainNotFound means that no record has the id.
	ErrDrainNotFound = errors.New("drain not found")
	// ErrDrainRuns means that the drain has not ended.
	ErrDrainRuns = errors.New("the drain has not ended")
)

// ConfirmStops confirms the ends of the lost allocations that a node must have stopped by now: see
// [cluster.ConfirmableAt]. It lowers the counts of the records that count them. Below
// [cluster.VersionOfConfirmation] it does nothing.
func (t *Txn) ConfirmStops(id cluster.NodeID, now time.Time) {
	t.rows.written.journals.at = now
	confirmations{rows: &t.rows}.stopped(id, now)
}

// ConfirmDrain confirms, on the request of an operator, that no task of an ended drain runs on its
// node. The record then counts no unconfirmed allocation. Those that are lost are confirmed, so the counts
// of other records of the node fall too. The others stay as they are. It returns how many allocations it
// confirmed: zero if the record counted none. If the servers do not reach the node, its later drains do not
// count its unlisted allocations; the client of a node in contact reports what it runs. From
// [cluster.VersionOfData] on the other records name the confirmation. The error is
// [ErrDrainNotFound] or [ErrDrainRuns].
func (t *Txn) ConfirmDrain(id cluster.DrainID, by string, at time.Time) (int, error) {
	d := t.State().DrainRecord(id)
	switch {
	case d == nil && nodeInDrain(t.rows.tables, id) != nil:
		return 0, ErrDrainRuns
	case d == nil:
		return 0, ErrDrainNotFound
	case d.CountUnconfirmed() == 0:
		return 0, nil
	}
	var rows []*cluster.Allocation
	for a := range t.State().DrainView().Unconfirmed(d.NodeID) {
		if d.CountsUnconfirmed(a) {
			rows = append(rows, a)
		}
	}
	confirmed := lifecycle.ConfirmByOperator(d, by, at)
	put(&t.rows, TableDrains, d, confirmed)
	journalWriter{&t.rows}.confirmed(d, confirmed)
	c := confirmations{rows: &t.rows}
	if versionIn(t.rows.tables) >= cluster.VersionOfData {
		c.operator = &cluster.OtherConfirmation{Drain: id, By: by, At: at.UTC()}
	}
	c.write(rows, at)
	if n := t.State().Node(d.NodeID); n != nil && !n.Reachable() && n.Unlisted.Len() > 0 && d.Unconfirmed.Unlisted.Len() > 0 {
		after := touchNode(n, at, t.rows.written.index)
		after.Unlisted = &cluster.UnlistedAllocs{}
		t.rows.putNode(n, after)
		c.unlisted(after, at)
	}
	return d.CountUnconfirmed(), nil
}

// confirmations writes the confirmations of one entry.
type confirmations struct {
	rows *rowWrites
	// operator is the confirmation of a drain that the records of other drains name, or nil.
	operator *cluster.OtherConfirmation
}

// confirmation is the end of an allocation that was confirmed. The row is from before the entry.
type confirmation struct {
	alloc *cluster.Allocation
	at    time.Time
}

// stopped is for [Txn.ConfirmStops].
func (c confirmations) stopped(id cluster.NodeID, now time.Time) {
	if versionIn(c.rows.tables) < cluster.VersionOfConfirmation {
		return
	}
	var rows []*cluster.Allocation
	n := c.rows.state().Node(id)
	for a := range c.rows.state().DrainView().Unconfirmed(id) {
		if cluster.IsConfirmable(a, n, now) {
			rows = append(rows, a)
		}
	}
	c.write(rows, now)
}

// nodeGone writes into the lost and the unknown allocations of a deleted node since when the
// servers have no contact with it. The row of the node had this time, if the node was back after
// the loss.
func (c confirmations) nodeGone(n *cluster.Node, at time.Time) {
	if versionIn(c.rows.tables) < cluster.VersionOfConfirmation {
		return
	}
	since, edits := at, editAllocs(c.rows)
	if !n.Reachable() {
		since = n.AwaySince
	}
	state := c.rows.state()
	rows := slices.Collect(state.DrainView().Unconfirmed(n.ID))
	for a := range state.WorkView().LiveAllocsByNode(n.ID) {
		if !a.AwaySince.IsZero() {
			rows = append(rows, a)
		}
	}
	for _, a := range rows {
		if since.After(a.AwaySince) {
			edits.edit(a, a.ModifyTime).AwaySince = since
		}
	}
	edits.write()
}

// write confirms the ends of unconfirmed allocations, and lowers the counts of records.
func (c confirmations) write(rows []*cluster.Allocation, at time.Time) {
	edits := editAllocs(c.rows)
	confirmed := make([]confirmation, len(rows))
	for i, a := range rows {
		confirmed[i] = confirmation{a, at}
		edits.edit(a, a.ModifyTime).ConfirmedAt = at.UTC()
	}
	edits.write()
	c.lower(confirmed)
}

// lower lowers the counts of the records of the nodes.
func (c confirmations) lower(confirmed []confirmation) {
	byNode, order := map[cluster.NodeID][]*cluster.Allocation{}, []confirmation{}
	for _, one := range confirmed {
		if byNode[one.alloc.NodeID] == nil {
			order = append(order, one)
		}
		byNode[one.alloc.NodeID] = append(byNode[one.alloc.NodeID], one.alloc)
	}
	for _, one := range order {
		c.lowerRecords(one.alloc.NodeID, func(d *cluster.Drain) *cluster.Drain { return lifecycle.Confirm(d, byNode[d.NodeID], one.at) })
	}
}

// unlisted lowers the counts of the records of a node by its report of unlisted allocations.
func (c confirmations) unlisted(n *cluster.Node, at time.Time) {
	c.lowerRecords(n.ID, func(d *cluster.Drain) *cluster.Drain { return lifecycle.ConfirmUnlisted(d, n.Unlisted, at) })
}

// lowerRecords writes the next rows of the records of a node. The function returns nil for a record that
// does not change.
func (c confirmations) lowerRecords(id cluster.NodeID, next func(*cluster.Drain) *cluster.Drain) {
	var before, after []*cluster.Drain
	for d := range c.rows.state().DrainsByNode(id) {
		if lowered := next(d); lowered != nil {
			if c.operator != nil {
				lowered = lifecycle.AttributeConfirmation(d, lowered, *c.operator)
			}
			before, after = append(before, d), append(after, lowered)
		}
	}
	for i := range after {
		put(c.rows, TableDrains, before[i], after[i])
		journalWriter{c.rows}.confirmed(before[i], after[i])
	}
}
