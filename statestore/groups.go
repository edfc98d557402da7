package statestore

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// health counts the healthy allocations of one group. The transaction that changes these
// allocations or their nodes writes it. A group without healthy allocations has no row.
type health struct {
	Group   cluster.GroupKey
	Healthy int
}

// healthOf returns the group's count with the changes of the transaction, or nil.
func healthOf(t *tables, g cluster.GroupKey) *health {
	if t.written != nil {
		if edit := t.written.healthy[g]; edit != nil {
			return edit.after
		}
	}
	return healthRow(t, g)
}

// healthRow returns the row of the group's count, or nil.
func healthRow(t *tables, g cluster.GroupKey) *health {
	return first[health](t, tableLedger, indexID, healthKey(g))
}

// accountAlloc updates the healthy count and the changing allocations of the group. It
// reads a node only if the allocation's health there may have changed.
func (t *rowWrites) accountAlloc(before, after *cluster.Allocation) {
	was, is := before.HealthyIfReachable(), after.HealthyIfReachable()
	if was && is && before.NodeID == after.NodeID && before.GroupKey() == after.GroupKey() {
		was, is = false, false
	}
	if was && t.state().Node(before.NodeID).Reachable() {
		t.addHealthy(before.GroupKey(), -1)
	}
	if is && t.state().Node(after.NodeID).Reachable() {
		t.addHealthy(after.GroupKey(), +1)
	}
	was, is = t.changing(before), t.changing(after)
	if was && is && before.EqualForDecisions(after) {
		return
	}
	if was && (!is || before.GroupKey() != after.GroupKey() || before.Progress() != after.Progress()) {
		t.delete(tableChanging, before)
	}
	if is {
		t.insert(tableChanging, after.Bare())
	}
}

// accountNode updates the accounts of the groups with allocations on the node, if the node was
// deleted or registered, its reachability changed, or its drain started or ended. In all cases
// except the last it also notes the groups, so that feeds need not read them.
func (t *rowWrites) accountNode(before, after *cluster.Node) {
	reached := 0
	if after.Reachable() {
		reached++
	}
	if before.Reachable() {
		reached--
	}
	regrouped := before == nil || after == nil || reached != 0
	toggled := before.Draining() != after.Draining()
	if !regrouped && !toggled {
		return
	}
	n := after
	if n == nil {
		n = before
	}
	for _, a := range slices.Collect(t.state().WorkView().LiveAllocsByNode(n.ID)) {
		if regrouped {
			t.written.changes.around.add(a.GroupKey())
		}
		if reached != 0 && a.HealthyIfReachable() {
			t.addHealthy(a.GroupKey(), reached)
		}
		switch {
		case !toggled || !a.Stable():
		case after.Draining():
			t.insert(tableChanging, a.Bare())
		default:
			t.delete(tableChanging, a)
		}
	}
}

// changing reports whether ChangingAllocs yields the allocation, which may be nil.
func (t *rowWrites) changing(a *cluster.Allocation) bool {
	return a != nil && !settled(a) && (!a.Stable() || t.written.changes.drains(a.NodeID))
}

// addHealthy changes the group's count.
func (t *rowWrites) addHealthy(g cluster.GroupKey, n int) {
	t.written.healthy.edit(g, func() *health { return healthRow(t.tables, g) }, health{Group: g}).Healthy += n
}

// flushHealth writes the counts that have changed.
func (t *rowWrites) flushHealth() {
	flushAccounts(t, t.written.healthy, cluster.GroupKey.Compare, func(h *health) bool { return h.Healthy > 0 })
}
