package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// ApplyMarks marks allocations, counts the marks in their drains, and upserts the
// evaluations that act on them. [rules.Recheck] has accepted the marks in this state. A mark
// that [lifecycle.CanMark] rejects is ignored. The error is that of UpsertEvals.
func (t *Txn) ApplyMarks(at time.Time, marks []rules.Mark, evals []*cluster.Evaluation) error {
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
