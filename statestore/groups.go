package statestore

import (
	"iter"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// health counts the allocations of one group that count towards its budget. It is
// written in the transaction that changes them or their nodes. A group without any
// has no row.
type health struct {
	Group   cluster.GroupKey
	Healthy int
}

// Healthy counts the group's allocations that count towards its budget, wherever they
// are: see [cluster.Allocation.Healthy].
func (r reads) Healthy(g cluster.GroupKey) int {
	if r.written != nil {
		if edit := r.written.healthy[g]; edit != nil {
			return edit.after.Healthy
		}
	}
	if h := r.healthRow(g); h != nil {
		return h.Healthy
	}
	return 0
}

// healthRow returns the row of the group's count, or nil.
func (r reads) healthRow(g cluster.GroupKey) *health {
	return first[health](r, tableLedger, indexID, healthKey(g))
}

// UnsettledAllocs yields, by [cluster.Allocation.Unsettled] and then by id, those of
// GroupAllocs that are on a node which drains, or are not at rest. Each is
// [cluster.Allocation.Bare], so that a write which changes nothing else of it does not
// have to be made here too.
func (r reads) UnsettledAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r, tableUnsettled, indexID, groupKey(g))
}

// accountAlloc keeps the account of an allocation's group: how many of it are healthy,
// and which are unsettled. It looks at a node only if the allocation may be healthy
// there, and was not so before.
func (t *Txn) accountAlloc(before, after *cluster.Allocation) {
	was, is := before.HealthyIfReachable(), after.HealthyIfReachable()
	if was && is && before.NodeID == after.NodeID && before.GroupKey() == after.GroupKey() {
		was, is = false, false
	}
	if was && t.Node(before.NodeID).Reachable() {
		t.addHealthy(before.GroupKey(), -1)
	}
	if is && t.Node(after.NodeID).Reachable() {
		t.addHealthy(after.GroupKey(), +1)
	}
	was, is = t.unsettled(before), t.unsettled(after)
	if was && is && before.BarelyEqual(after) {
		return
	}
	if was && (!is || before.GroupKey() != after.GroupKey() || before.Unsettled() != after.Unsettled()) {
		t.delete(tableUnsettled, before)
	}
	if is {
		t.insert(tableUnsettled, after.Bare())
	}
}

// accountNode keeps the accounts of the groups that have something on a node which was
// deleted or registered, became reachable or ceased to be, or begins or ends to drain. But
// for drains it notes the groups, so that no feed has to look for them again.
func (t *Txn) accountNode(before, after *cluster.Node) {
	reached := 0
	if after.Reachable() {
		reached++
	}
	if before.Reachable() {
		reached--
	}
	news := before == nil || after == nil || reached != 0
	toggled := before.Draining() != after.Draining()
	if !news && !toggled {
		return
	}
	n := after
	if n == nil {
		n = before
	}
	for _, a := range slices.Collect(t.LiveAllocsByNode(n.ID)) {
		if news {
			t.written.changes.around.add(a.GroupKey())
		}
		if reached != 0 && a.HealthyIfReachable() {
			t.addHealthy(a.GroupKey(), reached)
		}
		switch {
		case !toggled || !a.Settled():
		case after.Draining():
			t.insert(tableUnsettled, a.Bare())
		default:
			t.delete(tableUnsettled, a)
		}
	}
}

// unsettled reports whether the allocation, or nil, is one of UnsettledAllocs.
func (t *Txn) unsettled(a *cluster.Allocation) bool {
	return a != nil && !settled(a) && (!a.Settled() || t.written.changes.drains(a.NodeID))
}

// healthEdit is a change of a group's count that is written when the transaction commits.
type healthEdit struct {
	before *health // the row, or nil
	after  *health // the next row; never nil
}

// addHealthy changes the group's count.
func (t *Txn) addHealthy(g cluster.GroupKey, n int) {
	edit := t.written.healthy[g]
	if edit == nil {
		edit = &healthEdit{before: t.healthRow(g), after: &health{Group: g}}
		if edit.before != nil {
			*edit.after = *edit.before
		}
		if t.written.healthy == nil {
			t.written.healthy = make(map[cluster.GroupKey]*healthEdit)
		}
		t.written.healthy[g] = edit
	}
	edit.after.Healthy += n
}

// flushHealth writes the counts that have changed.
func (t *Txn) flushHealth() {
	for _, g := range slices.SortedFunc(maps.Keys(t.written.healthy), cluster.GroupKey.Compare) {
		switch edit := t.written.healthy[g]; {
		case edit.before != nil && *edit.before == *edit.after:
		case edit.after.Healthy > 0:
			t.insert(tableLedger, edit.after)
		case edit.before != nil:
			t.delete(tableLedger, edit.before)
		}
	}
}
