//race:skip one goroutine
package lifecycle_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// chain are allocations of which each replaces the one before. All but the first stand by.
func chain(ids ...cluster.AllocID) map[cluster.AllocID]*cluster.Allocation {
	rows := map[cluster.AllocID]*cluster.Allocation{}
	for i, id := range ids {
		a := alloc(id, cluster.JobService)
		if i > 0 {
			a.PreviousAllocation, a.Standby = ids[i-1], true
			rows[a.PreviousAllocation].NextAllocation = id
		}
		rows[id] = a
	}
	return rows
}

// ended are the ids of the rows that a write returns. It writes them.
func ended(t *testing.T, rows map[cluster.AllocID]*cluster.Allocation, id cluster.AllocID, edit func(*cluster.Allocation)) (ids []cluster.AllocID) {
	t.Helper()
	before := rows[id]
	after := before.Copy()
	edit(after)
	lookup := func(id cluster.AllocID) *cluster.Allocation { return rows[id] }
	for _, a := range lifecycle.EndStandby(before, after, lookup, 9) {
		want := rows[a.ID].Copy()
		want.Standby, want.ModifyIndex = false, 9
		must.Eq(t, want, a)
		must.True(t, rows[a.ID].Standby, must.Sprint("the row of the state does not change"))
		rows[a.ID], ids = a, append(ids, a.ID)
	}
	rows[id] = after
	return ids
}

func stop(a *cluster.Allocation) { a.DesiredStatus = cluster.DesiredStop }
func fail(a *cluster.Allocation) { a.ClientStatus = cluster.ClientFailed }

func TestEndStandby(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*cluster.Allocation){
		"a mark":  func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true },
		"a stop":  stop,
		"an end":  fail,
		"unknown": func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientUnknown },
	} {
		rows := chain("a", "b", "c")
		must.Eq(t, []cluster.AllocID{"b", "c"}, ended(t, rows, "a", edit), must.Sprint(name))
		must.SliceEmpty(t, ended(t, rows, "a", fail), must.Sprint("once"))
	}
	rows := chain("a", "b")
	must.SliceEmpty(t, ended(t, rows, "a", func(a *cluster.Allocation) { a.ClientDescription = "a task has restarted" }))
	must.Len(t, 1, lifecycle.EndStandby(rows["a"], nil, func(id cluster.AllocID) *cluster.Allocation { return rows[id] }, 9), must.Sprint("a deletion"))
	must.SliceEmpty(t, lifecycle.EndStandby(nil, rows["a"], nil, 9), must.Sprint("a new row"))
}

// The end of a standby ends no standby. An active replacement is the original of its own standbys.
func TestEndStandby_ofAStandby(t *testing.T) {
	t.Parallel()
	rows := chain("a", "b", "c", "d")
	must.SliceEmpty(t, ended(t, rows, "b", fail))
	must.Eq(t, []cluster.AllocID{"b", "c", "d"}, ended(t, rows, "a", stop))

	rows = chain("a", "b", "c")
	rows["b"].Standby = false
	must.SliceEmpty(t, ended(t, rows, "a", stop))
	must.Eq(t, []cluster.AllocID{"c"}, ended(t, rows, "b", stop))
}

// The order of several writes of one entry makes no difference.
func TestEndStandby_inOneEntry(t *testing.T) {
	t.Parallel()
	rows := chain("a", "b", "c")
	must.Eq(t, []cluster.AllocID{"b", "c"}, ended(t, rows, "a", stop))
	must.SliceEmpty(t, ended(t, rows, "b", fail))

	rows = chain("a", "b", "c")
	must.SliceEmpty(t, ended(t, rows, "b", fail))
	must.Eq(t, []cluster.AllocID{"b", "c"}, ended(t, rows, "a", stop))
}

func TestEndStandby_ofADamagedChain(t *testing.T) {
	t.Parallel()
	rows := chain("a", "b", "c")
	rows["c"].NextAllocation = "b"
	must.Eq(t, []cluster.AllocID{"b", "c"}, ended(t, rows, "a", stop))
	rows = chain("a", "b")
	rows["b"].NextAllocation = "a"
	must.Eq(t, []cluster.AllocID{"b"}, ended(t, rows, "a", stop))
}
