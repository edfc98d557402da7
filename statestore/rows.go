package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// The put methods replace a row, with everything that hangs on it: what feeds
// are told, what a node's allocations take, what a group's come to, and whether
// capacity may have come.
// A nil before is a new row, a nil after deletes it. After is not written to any
// more; before is the row as the store has it.

func (t *Txn) putNode(before, after *cluster.Node) {
	if roomier(before, after) {
		t.counters.Capacity = t.written.index
	}
	t.written.changes.node(before, after)
	put(t, TableNodes, before, after)
	t.accountNode(before, after)
}

func (t *Txn) putAlloc(before, after *cluster.Allocation) {
	t.accountUsage(before, after)
	t.accountMark(before, after)
	if live(before) && !live(after) {
		t.counters.Capacity = t.written.index
	}
	t.accountAlloc(before, after)
	t.written.changes.alloc(before, after)
	put(t, TableAllocs, before, after)
}

func (t *Txn) putJob(before, after *cluster.Job) {
	t.written.changes.job(before, after)
	put(t, TableJobs, before, after)
}

func (t *Txn) putEval(before, after *cluster.Evaluation) {
	t.written.changes.eval(before, after)
	put(t, TableEvals, before, after)
}

// put writes or deletes a row. A row without an id has been refused before.
func put[T any](t *Txn, table string, before, after *T) {
	if after != nil {
		t.insert(table, after)
	} else {
		t.delete(table, before)
	}
	*t.counters.of(table) = t.written.index
}

// insert puts a row in place of the one with its id.
func (t *Txn) insert(table string, row any) {
	if err := t.txn.Insert(table, row); err != nil {
		panic("statestore: writing to " + table + ": " + err.Error())
	}
}

func (t *Txn) delete(table string, row any) {
	if err := t.txn.Delete(table, row); err != nil {
		panic("statestore: deleting from " + table + ": " + err.Error())
	}
}

// live reports whether the allocation takes anything of its node.
func live(a *cluster.Allocation) bool { return a != nil && !a.ClientTerminal() }

// roomier reports whether something may fit on the node that did not before: it
// became usable, or what placements look at has changed.
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
