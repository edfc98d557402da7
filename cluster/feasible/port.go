package feasible

import (
	"fmt"
	"hash/fnv"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// MissingPorts returns why the node could not give the group its ports even if no allocation had any, or the
// empty string.
func MissingPorts(g *cluster.TaskGroup, n *cluster.Node) string {
	for _, r := range g.PortRequests() {
		switch {
		case n.Network == nil:
			return "the node reports no network for ports"
		case r.Static != 0 && n.Network.Reserved.Contain(r.Static):
			return fmt.Sprintf("port %d is reserved on the node", r.Static)
		}
	}
	return ""
}

// AssignPorts chooses the ports of an allocation of the group on the node. The number of a dynamic port is the
// first free one of the node's range from a hash of the allocation's id, so that the next allocation does not
// get the ports of one that has just ended. It returns false if a static port is not free, or too few dynamic
// ones are, or the node has no network. A group without ports gets nil.
func AssignPorts(g *cluster.TaskGroup, n *cluster.Node, id cluster.AllocID, used cluster.PortsInUse) (assigned *cluster.AssignedPorts, ok bool) {
	if !g.RequestsPorts() {
		return nil, true
	}
	if MissingPorts(g, n) != "" {
		return nil, false
	}
	taken := make(map[int]bool)
	for _, r := range g.PortRequests() {
		if r.Static != 0 && used[r.Static] != nil {
			return nil, false
		}
		taken[r.Static] = true
	}
	network := n.Network
	size := network.MaxDynamicPort - network.MinDynamicPort + 1
	next := hashOf(id) % size
	assigned = &cluster.AssignedPorts{IP: network.IP}
	for task, r := range g.PortRequests() {
		number := r.Static
		for tried := 0; number == 0; tried++ {
			if tried == size {
				return nil, false
			}
			port := network.MinDynamicPort + next
			next = (next + 1) % size
			if used[port] == nil && !taken[port] && !network.Reserved.Contain(port) {
				number = port
			}
		}
		taken[number] = true
		assigned.All = append(assigned.All, cluster.AssignedPort{Task: task, Label: r.Label, Number: number, To: r.To})
	}
	return assigned, true
}

// hashOf is not negative.
func hashOf(id cluster.AllocID) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32() >> 1)
}

// Taken is a port that a group cannot get on a node.
type Taken struct {
	// Port is a static port that the holder has. Without a holder the node has too few free dynamic ports.
	Port   int
	Holder *cluster.Allocation
}

// TakenPorts returns the ports that the node cannot give to one more allocation of the group because others
// have them. [MissingPorts] is empty for the node.
func TakenPorts(g *cluster.TaskGroup, n *cluster.Node, used cluster.PortsInUse) (taken []Taken) {
	for _, r := range g.PortRequests() {
		if holder := used[r.Static]; r.Static != 0 && holder != nil {
			taken = append(taken, Taken{r.Static, holder})
		}
	}
	if _, fits := AssignPorts(g, n, "", used); !fits && len(taken) == 0 {
		taken = append(taken, Taken{})
	}
	return taken
}

// RefusalOfPorts returns why an allocation of the group on the node cannot get the ports, or the empty string.
// The FSM calls it.
func RefusalOfPorts(g *cluster.TaskGroup, n *cluster.Node, assigned *cluster.AssignedPorts, used cluster.PortsInUse) string {
	if why := MissingPorts(g, n); why != "" {
		return why
	}
	var all []cluster.AssignedPort
	if assigned != nil {
		all = assigned.All
	}
	own := make(map[int]bool, len(all))
	at := 0
	for task, r := range g.PortRequests() {
		if at == len(all) {
			return fmt.Sprintf("it has no port %q", r.Label)
		}
		p := all[at]
		at++
		switch holder := used[p.Number]; {
		case p.Task != task || p.Label != r.Label || p.To != r.To:
			return fmt.Sprintf("port %q is in the place of port %q", p.Label, r.Label)
		case r.Static != 0 && p.Number != r.Static:
			return fmt.Sprintf("port %q is %d, and not %d", r.Label, r.Static, p.Number)
		case r.Static == 0 && (p.Number < n.Network.MinDynamicPort || p.Number > n.Network.MaxDynamicPort || n.Network.Reserved.Contain(p.Number)):
			return fmt.Sprintf("port %q is %d, which is no dynamic port of the node", r.Label, p.Number)
		case holder != nil:
			return fmt.Sprintf("port %d is held by allocation %s of job %s", p.Number, holder.ID, holder.JobID)
		case own[p.Number]:
			return fmt.Sprintf("port %d is assigned twice", p.Number)
		}
		own[p.Number] = true
	}
	switch {
	case at < len(all):
		return "it has ports that nothing requests"
	case assigned != nil && at == 0:
		return "it has an empty list of ports"
	case assigned != nil && assigned.IP != n.Network.IP:
		return fmt.Sprintf("the node has the address %s, and not %s", n.Network.IP, assigned.IP)
	}
	return ""
}
