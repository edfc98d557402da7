package drainer

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// The limiter of state queries delays reads but loses no change.
func TestLimitedReader_LimiterDelays(t *testing.T) {
	t.Parallel()
	const perSecond, burst, changes = 30, 3, 20
	r := newHarness(t, jobsOnOneNode(1), func(c *NodeDrainerConfig) { c.StateQueriesPerSecond = perSecond })
	for i := range changes {
		r.commit(func(w *fixture.Cluster) {
			id := fmt.Sprintf("late%d", i)
			w.Place(cluster.AllocID(id), w.AddJob(cluster.JobID(id), cluster.JobService), "n1")
		})
		r.settle()
	}
	must.Eq(t, burst, r.state.taken(), must.Sprint("the burst"))
	must.Eq(t, fixture.Epoch.Add(time.Second/perSecond), r.wakeAt)
	for reads := range 10 {
		r.advance(time.Second / perSecond)
		must.LessEq(t, burst+reads+1, r.state.taken())
	}
	for _, a := range r.state.now().Allocs {
		must.True(t, a.Marked(), must.Sprintf("%s", a.ID))
	}
}

// The term does not plan from a view older than an answered entry.
func TestLimitedReader_StaleView(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.run()
	r.raft.answer() // the barrier
	r.run()
	r.state.lag(true)
	r.raft.answer() // the mark: applied, and not visible
	r.commit(func(w *fixture.Cluster) { w.Place("late", w.AddJob("late", cluster.JobService), "n1") })
	r.advance(time.Second)
	must.Len(t, 1, r.raft.written())
	report, _ := r.term.Explain("n1", r.now)
	must.Eq(t, "its mark is about to be planned", report.Allocs[0].Detail, must.Sprint("it is not in flight"))
	r.state.lag(false)
	r.advance(DefaultRetryBase)
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"late"}, r.raft.written()[1].marked())
}

// The term does not plan from a view older than its barrier.
func TestLimitedReader_StaleViewBehindTheBarrier(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.state.lag(true)
	r.commit(func(w *fixture.Cluster) { w.Node("n1").Drain = nil }) // cancelled by the previous leader
	r.advance(time.Second)
	must.SliceEmpty(t, r.raft.written())
	r.state.lag(false)
	r.advance(DefaultRetryBase)
	must.SliceEmpty(t, r.raft.written())
	must.True(t, r.wakeAt.IsZero())
}

// Changes that a step could not read are deferred. A report between two steps defers nothing.
func TestLimitedReader_Deferred(t *testing.T) {
	t.Parallel()
	nodes := &idle{}
	r := newHarness(t, jobsOnOneNode(1), func(c *NodeDrainerConfig) {
		c.NodeWatcher = func(Env, NodeTracker) DrainingNodeWatcher { return nodes }
		c.StateQueriesPerSecond = 1
	})
	deferred := func() bool { return nodes.readings[len(nodes.readings)-1].Deferred }
	change := func() { r.commit(func(w *fixture.Cluster) { w.Alloc("a00").ModifyTime = r.now }) }
	r.settle()
	must.Len(t, 1, nodes.readings)
	r.advance(time.Minute)
	change()
	r.term.Reports(r.now)
	r.settle()
	must.Len(t, 2, nodes.readings)
	must.False(t, deferred())
	change()
	r.settle()
	must.Len(t, 2, nodes.readings, must.Sprint("the limiter allows no read"))
	r.advance(time.Second)
	must.Len(t, 3, nodes.readings)
	must.True(t, deferred())
}
