package setting

import (
	"math"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Nodes returns the nodes of a declaration.
func Nodes(n scenario.Node) []*cluster.Node {
	nodes := make([]*cluster.Node, len(n.IDs))
	for i, id := range n.IDs {
		nodes[i] = node(n, id)
	}
	return nodes
}

func node(n scenario.Node, id cluster.NodeID) *cluster.Node {
	built := &cluster.Node{
		ID: id, Name: string(id), NodeClass: n.Class, MaxAllocs: n.MaxAllocs, Status: cluster.NodeReady,
		Resources: cluster.Resources{
			CPU: plenty(n.CPU), MemoryMB: plenty(n.MemoryMB), DiskMB: plenty(n.DiskMB), GPU: n.GPUMilli,
		},
	}
	built.Devices, built.Network = DeviceGroups(n.Devices), networkOf(n.Ports)
	for core := range n.Cores {
		built.Cores = append(built.Cores, core)
	}
	if n.Status != "" {
		built.Status = n.Status
	}
	if n.Ineligible {
		built.SchedulingEligibility = cluster.NodeIneligible
	}
	return built
}

func plenty(amount int64) int64 {
	if amount == 0 {
		return math.MaxInt32
	}
	return amount
}

// DeclaredNode returns the node that the scenario declares, or nil.
func DeclaredNode(s *scenario.Scenario, id cluster.NodeID) *cluster.Node {
	for _, n := range s.Nodes {
		if slices.Contains(n.IDs, id) {
			return node(n, id)
		}
	}
	return nil
}
