package statestore

import (
	"cmp"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// usage is the sum of the resources of a node's allocations that are not client-terminal. It is a
// separate row, so that a client's report does not write to the nodes table. A node without such
// allocations has no row.
type usage struct {
	NodeID cluster.NodeID
	cluster.Usage
	// Consumers counts those of [cluster.StageConsumers].
	Consumers int
}

// usageOf returns the node's account with the changes of the transaction.
func usageOf(t *tables, id cluster.NodeID) usage {
	u := editedUsage(t, id)
	if u == nil {
		u = usageRow(t, id)
	}
	if u == nil {
		return usage{NodeID: id}
	}
	return *u
}

// editedUsage returns the node's account with the changes of the transaction, or nil if the
// transaction has not changed it.
func editedUsage(t *tables, id cluster.NodeID) *usage {
	if t.written == nil {
		return nil
	}
	if edit := t.written.usage[id]; edit != nil {
		return edit.after
	}
	return nil
}

// usageRow returns the row of the node's account, or nil.
func usageRow(t *tables, id cluster.NodeID) *usage {
	return first[usage](t, tableLedger, indexID, usageKey(id))
}

// accountUsage moves an allocation's resources from the account of its previous node to
// the account of its next node. Most writes change neither.
func (t *rowWrites) accountUsage(before, after *cluster.Allocation) {
	if live(before) && live(after) && before.NodeID == after.NodeID &&
		before.Stage() == after.Stage() && before.Resources == after.Resources {
		return
	}
	t.occupy(before, -1)
	t.occupy(after, +1)
}

// occupy adds the allocation's resources to its node's account, or subtracts them if sign
// is -1.
func (t *rowWrites) occupy(a *cluster.Allocation, sign int) {
	if !live(a) {
		return
	}
	u := t.written.usage.edit(a.NodeID, func() *usage { return usageRow(t.tables, a.NodeID) }, usage{NodeID: a.NodeID})
	u.Live += sign
	if a.Stage() == cluster.StageConsumers {
		u.Consumers += sign
	}
	if sign > 0 {
		u.Resources = u.Resources.Plus(a.Resources.Bounded()) // so that no sum is cut, and Minus is its inverse
	} else {
		u.Resources = u.Resources.Minus(a.Resources.Bounded())
	}
}

// flushUsage writes the accounts that have changed.
func (t *rowWrites) flushUsage() {
	flushAccounts(t, t.written.usage, cmp.Compare[cluster.NodeID], func(u *usage) bool { return u.Live > 0 })
}
