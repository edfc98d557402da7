package rules

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// besideEachOther is a group of one: a1 on the draining node n1, and its standby a2 on n2. Both are healthy.
func besideEachOther() *fixture.World {
	m := cluster.DefaultMigrateStrategy()
	m.MaxSurge = 1
	job := &cluster.Job{Namespace: "default", ID: "web", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{Name: "g", Count: 1, Migrate: m}}}
	alloc := func(id cluster.AllocID, n cluster.NodeID) *cluster.Allocation {
		return &cluster.Allocation{
			ID: id, Namespace: "default", JobID: "web", Job: job, TaskGroup: "g", NodeID: n, DesiredStatus: cluster.DesiredRun,
			ClientStatus: cluster.ClientRunning, CreateTime: fixture.Epoch, DeploymentStatus: &cluster.DeploymentStatus{Healthy: new(true)},
		}
	}
	original, standby := alloc("a1", "n1"), alloc("a2", "n2")
	original.NextAllocation, original.DesiredTransition.Surge = "a2", fixture.DrainID("n1")
	standby.PreviousAllocation, standby.Standby = "a1", true
	return &fixture.World{
		Nodes: []*cluster.Node{
			{ID: "n1", Status: cluster.NodeReady, Drain: &cluster.Drain{ID: fixture.DrainID("n1"), NodeID: "n1", Revision: 1}},
			{ID: "n2", Status: cluster.NodeReady},
		},
		Jobs: []*cluster.Job{job}, Allocs: []*cluster.Allocation{original, standby},
	}
}

// A mark is refused while nothing takes over from its allocation. Bug: the health of the replacement was read with the node
// of the original. Bug: a forced drain took the replacement in the same entry.
func TestRecheck_replacementThatCannotTakeOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct { //lint:order each case by itself
		edit     func(*fixture.World)
		accepted int
	}{
		"healthy":                    {func(*fixture.World) {}, 1},
		"its node is down":           {func(w *fixture.World) { w.Nodes[1].Status = cluster.NodeDown }, 0},
		"its node is disconnected":   {func(w *fixture.World) { w.Nodes[1].Status = cluster.NodeDisconnected }, 0},
		"it is marked":               {func(w *fixture.World) { w.Allocs[1].DesiredTransition.Migrate = true }, 0},
		"it has no verdict":          {func(w *fixture.World) { w.Allocs[1].DeploymentStatus = nil }, 0},
		"its node drains":            {func(w *fixture.World) { drainNode2(w, 0) }, 1},
		"its node drains with force": {func(w *fixture.World) { drainNode2(w, -1) }, 0},
	} {
		w := besideEachOther()
		c.edit(w)
		mark := Mark{Alloc: "a1", Group: w.Allocs[0].GroupKey(), Node: "n1", Drain: fixture.DrainID("n1"), Revision: 1, Class: cluster.MarkPaced}
		accepted, _, _ := Recheck(w, withEvals(&Marks{At: fixture.Epoch.Add(time.Minute), Marks: []Mark{mark}}))
		must.Len(t, c.accepted, accepted, must.Sprint(name))
	}
}

func drainNode2(w *fixture.World, deadline time.Duration) {
	w.Nodes[1].Drain = &cluster.Drain{ID: fixture.DrainID("n2"), NodeID: "n2", Revision: 1}
	w.Nodes[1].Drain.Strategy.Deadline = deadline
}
