package swarm

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// oddsOfPorts is the probability that groups of a world request ports. The other worlds draw what they drew
// without.
const oddsOfPorts = 0.2

// drawPorts lets groups use ports. Each node has a few dynamic ports more than its allocations use, and two jobs
// may want the same static port. Allocations of the beginning that share a node get no static port.
func drawPorts(m *population) {
	d := m.draft.dice("ports")
	if !d.odds(oddsOfPorts) {
		return
	}
	most, alone := map[cluster.NodeID]int{}, map[cluster.GroupKey]bool{}
	for j, g := range m.draft.s.EachGroup() {
		if g.Plugin || !d.odds(0.6) {
			continue
		}
		for range d.between(0, 2) {
			g.Ports = append(g.Ports, 0)
		}
		alone[cluster.GroupKey{Job: j.Key, Name: g.Name}] = d.odds(0.5)
	}
	static := map[cluster.NodeID]map[scenario.Port]bool{}
	for j, g := range m.draft.s.EachGroup() {
		key := cluster.GroupKey{Job: j.Key, Name: g.Name}
		on := allocsOn(m, key)
		port := scenario.Port(80 + d.between(0, 1))
		ok := alone[key]
		for id, count := range on {
			most[id] += count * len(g.Ports)
			ok = ok && count == 1 && !static[id][port]
		}
		if !ok {
			continue
		}
		g.Ports = append([]scenario.Port{port}, g.Ports...)
		for id := range on {
			if static[id] == nil {
				static[id] = map[scenario.Port]bool{}
			}
			static[id][port] = true
		}
	}
	spare := d.between(0, 4)
	for i := range m.draft.s.Nodes {
		size := 1 + spare
		for _, id := range m.draft.s.Nodes[i].IDs {
			size = max(size, most[id]+spare)
		}
		m.draft.s.Nodes[i].Ports = cluster.PortRange{First: 20000, Last: 20000 + size - 1}
	}
}

// oddsOfCores is the probability that groups of a world have cores for themselves. The other worlds draw what they
// drew without.
const oddsOfCores = 0.15

// drawCores lets the main tasks of groups have cores for themselves. Each node has a few more than its allocations use.
func drawCores(m *population) {
	d := m.draft.dice("cores")
	if !d.odds(oddsOfCores) {
		return
	}
	most := map[cluster.NodeID]int{}
	for j, g := range m.draft.s.EachGroup() {
		if g.Plugin || !d.odds(0.6) {
			continue
		}
		g.Cores = d.between(1, 2)
		for id, count := range allocsOn(m, cluster.GroupKey{Job: j.Key, Name: g.Name}) {
			most[id] += count * g.Cores
		}
	}
	spare := d.between(0, 3)
	for i := range m.draft.s.Nodes {
		n := &m.draft.s.Nodes[i]
		for _, id := range n.IDs {
			n.Cores = max(n.Cores, most[id]+spare)
		}
		if n.CPU > 0 {
			n.CPU += int64(n.Cores) * cluster.CPUOfCore
		}
	}
}

// allocsOn counts the allocations of a group at the beginning, by node.
func allocsOn(m *population, key cluster.GroupKey) map[cluster.NodeID]int {
	on := map[cluster.NodeID]int{}
	for i := range m.draft.s.Allocs {
		a := &m.draft.s.Allocs[i]
		if a.Group != key {
			continue
		}
		count := a.Indexes.Count
		if count == 0 {
			count = len(a.On)
		}
		for n := range count {
			on[a.On[n%len(a.On)]]++
		}
	}
	return on
}
