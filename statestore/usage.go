package statestore

import (
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// usage is what one node's allocations that are not client-terminal take. It is
// written in the transaction that changes them, so that a client's report does
// not touch the nodes table. A node without any has no row.
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
	if u := first[usage](r, tableUsage, indexID, lone(id)); u != nil {
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

// occupy adds what the allocation takes to its node's account, or with a sign of
// -1 takes it away. The rows are written once, when the transaction commits.
func (t *Txn) occupy(a *cluster.Allocation, sign int) {
	if !live(a) {
		return
	}
	u := t.usage(a.NodeID)
	u.Live += sign
	if a.Stage() == cluster.StageConsumers {
		u.Consumers += sign
	}
	if sign > 0 {
		u.Resources = u.Resources.Plus(a.Resources)
	} else {
		u.Resources = u.Resources.Minus(a.Resources)
	}
	t.written.usage[a.NodeID] = u
}

// flushUsage writes the accounts that have changed.
func (t *Txn) flushUsage() {
	type change struct{ before, after *usage }
	var changed []change
	for _, id := range slices.Sorted(maps.Keys(t.written.usage)) {
		before, after := first[usage](t.reads, tableUsage, indexID, lone(id)), t.written.usage[id]
		if before == nil || *before != after {
			changed = append(changed, change{before, &after})
		}
	}
	for _, c := range changed {
		switch {
		case c.after.Live > 0:
			t.insert(tableUsage, c.after)
		case c.before != nil:
			t.delete(tableUsage, c.before)
		}
	}
}
