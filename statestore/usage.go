package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// usage is what one node's allocations that are not client-terminal take. It is
// written in the transaction that changes them. A node without any has no row.
type usage struct {
	NodeID cluster.NodeID
	// Live counts them, Consumers those of [cluster.StageConsumers].
	Live      int
	Consumers int
	Resources cluster.Resources
}

func (r reads) usage(id cluster.NodeID) usage {
	if r.written != nil {
		if u, ok := r.written.usage[id]; ok {
			return u
		}
	}
	if u := first[usage](r, tableUsage, indexID, newKey(id)); u != nil {
		return *u
	}
	return usage{NodeID: id}
}

// Usage is what the node's allocations that are not client-terminal take.
func (r reads) Usage(id cluster.NodeID) cluster.Resources { return r.usage(id).Resources }

// LiveCount counts the node's allocations that are not client-terminal.
func (r reads) LiveCount(id cluster.NodeID) int { return r.usage(id).Live }

// Consumers counts the node's allocations of [cluster.StageConsumers] that are
// not client-terminal.
func (r reads) Consumers(id cluster.NodeID) int { return r.usage(id).Consumers }
