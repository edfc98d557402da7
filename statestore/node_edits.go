package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// drainingNodeEdits collects the changes of one entry to draining nodes. Each row is written
// once, see [allocEdits].
type drainingNodeEdits struct {
	txn *Txn
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

func (t *Txn) editDrainingNodes() *drainingNodeEdits {
	return &drainingNodeEdits{txn: t, nodes: make(map[cluster.NodeID]*nodeEdit)}
}

// look returns the node with its edits so far, or nil if it does not drain. The caller does
// not change it.
func (e *drainingNodeEdits) look(id cluster.NodeID) *cluster.Node {
	edit, known := e.nodes[id]
	if !known {
		if n := e.txn.Node(id); n.Draining() {
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

// edit returns a copy of the node that look returned. The caller changes the copy.
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
		e.txn.putNode(edit.before, edit.after)
	}
}
