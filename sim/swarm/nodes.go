package swarm

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// drawNodes draws the number of nodes. Their capacity is drawn after their allocations.
func (m *population) drawNodes() {
	d := m.draft.dice("nodes")
	count := d.within(m.draft.shape.nodes)
	for i := range count {
		n := &node{id: m.nodeID(i + 1)}
		if m.draft.has(classes) {
			n.class = one(d, "a", "a", "b")
		}
		m.nodes = append(m.nodes, n)
	}
	spares := d.between(0, m.draft.shape.spares)
	if m.draft.has(nodeRegister) {
		spares++
	}
	for i := range spares {
		m.spare = append(m.spare, m.nodeID(count+i+1))
	}
}

func (m *population) nodeID(number int) cluster.NodeID {
	return cluster.NodeID(fmt.Sprintf("n%d", number))
}

// drawCapacity declares the nodes with room for their allocations.
func (m *population) drawCapacity() {
	d := m.draft.dice("capacity")
	// By the number of allocations or by their requests; plenty otherwise.
	byNumber := d.odds(0.5)
	least := d.between(0, 3)
	for _, n := range m.nodes {
		declared := scenario.Node{IDs: []cluster.NodeID{n.id}, Class: n.class}
		if m.draft.has(tight) {
			spare := least + d.between(0, 2)
			if byNumber {
				declared.MaxAllocs = max(1, n.load+spare)
			} else {
				declared.CPU = max(1, n.cpu+int64(spare)*usualCPU)
			}
		}
		if m.draft.has(oddNodes) && d.odds(0.1) {
			declared.Ineligible = d.odds(0.7)
			if !declared.Ineligible {
				declared.Status = cluster.NodeInitializing
			}
		}
		m.draft.s.Nodes = append(m.draft.s.Nodes, declared)
	}
	for _, id := range m.spare {
		m.draft.s.Nodes = append(m.draft.s.Nodes, scenario.Node{IDs: []cluster.NodeID{id}, Unregistered: true})
	}
}

// spots draws nodes of the classes for n allocations of a group. Most groups are spread; a few share
// few nodes.
func (m *population) spots(d dice, n int, classes []string) []*node {
	var fit []*node
	for _, node := range m.nodes {
		if fits(classes, node.class) {
			fit = append(fit, node)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	if d.odds(0.2) {
		fit = some(d, max(1, n/3), fit)
	}
	spots := make([]*node, n)
	for i := range spots {
		spots[i] = one(d, fit...)
		if other := one(d, fit...); other.load < spots[i].load {
			spots[i] = other
		}
		spots[i].load++
	}
	return spots
}

// fits reports whether a group that is limited to classes may run on a node of the class.
func fits(allowed []string, class string) bool {
	return len(allowed) == 0 || slices.Contains(allowed, class)
}
