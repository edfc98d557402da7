package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// allocEdits collects the changes of one entry to allocations. Each row is written once. All rows
// are read before the first write, because a read between two writes makes go-memdb copy and track
// tree nodes again.
type allocEdits struct {
	rows *rowWrites
	// order holds the edits in the order of their creation.
	order []*allocEdit
	byID  map[cluster.AllocID]*allocEdit
}

type allocEdit struct {
	// before is the stored row, or nil for a new allocation.
	before *cluster.Allocation
	after  *cluster.Allocation
}

func editAllocs(rows *rowWrites) *allocEdits {
	return &allocEdits{rows: rows, byID: make(map[cluster.AllocID]*allocEdit)}
}

// row returns the allocation with its edits so far, or nil. The caller does not change it.
func (e *allocEdits) row(id cluster.AllocID) *cluster.Allocation {
	if edit := e.byID[id]; edit != nil {
		return edit.after
	}
	return e.rows.state().Alloc(id)
}

// edit returns a copy of an existing allocation. The caller changes the copy.
func (e *allocEdits) edit(a *cluster.Allocation, at time.Time) *cluster.Allocation {
	edit := e.byID[a.ID]
	if edit == nil {
		edit = e.begin(a, a.Copy())
	}
	edit.after.ModifyTime = at
	edit.after.ModifyIndex = e.rows.written.index
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
		e.rows.putAlloc(edit.before, edit.after)
	}
}

// drainingNodeEdits collects the changes of one entry to draining nodes. Each row is written
// once, see [allocEdits].
type drainingNodeEdits struct {
	rows *rowWrites
	// nodes caches look-ups; nil for a node that does not drain.
	nodes map[cluster.NodeID]*nodeEdit
	// order holds the edited nodes in the order of their first edit.
	order []*nodeEdit
}

type nodeEdit struct {
	before *cluster.Node
	// after is the node's next row, or nil before the first edit.
	after *cluster.Node
}

func editDrainingNodes(rows *rowWrites) *drainingNodeEdits {
	return &drainingNodeEdits{rows: rows, nodes: make(map[cluster.NodeID]*nodeEdit)}
}

// row returns the node with its edits so far, or nil if it does not drain. The caller does
// not change it.
func (e *drainingNodeEdits) row(id cluster.NodeID) *cluster.Node {
	edit, cached := e.nodes[id]
	if !cached {
		if n := e.rows.state().Node(id); n.Draining() {
			edit = &nodeEdit{before: n}
		}
		e.nodes[id] = edit
	}
	switch {
	case edit == nil:
		return nil
	case edit.after == nil:
		return edit.before
	}
	return edit.after
}

// edit returns a copy of the node that row returned. The caller changes the copy.
func (e *drainingNodeEdits) edit(id cluster.NodeID) *cluster.Node {
	edit := e.nodes[id]
	if edit.after == nil {
		edit.after = edit.before.Copy()
		e.order = append(e.order, edit)
	}
	return edit.after
}

// write puts the edited nodes.
func (e *drainingNodeEdits) write() {
	for _, edit := range e.order {
		e.rows.putNode(edit.before, edit.after)
	}
}
