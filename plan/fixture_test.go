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
type fixture struct{ *clustertest.Replica }

func newFixture(t testing.TB, nodes int) *fixture {
	f := &fixture{clustertest.NewReplica(t, shims.FSMConfig{})}
	f.Now = epoch
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

// fill runs jobs of a count of 20 until each node has so many allocations.
func (f *fixture) fill(nodes, perNode, maxParallel int) {
	for k := range nodes * perNode / 20 {
		j := clustertest.Job(cluster.JobID(fmt.Sprintf("job%05d", k)), cluster.JobService, 20)
		j.TaskGroups[0].Tasks[0].Resources = cluster.Resources{CPU: 40, MemoryMB: 64}
		j.TaskGroups[0].Migrate.MaxParallel = maxParallel
		var on []cluster.NodeID
		for i := range 20 {
			on = append(on, node((k*20+i)%nodes))
		}
		f.run(j, on...)
	}
}
