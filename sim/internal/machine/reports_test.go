package machine_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A report without the end is in flight when the allocation ends, and its answer comes after the end. The
// client keeps no ended allocations, and keeps this one until the servers have a report of its end. Bug:
// no test noticed a client that took the answer for one to the end.
func TestNode_endWhileAReportIsInFlight(t *testing.T) {
	t.Parallel()
	f := newFixtureKeeping(t, nil, false, -1)
	f.late = func() bool { return true }
	f.place(allocation("a1", &cluster.Task{Name: "web", KillTimeout: 5 * time.Second}))
	f.run(2 * time.Second)
	must.Len(t, 1, tasks(f))
	must.Len(t, 1, f.held, must.Sprint("that it is pending"))
	f.stop("a1")
	held := f.held
	f.held = nil
	f.run(10 * time.Second)
	must.SliceEmpty(t, tasks(f))
	f.held = held
	f.run(time.Second)
	must.False(t, f.row("a1").ClientTerminal())
	must.NotNil(t, f.node.Record("a1"))
	f.late = nil
	f.settle()
	must.EqOp(t, cluster.ClientComplete, f.row("a1").ClientStatus)
	must.Nil(t, f.node.Record("a1"))
}
