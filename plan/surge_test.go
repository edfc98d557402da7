package plan_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/plan"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// withSurge is a cluster of the newest version.
func withSurge(t *testing.T, nodes int) *fixture {
	f := newFixture(t, nodes)
	f.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	return f
}

// With max_surge a group of one is never down. A request for a replacement is no move.
func TestAnswer_surge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ofGroup, ofDrain int
	}{"the group's": {1, 0}, "the drain's": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := withSurge(t, 3)
			db := clustertest.Job("db", cluster.JobService, 1)
			db.TaskGroups[0].Migrate.MaxSurge = c.ofGroup
			f.run(db, node(0))
			a := f.answer(1, cluster.DrainSpec{Deadline: time.Hour, MaxSurge: c.ofDrain}, plan.Settings{})
			must.Eq(t, "1 allocation leaves in 17s; nothing falls below its limit", a.Sentence)
			must.SliceLen(t, 1, a.Groups)
			g := a.Groups[0]
			must.Eq(t, []int{1, 1, 1}, []int{g.Moves, g.Rounds, g.Lowest})
			must.Zero(t, g.Down)
			must.False(t, g.NoRoom)
		})
	}
}

// A replacement without a place is named, and the drain without a deadline does not end.
func TestAnswer_surgeWithoutRoom(t *testing.T) {
	t.Parallel()
	f := withSurge(t, 2)
	f.run(large("huge", 1), node(0))
	f.run(large("other", 1), node(1))
	a := f.answer(1, cluster.DrainSpec{MaxSurge: 1}, plan.Settings{})
	must.Eq(t, "no allocation leaves, and the drain does not end: 1 allocation waits; 1 allocation of huge fits nowhere; nothing falls below its limit", a.Sentence)
	must.Eq(t, "waiting for surge", a.Nodes[0].Waits[0].Reason)
	must.SliceLen(t, 1, a.Unplaced)
	must.SliceEmpty(t, a.Groups)
}

// A group that stops first is named, and is down although the drain has a max_surge.
func TestAnswer_surgeStopsFirst(t *testing.T) {
	t.Parallel()
	f := withSurge(t, 3)
	db := clustertest.Job("db", cluster.JobService, 1)
	db.TaskGroups[0].EphemeralDisk = cluster.EphemeralDisk{Migrate: true}
	f.run(db, node(0))
	f.run(clustertest.Job("calc", cluster.JobBatch, 1), node(0))
	spec := cluster.DrainSpec{Deadline: time.Minute}
	must.StrNotContains(t, f.answer(1, spec, plan.Settings{}).Sentence, "stops before")
	spec.MaxSurge = 1
	a := f.answer(1, spec, plan.Settings{})
	must.StrContains(t, a.Sentence, "; db stops before its replacement starts; db is down for ")
	for _, g := range a.Groups {
		must.Eq(t, g.JobID == "db", g.StopsFirst != "", must.Sprint(g.JobID))
	}
}
