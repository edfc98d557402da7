package statestore

import (
	"iter"
	"maps"
	"slices"

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

func (r nodeReads) usage(id cluster.NodeID) usage {
	u := r.usageEdited(id)
	if u == nil {
		u = r.usageRow(id)
	}
	if u == nil {
		return usage{NodeID: id}
	}
	return *u
}

// usageEdited returns the node's account with the changes of the transaction, or nil if the
// transaction has not changed it.
func (r nodeReads) usageEdited(id cluster.NodeID) *usage {
	if r.written == nil {
		return nil
	}
	if edit := r.written.usage[id]; edit != nil {
		return edit.after
	}
	return nil
}

// usageRow returns the row of the node's account, or nil.
func (r nodeReads) usageRow(id cluster.NodeID) *usage {
	return first[usage](r.tables, tableLedger, indexID, usageKey(id))
}

// Usage sums up the resources of the node's allocations that are not client-terminal.
func (r nodeReads) Usage(id cluster.NodeID) cluster.Usage { return r.usage(id).Usage }

// NodesInUse yields all nodes by id, each with its Usage. It merges the nodes with their
// accounts, which are both ordered by node id: looking up each account is at least six times
// slower with a thousand nodes (go test ./statestore -run '^$' -bench NodesInUse).
func (r nodeReads) NodesInUse() iter.Seq2[*cluster.Node, cluster.Usage] {
	return func(yield func(*cluster.Node, cluster.Usage) bool) {
		accounts := r.rows(tableLedger, indexID, key{accountOfNode})
		at, _ := accounts.Next().(*usage)
		for n := range r.Nodes() {
			for at != nil && at.NodeID < n.ID { // a deleted node with allocations
				at, _ = accounts.Next().(*usage)
			}
			u := r.usageEdited(n.ID)
			if u == nil && at != nil && at.NodeID == n.ID {
				u = at
			}
			if u == nil {
				u = &usage{}
			}
			if !yield(n, u.Usage) {
				return
			}
		}
	}
}

// OccupiedNodes yields the ids of the nodes with allocations that are not client-terminal,
// in order. The nodes need not exist.
func (r nodeReads) OccupiedNodes() iter.Seq[cluster.NodeID] {
	return func(yield func(cluster.NodeID) bool) {
		for u := range scan[usage](r.tables, tableLedger, indexID, key{accountOfNode}) {
			if !yield(u.NodeID) {
				return
			}
		}
	}
}

// OccupiedNodes is [nodeReads.OccupiedNodes] with the accounts that the transaction has not
// written to rows yet.
func (t *rowWrites) OccupiedNodes() iter.Seq[cluster.NodeID] {
	return func(yield func(cluster.NodeID) bool) {
		ids := slices.DeleteFunc(slices.Collect(t.reads.OccupiedNodes()), func(id cluster.NodeID) bool {
			return t.written.usage[id] != nil
		})
		for id, edit := range t.written.usage {
			if edit.after.Live > 0 {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		slices.Values(ids)(yield)
	}
}

// LiveCount counts the node's allocations that are not client-terminal.
func (r nodeReads) LiveCount(id cluster.NodeID) int { return r.usage(id).Live }

// Consumers counts the node's allocations of [cluster.StageConsumers] that are
// not client-terminal.
func (r nodeReads) Consumers(id cluster.NodeID) int { return r.usage(id).Consumers }

// usageEdit is a change of a node's account that is written when the transaction
// commits.
type usageEdit struct {
	before *usage // the row, or nil
	after  *usage // the next row; never nil
}

// editUsage returns the node's next account. The caller changes it.
func (t *rowWrites) editUsage(id cluster.NodeID) *usage {
	edit := t.written.usage[id]
	if edit == nil {
		edit = &usageEdit{before: t.usageRow(id), after: &usage{NodeID: id}}
		if edit.before != nil {
			*edit.after = *edit.before
		}
		if t.written.usage == nil {
			t.written.usage = make(map[cluster.NodeID]*usageEdit)
		}
		t.written.usage[id] = edit
	}
	return edit.after
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
	u := t.editUsage(a.NodeID)
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
	for _, id := range slices.Sorted(maps.Keys(t.written.usage)) {
		switch edit := t.written.usage[id]; {
		case edit.before != nil && *edit.before == *edit.after:
		case edit.after.Live > 0:
			t.insert(tableLedger, edit.after)
		case edit.before != nil:
			t.delete(tableLedger, edit.before)
		}
	}
}
