package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// allocEdits collects the changes of one entry to allocations. Each row is written once. All rows
// are read before the first write, because a read between two writes makes go-memdb copy and track
// tree nodes again.
type allocEdits struct {
	txn *Txn
	// order holds the edits in the order of their creation.
	order []*allocEdit
	byID  map[cluster.AllocID]*allocEdit
}

type allocEdit struct {
	// before is the stored row, or nil for a new allocation.
	before *cluster.Allocation
	after  *cluster.Allocation
}

func (t *Txn) editAllocs() *allocEdits {
	return &allocEdits{txn: t, byID: make(map[cluster.AllocID]*allocEdit)}
}

// look returns the allocation with its edits so far, or nil. The caller does not change it.
func (e *allocEdits) look(id cluster.AllocID) *cluster.Allocation {
	if edit := e.byID[id]; edit != nil {
		return edit.after
	}
	return e.txn.Alloc(id)
}

// edit returns a copy of an existing allocation. The caller changes the copy.
func (e *allocEdits) edit(a *cluster.Allocation, at time.Time) *cluster.Allocation {
	edit := e.byID[a.ID]
	if edit == nil {
		edit = e.begin(a, a.Copy())
	}
	edit.after.ModifyTime = at
	edit.after.ModifyIndex = e.txn.written.index
	return edit.after
}

// create adds a new allocation. The caller must not change it afterwards.
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
