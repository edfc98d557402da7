package lifecycle

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// EndStandby returns the next rows of the standby allocations that become active because an allocation leaves, ends,
// becomes unknown or is deleted: its successive replacements, the first one first. before and after are the rows of that
// allocation before and after the write. A nil after is a deletion.
//
// The store calls it for every write of an allocation, also for plans and reports of clients, and writes the rows in the
// same transaction. alloc returns the newest row of the transaction, or nil. So if one entry writes several rows, a row
// that a call has returned is the next one's before.
func EndStandby(before, after *cluster.Allocation, alloc func(cluster.AllocID) *cluster.Allocation, index uint64) (active []*cluster.Allocation) {
	if !cluster.KeepsSlot(before) || cluster.KeepsSlot(after) {
		return nil
	}
	written := func(id cluster.AllocID) *cluster.Allocation {
		if id == before.ID {
			return after
		}
		return alloc(id)
	}
	seen := func(id cluster.AllocID) bool { // ends a damaged chain that forms a circle
		return slices.ContainsFunc(active, func(a *cluster.Allocation) bool { return a.ID == id })
	}
	for next := written(before.NextAllocation); next != nil && next.Standby && !seen(next.ID); next = written(next.NextAllocation) {
		if cluster.Original(next, written) != nil {
			break // before is a standby itself: the original of both stays
		}
		a := next.Copy()
		a.Standby, a.ModifyIndex = false, index
		active = append(active, a)
	}
	return active
}
