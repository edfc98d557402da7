package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// DeleteAllocs deletes ended allocations. It ignores those that do not exist or are not
// client-terminal. The caller has checked that nothing needs them. So the deletion changes no
// account except the marks, and concerns no feed. The exception is a canary that GroupAllocs still
// yields, whose group does not exist any more or whose job is stopped.
func (t *rowWrites) DeleteAllocs(ids []cluster.AllocID) {
	for _, a := range rowsOf(ids, t.Alloc) {
		switch {
		case settled(a):
			t.accountMark(a, nil)
			t.noteRemoval(a)
			put(t, TableAllocs, a, nil)
		case a.ClientTerminal():
			t.putAlloc(a, nil)
		}
	}
}

// DeleteEvals deletes evaluations. It ignores those that do not exist or are open. The caller has
// checked that nothing needs them, so the deletion concerns no feed.
func (t *rowWrites) DeleteEvals(ids []cluster.EvalID) {
	for _, e := range rowsOf(ids, t.Eval) {
		if !e.Open() {
			put(t, TableEvals, e, nil)
		}
	}
}

// rowsOf returns the rows of the ids that exist, each once. So all rows are read before the first
// write.
func rowsOf[ID comparable, Row any](ids []ID, row func(ID) *Row) []*Row {
	seen := make(map[ID]bool, len(ids))
	rows := make([]*Row, 0, len(ids))
	for _, id := range ids {
		if r := row(id); r != nil && !seen[id] {
			seen[id] = true
			rows = append(rows, r)
		}
	}
	return rows
}
