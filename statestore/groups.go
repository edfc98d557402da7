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
		if count, ok := r.written.healthy[g]; ok {
			return count
		}
	}
	if h := first[health](r, tableHealth, indexID, groupKey(g)); h != nil {
		return h.Healthy
	}
	return 0
}

// RestlessAllocs yields, by [cluster.Allocation.Unrest] and then by id, those of
// GroupAllocs that are on a node which drains, or are not at rest. Each is
// [cluster.Allocation.Bare], so that a write which changes nothing else of it does not
// have to be made here too.
func (r reads) RestlessAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r, tableRestless, indexID, groupKey(g))
}

// accountAlloc keeps the account of an allocation's group: how many of it are healthy,
// and which are restless. It looks at a node only if the allocation may be healthy
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
	was, is = t.restless(before), t.restless(after)
	if was && is && before.BarelyEqual(after) {
		return
	}
	if was && (!is || before.GroupKey() != after.GroupKey() || before.Unrest() != after.Unrest()) {
		t.delete(tableRestless, before)
	}
	if is {
		t.insert(tableRestless, after.Bare())
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
		case !toggled || !a.AtRest():
		case after.Draining():
			t.insert(tableRestless, a.Bare())
		default:
			t.delete(tableRestless, a)
		}
	}
}

// restless reports whether the allocation, or nil, is one of RestlessAllocs.
func (t *Txn) restless(a *cluster.Allocation) bool {
	return a != nil && !settled(a) && (!a.AtRest() || t.written.changes.drains(a.NodeID))
}

// addHealthy changes the group's count. The rows are written once, when the transaction
// commits.
func (t *Txn) addHealthy(g cluster.GroupKey, n int) {
	if t.written.healthy == nil {
		t.written.healthy = make(map[cluster.GroupKey]int)
	}
	t.written.healthy[g] = t.Healthy(g) + n
}

// flushHealth writes the counts that have changed.
func (t *Txn) flushHealth() {
	type change struct{ before, after *health }
	var changed []change
	for _, g := range slices.SortedFunc(maps.Keys(t.written.healthy), cluster.GroupKey.Compare) {
		before, after := first[health](t.reads, tableHealth, indexID, groupKey(g)), health{g, t.written.healthy[g]}
		if before == nil || *before != after {
			changed = append(changed, change{before, &after})
		}
	}
	for _, c := range changed {
		switch {
		case c.after.Healthy > 0:
			t.insert(tableHealth, c.after)
		case c.before != nil:
			t.delete(tableHealth, c.before)
		}
	}
}
