package statestore

import (
	"iter"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// health counts the healthy allocations of one group. The transaction that changes these
// allocations or their nodes writes it. A group without healthy allocations has no row.
type health struct {
	Group   cluster.GroupKey
	Healthy int
}

// Healthy counts the group's healthy allocations on all nodes: see
// [cluster.Allocation.Healthy].
func (r allocReads) Healthy(g cluster.GroupKey) int {
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
func (r allocReads) healthRow(g cluster.GroupKey) *health {
	return first[health](r.tables, tableLedger, indexID, healthKey(g))
}

// ChangingAllocs yields the allocations of GroupAllocs that are on a draining node or not
// [cluster.Allocation.Stable]. They are ordered by [cluster.Allocation.Progress], then by
// id. Each is [cluster.Allocation.Bare]: a write that changes only the dropped fields costs
// nothing here.
func (r allocReads) ChangingAllocs(g cluster.GroupKey) iter.Seq[*cluster.Allocation] {
	return scan[cluster.Allocation](r.tables, tableChanging, indexID, groupKey(g))
}

// accountAlloc updates the healthy count and the changing allocations of the group. It
// reads a node only if the allocation's health there may have changed.
func (t *rowWrites) accountAlloc(before, after *cluster.Allocation) {
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

// healthEdit is a change of a group's count that is written when the transaction commits.
type healthEdit struct {
	before *health // the row, or nil
	after  *health // the next row; never nil
}

// addHealthy changes the group's count.
func (t *rowWrites) addHealthy(g cluster.GroupKey, n int) {
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
func (t *rowWrites) flushHealth() {
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
