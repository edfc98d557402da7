package onnode_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// withProxy places an allocation with a sidecar. SIGKILL does not end its main task within an hour.
func (f *fixture) withProxy(t *testing.T) *cluster.Allocation {
	t.Helper()
	a := allocation("stuck")
	g := a.Job.TaskGroups[0]
	g.Tasks = append(g.Tasks, &cluster.Task{
		Name: "proxy", Driver: "mock", KillTimeout: 5 * time.Second, Lifecycle: &cluster.Lifecycle{Hook: cluster.HookPrestart, Sidecar: true},
	})
	f.node.Servers(f.wanted(a))
	f.advance(t, time.Minute)
	must.Len(t, 1, f.node.Machine().LivingIn("stuck:proxy"))
	return a
}

// A sidecar must not stop before the main task.
func TestJudge_sidecarStopsFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.withProxy(t)
	f.received(a, f.alloc, f.plugin) // the client does not receive it
	f.node.Machine().Signal(f.node.Machine().LivingIn("stuck:proxy")[0].Identity, scripted.SIGTERM, scripted.ByDriver)
	f.judge.Advanced(f.node)
	must.Len(t, 1, f.judge.Violations())
	must.EqOp(t, "order", f.judge.Violations()[0].Check)
}

// A sidecar does not wait for a main task that cannot die. A regression: it ran on, and the judge
// permitted it.
func TestJudge_sidecarOfAStuckTask(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stopped := f.withProxy(t).Copy()
	stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, 2
	w := f.wanted(stopped)
	w.Index = 2
	f.node.Servers(w)
	f.advance(t, 30*time.Minute)
	must.Len(t, 1, f.node.Machine().LivingIn("stuck:web"))
	must.SliceEmpty(t, f.node.Machine().LivingIn("stuck:proxy"))
	f.judge.Advanced(f.node)
	must.SliceEmpty(t, f.judge.Violations())
}
