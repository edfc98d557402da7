package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// ApplyMarks asks allocations to leave their nodes, counts the marks in their
// drains, and upserts the evaluations that act on them. The marks have been
// accepted in this state, see [rules.Recheck]. One that cannot be: of an
// allocation that does not exist, has ended or was asked already, of no class, or
// whose node is not in that drain, changes nothing. The error is that of
// UpsertEvals.
func (t *Txn) ApplyMarks(at time.Time, marks []rules.Mark, evals []*cluster.Evaluation) error {
	at = at.UTC()
	allocs, nodes := t.editAllocs(), t.editDrainingNodes()
	for _, m := range marks {
		a := allocs.look(m.Alloc)
		if a == nil || !lifecycle.CanMark(nodes.look(a.NodeID), a, m) {
			continue
		}
		lifecycle.ApplyMark(nodes.edit(a.NodeID), allocs.edit(a, at), m, at, t.written.index)
	}
	allocs.write()
	nodes.write()
	return t.UpsertEvals(evals)
}

// markRow says that a drain has marked an allocation. It is a row of its own, so that
// what becomes of the allocation afterwards does not have to be written for the sake of
// whoever asks for what its drain has marked: few do, and seldom.
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

// accountMark keeps what drains have marked.
func (t *Txn) accountMark(before, after *cluster.Allocation) {
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
