package plan_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/plan"
)

// A hundred answers, and a hundred whose callers go, leave no goroutine and no memory, and write nothing to the
// state. A single object that each left would be found. The test runs alone.
func TestAnswer_leavesNothing(t *testing.T) {
	f := newFixture(t, 4)
	f.run(clustertest.Job("web", cluster.JobService, 4), node(0), node(0), node(1), node(2))
	f.run(large("huge", 2), node(0), node(3))
	store := f.FSM.Store()
	q := plan.Question{Nodes: []cluster.NodeID{node(0), node(1)}, Spec: cluster.DrainSpec{Deadline: time.Minute}, At: f.now.Add(time.Hour)}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	answers := func(times int) {
		for range times {
			_, err := plan.Answer(t.Context(), store, q, plan.Settings{}, 0, nil)
			must.NoError(t, err)
			_, err = plan.Answer(gone, store, q, plan.Settings{}, 0, nil)
			must.ErrorIs(t, err, context.Canceled)
		}
	}
	objects := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the first one only empties the pools halfway
		runtime.ReadMemStats(&m)
		return int64(m.Mallocs - m.Frees)
	}
	answers(3)
	index, goroutines, before := store.Snapshot().Index(), runtime.NumGoroutine(), objects()
	answers(100)
	must.EqOp(t, index, store.Snapshot().Index())
	must.EqOp(t, goroutines, runtime.NumGoroutine())
	must.Less(t, 100, objects()-before)
}
