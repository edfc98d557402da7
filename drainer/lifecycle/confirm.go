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
	if u.Count == 0 {
		u.ConfirmedAt = at.UTC()
	}
	return withUnconfirmed(d, u)
}

// ConfirmByOperator returns the next row of the record of an ended drain after an operator confirmed
// that no task runs on its node, or nil if the record counts no unconfirmed allocation.
func ConfirmByOperator(d *cluster.Drain, by string, at time.Time) *cluster.Drain {
	if d.CountUnconfirmed() == 0 {
		return nil
	}
	return withUnconfirmed(d, cluster.UnconfirmedAllocs{ConfirmedAt: at.UTC(), ConfirmedBy: by})
}

func withUnconfirmed(d *cluster.Drain, u cluster.UnconfirmedAllocs) *cluster.Drain {
	after := d.Copy()
	after.Unconfirmed = &u
	return after
}

// StoppedNodes returns the nodes, at most limit, whose records count allocations that time alone
// confirms at now: see [cluster.ConfirmableAt]. The leader writes an entry that confirms them.
// waits reports whether time will confirm an allocation, now or later. It reads all records.
func StoppedNodes(v rules.View, records iter.Seq[*cluster.Drain], now time.Time, limit int) (nodes []cluster.NodeID, waits bool) {
	visited := map[cluster.NodeID]bool{}
	for d := range records {
		if d.CountUnconfirmed() == 0 || visited[d.NodeID] {
			continue
		}
		visited[d.NodeID] = true
		n, stopped := v.Node(d.NodeID), false
		for a := range v.Unconfirmed(d.NodeID) {
			at := cluster.ConfirmableAt(a, n)
			waits = waits || !at.IsZero()
			stopped = stopped || !at.IsZero() && !now.Before(at)
		}
		if stopped && len(nodes) < limit {
			nodes = append(nodes, d.NodeID)
		}
	}
	return nodes, waits
}
