package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// drainingNodeEdits gathers what one entry counts in running drains, so that the row of
// each node is written once, see [allocEdits].
type drainingNodeEdits struct {
	txn *Txn
	// nodes holds what was looked up, nil for a node that does not drain.
	nodes map[cluster.NodeID]*nodeEdit
	// order holds the nodes that are edited, in the order of the edits.
	order []*nodeEdit
}

type nodeEdit struct {
	before *cluster.Node
	// after is the node's next row, or nil while nothing was edited.
	after *cluster.Node
}

func (t *Txn) editDrainingNodes() *drainingNodeEdits {
	return &drainingNodeEdits{txn: t, nodes: make(map[cluster.NodeID]*nodeEdit)}
}

// look returns the node as edited so far, or nil if it does not drain. It is not written to.
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

// edit returns a copy of the node that look returned, to be written to.
func (e *drainingNodeEdits) edit(id cluster.NodeID) *cluster.Node {
	edit := e.nodes[id]
	if edit.after == nil {
		edit.after = edit.before.Copy()
		e.order = append(e.order, edit)
	}
	return edit.after
}

// write puts the nodes that were edited.
func (e *drainingNodeEdits) write() {
	for _, edit := range e.order {
		e.txn.putNode(edit.before, edit.after)
	}
}
