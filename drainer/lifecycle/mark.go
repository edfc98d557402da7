package lifecycle

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// CanMark reports whether the rows allow the mark: the allocation is on the node, has not stopped
// and is not leaving, the node is in the drain of the mark, and the class is valid. [rules.Recheck]
// accepts only marks for which this holds. Rows may be nil.
func CanMark(n *cluster.Node, a *cluster.Allocation, m rules.Mark) bool {
	return a != nil && !a.Leaving() && !a.ClientTerminal() &&
		m.Class > cluster.MarkNone && m.Class < cluster.MarkClassCount &&
		n.Draining() && n.Drain.ID == m.Drain && a.NodeID == n.ID
}

// ApplyMark makes an accepted mark at the time of its entry. It sets the allocation's transition
// and counts the mark in the drain of the node. It changes both rows, which must be copies of those
// in the state. It changes nothing if [CanMark] returns false. A request for a replacement is no mark: it changes only the
// allocation.
//
// The store writes the marked rows and the evaluations that [rules.Recheck] returned in one
// transaction.
func ApplyMark(n *cluster.Node, a *cluster.Allocation, m rules.Mark, at time.Time, index uint64) {
	if !CanMark(n, a, m) {
		return
	}
	at = at.UTC()
	t := &a.DesiredTransition
	if m.Surge {
		t.Surge, t.SurgeAt = m.Drain, at
		written(a, at, index)
		return
	}
	n.Drain.Marked[m.Class]++
	n.ModifyIndex = index
	t.Migrate = true
	t.Drain, t.Class, t.MarkedAt = m.Drain, m.Class, at
	// Batch work that a deadline stops is not placed again.
	t.MigrateDisablePlacement = a.JobType() == cluster.JobBatch && (m.Class == cluster.MarkDeadline || m.Class == cluster.MarkForced)
	written(a, at, index)
}

// withdrawn returns the next row of an allocation without the mark of its drain and the request for a replacement. Other
// transitions stay.
func withdrawn(a *cluster.Allocation, at time.Time, index uint64) *cluster.Allocation {
	after := a.Copy()
	t := &after.DesiredTransition
	t.Migrate, t.MigrateDisablePlacement = false, false
	t.Drain, t.Class, t.MarkedAt = "", cluster.MarkNone, time.Time{}
	t.Surge, t.SurgeAt = "", time.Time{}
	written(after, at, index)
	return after
}

// written sets the time and index of a write by the servers.
func written(a *cluster.Allocation, at time.Time, index uint64) {
	a.ModifyTime = at
	a.ModifyIndex, a.AllocModifyIndex = index, index
}

// CountPurged counts in the drain of the node an allocation whose record is deleted while its tasks
// may still run. It changes the node, which must be a copy of the row in the state. Keep the record
// instead if you can: a drain that begins later does not count a deleted one.
func CountPurged(n *cluster.Node, a *cluster.Allocation, index uint64) {
	if n.Draining() && a.NodeID == n.ID && (!a.ClientTerminal() || a.Unconfirmed()) {
		n.Drain.PurgedRunning++
		n.ModifyIndex = index
	}
}
