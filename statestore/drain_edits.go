package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// drainEdits gathers what one entry counts in running drains, so that the row of
// each node is written once, see [allocEdits].
type drainEdits struct {
	txn *Txn
	// nodes holds what was looked up, nil for a node that does not drain.
	nodes map[cluster.NodeID]*drainEdit
	// order holds the nodes whose drain is edited, in the order of the edits.
	order []*drainEdit
}

type drainEdit struct {
	before *cluster.Node
	// after is the node's next row, or nil while nothing was edited.
	after *cluster.Node
}

func (t *Txn) editDrains() *drainEdits {
	return &drainEdits{txn: t, nodes: make(map[cluster.NodeID]*drainEdit)}
}

// look returns the drain that runs on the node, or nil. It is not written to.
func (e *drainEdits) look(id cluster.NodeID) *cluster.Drain {
	edit, known := e.nodes[id]
	if !known {
		if n := e.txn.Node(id); n.Draining() {
			edit = &drainEdit{before: n}
		}
		e.nodes[id] = edit
	}
	switch {
	case edit == nil:
		return nil
	case edit.after == nil:
		return edit.before.Drain
	}
	return edit.after.Drain
}

// edit returns a copy of the drain that look returned, to be written to.
func (e *drainEdits) edit(id cluster.NodeID) *cluster.Drain {
	edit := e.nodes[id]
	if edit.after == nil {
		edit.after = edit.before.Copy()
		edit.after.ModifyIndex = e.txn.written.index
		e.order = append(e.order, edit)
	}
	return edit.after.Drain
}

// write puts the nodes whose drain was edited.
func (e *drainEdits) write() {
	for _, edit := range e.order {
		e.txn.putNode(edit.before, edit.after)
	}
}
