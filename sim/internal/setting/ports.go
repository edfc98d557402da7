package setting

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// networkOf returns the network of a node with the dynamic ports, or nil without any.
func networkOf(dynamic cluster.PortRange) *cluster.NodeNetwork {
	if dynamic == (cluster.PortRange{}) {
		return nil
	}
	return &cluster.NodeNetwork{IP: "10.0.0.1", MinDynamicPort: dynamic.First, MaxDynamicPort: dynamic.Last}
}

// portRequests returns the port requests of a group.
func portRequests(declared []scenario.Port) (requests []cluster.PortRequest) {
	for i, p := range declared {
		requests = append(requests, cluster.PortRequest{Label: fmt.Sprint("p", i), Static: int(p)})
	}
	return requests
}

// giveOut assigns ports to an allocation that exists at the beginning.
func giveOut(n *cluster.Node, a *cluster.Allocation, g *cluster.TaskGroup, used cluster.PortsInUse) (ok bool) {
	a.Ports, ok = feasible.AssignPorts(g, n, a.ID, used)
	used.Add(a)
	return ok
}
