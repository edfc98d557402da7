package statestore

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// nodeReads reads nodes, the records of their drains, and the usage of nodes.
type nodeReads struct{ *tables }

// Node returns the node, or nil.
func (r nodeReads) Node(id cluster.NodeID) *cluster.Node {
	return first[cluster.Node](r.tables, TableNodes, indexID, lone(id))
}

// Nodes yields all nodes by id.
func (r nodeReads) Nodes() iter.Seq[*cluster.Node] {
	return scan[cluster.Node](r.tables, TableNodes, indexID, nil)
}

// NodesByPrefix yields the nodes whose id begins with the prefix, by id.
func (r nodeReads) NodesByPrefix(prefix string) iter.Seq[*cluster.Node] {
	return scan[cluster.Node](r.tables, TableNodes, indexID, key{}.open(prefix))
}

// DrainingNodes yields the nodes that drain, by id.
func (r nodeReads) DrainingNodes() iter.Seq[*cluster.Node] {
	return scan[cluster.Node](r.tables, TableNodes, indexLists, key{listDraining})
}

// DrainingNode returns the node whose running drain has the id, or nil.
func (r nodeReads) DrainingNode(id cluster.DrainID) *cluster.Node {
	return first[cluster.Node](r.tables, TableNodes, indexLists, drainOfNode(id))
}

// Drains yields the records of ended drains by (EndIndex, id): oldest first.
func (r nodeReads) Drains() iter.Seq[*cluster.Drain] {
	return scan[cluster.Drain](r.tables, TableDrains, indexAge, nil)
}

// DrainsByNode yields the records of a node's ended drains, oldest first. The node may be
// deleted.
func (r nodeReads) DrainsByNode(id cluster.NodeID) iter.Seq[*cluster.Drain] {
	return scan[cluster.Drain](r.tables, TableDrains, indexNode, newKey(id))
}

// DrainRecord returns the record of an ended drain, or nil if the drain runs, never existed,
// or its record was deleted.
func (r nodeReads) DrainRecord(id cluster.DrainID) *cluster.Drain {
	return first[cluster.Drain](r.tables, TableDrains, indexID, lone(id))
}
