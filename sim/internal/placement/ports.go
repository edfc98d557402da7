package placement

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// judgePorts checks the ports of a new allocation against its group, its node, and the other allocations there.
func (p *plan) judgePorts(a *cluster.Allocation) {
	var has []cluster.AssignedPort
	if a.Ports != nil {
		has = a.Ports.All
	}
	s, n := p.groups[a.TaskGroup], p.after.Node(a.NodeID)
	if s == nil || n == nil {
		return // judgeRow and judgeNode report it
	}
	requests := s.group.Ports
	for _, t := range s.group.Tasks {
		requests = append(requests[:len(requests):len(requests)], t.Ports...)
	}
	if len(has) != len(requests) {
		p.report(WrongPorts, a, "it requests %d ports and has %d", len(requests), len(has))
		return
	}
	numbers := map[int]bool{}
	for i, r := range requests {
		port := has[i]
		inRange := n.Network != nil && n.Network.MinDynamicPort <= port.Number && port.Number <= n.Network.MaxDynamicPort
		switch {
		case port.Label != r.Label:
			p.report(WrongPorts, a, "port %s is in the place of port %s", port.Label, r.Label)
		case r.Static != 0 && port.Number != r.Static:
			p.report(WrongPorts, a, "port %s is %d, and its group specifies %d", r.Label, port.Number, r.Static)
		case r.Static == 0 && !inRange:
			p.report(WrongPorts, a, "port %s is %d, outside the node's range", r.Label, port.Number)
		case numbers[port.Number]:
			p.report(PortGivenTwice, a, "it has port %d twice", port.Number)
		}
		numbers[port.Number] = true
		for other := range p.after.WorkView().LiveAllocsByNode(a.NodeID) {
			if other.ID != a.ID && hasPort(other, port.Number) {
				p.report(PortGivenTwice, a, "allocation %s has port %d too", other.ID, port.Number)
			}
		}
	}
}

func hasPort(a *cluster.Allocation, number int) bool {
	if a.Ports != nil {
		for _, p := range a.Ports.All {
			if p.Number == number {
				return true
			}
		}
	}
	return false
}

// hasPorts reports whether a node has the ports of one more allocation of a group free.
func (p *plan) hasPorts(n *cluster.Node, g *cluster.TaskGroup) bool {
	taken, dynamic := map[int]bool{}, 0
	for a := range p.after.WorkView().LiveAllocsByNode(n.ID) {
		if a.Ports != nil {
			for _, one := range a.Ports.All {
				taken[one.Number] = true
			}
		}
	}
	for _, r := range g.Ports {
		if n.Network == nil || r.Static != 0 && taken[r.Static] {
			return false
		}
		taken[r.Static] = true
	}
	for _, r := range g.Ports {
		if r.Static == 0 {
			dynamic++
		}
	}
	if dynamic == 0 {
		return true
	}
	free := 0
	for port := n.Network.MinDynamicPort; port <= n.Network.MaxDynamicPort; port++ {
		if !taken[port] {
			free++
		}
	}
	return free >= dynamic
}
