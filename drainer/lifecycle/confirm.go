package lifecycle

import (
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Confirm returns the next row of the record of an ended drain after the ends of allocations were
// confirmed, or nil if the record counts none of them. The allocations are rows from before the entry.
// The outcome never changes.
func Confirm(d *cluster.Drain, confirmed []*cluster.Allocation, at time.Time) *cluster.Drain {
	if d.CountUnconfirmed() == 0 {
		return nil
	}
	u := *d.Unconfirmed
	u.Allocs = slices.Clone(u.Allocs)
	for _, a := range confirmed {
		if d.CountsUnconfirmed(a) {
			u.Count--
			u.Allocs = slices.DeleteFunc(u.Allocs, func(id cluster.AllocID) bool { return id == a.ID })
		}
	}
	if u.Count == d.Unconfirmed.Count {
		return nil
	}
	if len(u.Allocs) == 0 {
		u.Allocs = nil
	}
	return withUnconfirmed(d, u, at)
}

// ConfirmUnlisted returns the next row of the record of an ended drain after its node has reported the
// allocations that the servers do not list, or nil if the record counts none that has ended. A node whose
// client does not report them has nil, which confirms nothing.
func ConfirmUnlisted(d *cluster.Drain, reported *cluster.UnlistedAllocs, at time.Time) *cluster.Drain {
	if d.CountUnconfirmed() == 0 || reported == nil {
		return nil
	}
	u := *d.Unconfirmed
	u.Unlisted = u.Unlisted.LeftIn(reported)
	ended := d.Unconfirmed.Unlisted.Len() - u.Unlisted.Len()
	if ended == 0 {
		return nil
	}
	u.Count -= ended
	return withUnconfirmed(d, u, at)
}

// ConfirmByOperator returns the next row of the record of an ended drain after an operator confirmed
// that no task runs on its node, or nil if the record counts no unconfirmed allocation.
func ConfirmByOperator(d *cluster.Drain, by string, at time.Time) *cluster.Drain {
	if d.CountUnconfirmed() == 0 {
		return nil
	}
	return withUnconfirmed(d, cluster.UnconfirmedAllocs{ConfirmedBy: by, Other: d.Unconfirmed.Other}, at)
}

// AttributeConfirmation returns a copy of the next row of a record, which [Confirm] or [ConfirmUnlisted]
// returned because an operator confirmed another drain of the node. The copy names that confirmation.
func AttributeConfirmation(before, after *cluster.Drain, other cluster.OtherConfirmation) *cluster.Drain {
	u := *after.Unconfirmed
	other.Allocs = before.CountUnconfirmed() - after.CountUnconfirmed()
	if u.Other != nil {
		other.Allocs += u.Other.Allocs
	}
	u.Other = &other
	named := after.Copy()
	named.Unconfirmed = &u
	return named
}

// withUnconfirmed returns a copy of the record with other counts. If they are zero, all ends are
// confirmed at the time.
func withUnconfirmed(d *cluster.Drain, u cluster.UnconfirmedAllocs, at time.Time) *cluster.Drain {
	if u.Count == 0 {
		u.ConfirmedAt = at.UTC()
	}
	after := d.Copy()
	after.Unconfirmed = &u
	return after
}

// AwaitedStops yields the nodes with lost allocations that time alone will confirm, each with the earliest
// of their times: see [cluster.ConfirmableAt]. When it has come, the leader writes an entry that
// confirms the stops of the node. nodes are all nodes of the state. The nodes of the records are read
// too, because a node with a record may be deleted.
//
// The leader compares with a time that its clock cannot set forward: one that is not later than the time
// that has passed by a monotonic clock. So the entry that ends a drain confirms nothing.
func AwaitedStops(v rules.View, nodes iter.Seq[*cluster.Node], records iter.Seq[*cluster.Drain]) iter.Seq2[cluster.NodeID, time.Time] {
	return func(yield func(cluster.NodeID, time.Time) bool) {
		for n := range nodes {
			if !n.Reachable() && !yieldStop(v, n.ID, n, yield) {
				return
			}
		}
		visited := map[cluster.NodeID]bool{}
		for d := range records {
			if d.CountUnconfirmed() == 0 || visited[d.NodeID] || v.Node(d.NodeID) != nil {
				continue
			}
			visited[d.NodeID] = true
			if !yieldStop(v, d.NodeID, nil, yield) {
				return
			}
		}
	}
}

// yieldStop yields the node, which may be deleted, if time will confirm one of its allocations.
func yieldStop(v rules.View, id cluster.NodeID, n *cluster.Node, yield func(cluster.NodeID, time.Time) bool) bool {
	var first time.Time
	for a := range v.Unconfirmed(id) {
		if at := cluster.ConfirmableAt(a, n); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first.IsZero() || yield(id, first)
}
