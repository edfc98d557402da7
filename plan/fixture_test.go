package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// fixture is a cluster whose allocations are placed by the test.
type fixture struct {
	*clustertest.Replica
	now time.Time
}

func newFixture(t testing.TB, nodes int) *fixture {
	f := &fixture{Replica: clustertest.NewReplica(t, shims.FSMConfig{}), now: epoch()}
	f.Now = func() time.Time { return f.now }
	f.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	for i := range nodes {
		f.Nodes(node(i))
	}
	return f
}

func node(i int) cluster.NodeID { return cluster.NodeID(fmt.Sprintf("n%05d", i)) }

// run registers a job and places its allocations on the nodes, in turn from the first one. They are running
// and healthy.
func (f *fixture) run(j *cluster.Job, on ...cluster.NodeID) *cluster.Job {
	f.Helper()
	j = f.Job(j)
	var places []*cluster.Allocation
	var ids []cluster.AllocID
	for i, n := range on {
		a := clustertest.Alloc(j, cluster.AllocID(fmt.Sprintf("%s-%d", j.ID, i)), n, f.Now())
		a.Name = fmt.Sprintf("%s.%s[%d]", j.ID, j.TaskGroups[0].Name, i)
		places, ids = append(places, a), append(ids, a.ID)
	}
	f.Plan(j, nil, places...)
	f.Report(cluster.ClientRunning, ids...)
	return j
}

// pause pauses or resumes the drain of a node, or all drains if the node is empty.
func (f *fixture) pause(n cluster.NodeID, pause bool) {
	f.Helper()
	f.Must(&shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{Node: n, Pause: pause, At: f.now}})
}

// learn lets an allocation of the job take these times. It is not there any more afterwards.
func (f *fixture) learn(j *cluster.Job, on cluster.NodeID, start, verdict, stop time.Duration) {
	f.Helper()
	j = f.State().Job(j.Key())
	a := clustertest.Alloc(j, cluster.AllocID(fmt.Sprintf("%s-learned-%d", j.ID, f.Index)), on, f.now)
	a.Name = fmt.Sprintf("%s.%s[%d]", j.ID, j.TaskGroups[0].Name, 1000)
	f.Plan(j, nil, a)
	report := func(after time.Duration, s cluster.ClientStatus, healthy *bool) {
		f.now = f.now.Add(after)
		f.Must(&shims.AllocClientUpdate{At: f.now, Reports: []cluster.AllocReport{
			{Alloc: a.ID, Node: on, ClientStatus: s, Healthy: healthy, HealthyAt: f.now, At: f.now},
		}})
	}
	report(start, cluster.ClientRunning, nil)
	report(verdict, cluster.ClientRunning, new(true))
	f.Must(&shims.AllocStop{At: f.now, Alloc: a.ID})
	f.Plan(j, []cluster.AllocID{a.ID})
	report(stop, cluster.ClientComplete, nil)
}
