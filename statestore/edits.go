package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// allocEdits gathers what one entry does to allocations, so that each row is
// written once however many parts of the entry touch it, and all rows are read
// before the first is written: go-memdb copies and tracks the nodes of its trees
// anew after each read between two writes.
type allocEdits struct {
	txn *Txn
	// order holds the edits in the order in which they were begun.
	order []*allocEdit
	byID  map[cluster.AllocID]*allocEdit
}

type allocEdit struct {
	// before is the row as the store has it, or nil for a new one.
	before *cluster.Allocation
	after  *cluster.Allocation
}

func (t *Txn) editAllocs() *allocEdits {
	return &allocEdits{txn: t, byID: make(map[cluster.AllocID]*allocEdit)}
}

// look returns the allocation as edited so far, or nil. It is not written to.
func (e *allocEdits) look(id cluster.AllocID) *cluster.Allocation {
	if edit := e.byID[id]; edit != nil {
		return edit.after
	}
	return e.txn.Alloc(id)
}

// edit returns a copy of an existing allocation, to be written to.
func (e *allocEdits) edit(a *cluster.Allocation, at time.Time) *cluster.Allocation {
	edit := e.byID[a.ID]
	if edit == nil {
		edit = e.begin(a, a.Copy())
	}
	edit.after.ModifyTime = at
	edit.after.ModifyIndex = e.txn.written.index
	return edit.after
}

// create adds a new allocation. The caller does not write to it any more.
func (e *allocEdits) create(a *cluster.Allocation) { e.begin(nil, a) }

func (e *allocEdits) begin(before, after *cluster.Allocation) *allocEdit {
	edit := &allocEdit{before: before, after: after}
	e.order = append(e.order, edit)
	e.byID[after.ID] = edit
	return edit
}

// write puts the edited rows.
func (e *allocEdits) write() {
	for _, edit := range e.order {
		e.txn.putAlloc(edit.before, edit.after)
	}
}
