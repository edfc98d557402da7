package setting

import (
	"math"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Nodes are the nodes that a declaration stands for, in its order.
func Nodes(n scenario.Node) []*cluster.Node {
	nodes := make([]*cluster.Node, len(n.IDs))
	for i, id := range n.IDs {
		nodes[i] = node(n, id)
	}
	return nodes
}

func node(n scenario.Node, id cluster.NodeID) *cluster.Node {
	made := &cluster.Node{
		ID: id, Name: string(id), NodeClass: n.Class, MaxAllocs: n.MaxAllocs, Status: cluster.NodeReady,
		Resources: cluster.Resources{
			CPU: plenty(n.CPU), MemoryMB: plenty(n.MemoryMB), DiskMB: plenty(n.DiskMB), GPU: n.GPUMilli,
		},
	}
	if n.Status != "" {
		made.Status = n.Status
	}
	if n.Ineligible {
		made.SchedulingEligibility = cluster.NodeIneligible
	}
	return made
}

func plenty(amount int64) int64 {
	if amount == 0 {
		return math.MaxInt32
	}
	return amount
}

// Declared is the node as the scenario declares it, or nil.
func Declared(s *scenario.Scenario, id cluster.NodeID) *cluster.Node {
	for _, n := range s.Nodes {
		for _, other := range n.IDs {
			if other == id {
				return node(n, id)
			}
		}
	}
	return nil
}
