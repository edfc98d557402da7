package statestore

import (
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// rowWrites writes the rows of one transaction.
type rowWrites struct{ *tables }

func (t *rowWrites) state() State { return stateOf(t.tables) }

// The put methods replace a row, and update everything that depends on it: the changes for feeds,
// the accounts of nodes and groups, and the capacity index. before is the stored row, or nil for a
// new row. A nil after deletes the row. The store owns after: the caller must not change it.

func (t *rowWrites) putNode(before, after *cluster.Node) {
	version := versionIn(t.tables)
	if roomier(before, after) || version >= cluster.VersionOfDrivers && fitter(before, after) ||
		version >= cluster.VersionOfDevices && equipped(before, after) {
		t.counters.Capacity = t.written.index
	}
	t.written.changes.node(before, after)
	put(t, TableNodes, before, after)
	t.accountNode(before, after)
	journalWriter{t}.node(before, after)
}

func (t *rowWrites) putAlloc(before, after *cluster.Allocation) {
	if before != nil && before.Standby {
		before = t.state().Alloc(before.ID) // the end of its original may have changed it in this transaction
	}
	if after != nil && after.Standby && cluster.Original(after, t.state().Alloc) == nil {
		after.Standby = false
	}
	defer t.endStandby(before, after)
	t.accountUsage(before, after)
	t.accountMark(before, after)
	if live(before) && !live(after) {
		t.counters.Capacity = t.written.index
	}
	t.accountAlloc(before, after)
	journalWriter{t}.alloc(before, after)
	learner{t}.alloc(before, after)
	t.written.changes.alloc(before, after)
	if after == nil {
		t.noteRemoval(before)
	}
	put(t, TableAllocs, before, after)
	claimEdits{t}.release(before, after)
}

// endStandby ends the standby of the allocations that replace one that leaves or ends with the write.
func (t *rowWrites) endStandby(before, after *cluster.Allocation) {
	for _, active := range lifecycle.EndStandby(before, after, t.state().Alloc, t.written.index) {
		t.putAlloc(t.state().Alloc(active.ID), active)
	}
}

func (t *rowWrites) putJob(before, after *cluster.Job) {
	t.written.changes.job(before, after)
	put(t, TableJobs, before, after)
	learner{t}.job(before, after)
}

func (t *rowWrites) putEval(before, after *cluster.Evaluation) {
	t.written.changes.eval(before, after)
	put(t, TableEvals, before, after)
}

// put writes or deletes a row. The caller has refused rows without an id.
func put[T any](t *rowWrites, table string, before, after *T) {
	if after != nil {
		t.insert(table, after)
	} else {
		t.delete(table, before)
	}
	*t.counters.of(table) = t.written.index
}

// insert writes a row, and replaces the row with the same id.
func (t *rowWrites) insert(table string, row any) {
	if err := t.txn.Insert(table, row); err != nil {
		panic("statestore: writing to " + table + ": " + err.Error())
	}
}

func (t *rowWrites) delete(table string, row any) {
	if err := t.txn.Delete(table, row); err != nil {
		panic("statestore: deleting from " + table + ": " + err.Error())
	}
}

// live reports whether the allocation uses resources of its node.
func live(a *cluster.Allocation) bool { return a != nil && !a.ClientTerminal() }

// roomier reports whether the node may have room for an allocation that did not fit before: the
// node became ready, or a field changed that placements depend on.
func roomier(before, after *cluster.Node) bool {
	switch {
	case !after.Ready():
		return false
	case !before.Ready():
		return true
	}
	return before.Available() != after.Available() || before.MaxAllocs != after.MaxAllocs ||
		before.NodeClass != after.NodeClass || before.NodePool != after.NodePool || before.Datacenter != after.Datacenter
}

// fitter reports whether a ready node may fulfil demands that it did not fulfil before. Below
// cluster version 4 no group has such demands.
func fitter(before, after *cluster.Node) bool {
	return before.Ready() && after.Ready() && (before.MaxKillTimeout != after.MaxKillTimeout || before.ReportsDrivers != after.ReportsDrivers ||
		before.Name != after.Name || !maps.Equal(before.Attributes, after.Attributes) || !maps.Equal(before.Meta, after.Meta) ||
		!maps.EqualFunc(before.Drivers, after.Drivers, sameDriver) ||
		!slices.EqualFunc(before.StoragePlugins, after.StoragePlugins, (*cluster.StoragePlugin).SameService))
}

// equipped reports whether the devices, ports and cores of a ready node may fulfil demands that they did not
// fulfil before. Below cluster version 6 no node has devices, and below 9 none has a network or cores.
func equipped(before, after *cluster.Node) bool {
	return before.Ready() && after.Ready() && (!slices.EqualFunc(before.Devices, after.Devices, (*cluster.DeviceGroup).FulfilsAs) ||
		!before.Network.Equal(after.Network) || !slices.Equal(before.Cores, after.Cores))
}

// sameDriver reports whether both drivers fulfil the same demands.
func sameDriver(a, b *cluster.DriverInfo) bool {
	return a.Detected == b.Detected && a.Healthy == b.Healthy && maps.Equal(a.Attributes, b.Attributes)
}

// rowsOf returns the rows of the ids that exist, each once. So all rows are read before the first
// write.
func rowsOf[ID comparable, Row any](ids []ID, row func(ID) *Row) []*Row {
	listed := make(map[ID]bool, len(ids))
	rows := make([]*Row, 0, len(ids))
	for _, id := range ids {
		if r := row(id); r != nil && !listed[id] {
			listed[id] = true
			rows = append(rows, r)
		}
	}
	return rows
}
