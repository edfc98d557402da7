package drainer

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// web is the group that towns are about.
var web = cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: "web"}, Name: "g"}

// town is a world to tell a story in: nodes n1, n2, ... and one service group
// with healthy allocations a1, a2, ... on them in turn. It is edited in place,
// until it is given to a store.
type town struct{ *world }

// newTown has so many nodes and allocations; the group wants as many, one down
// at a time.
func newTown(nodes, allocs int) *town {
	t := &town{world: &world{index: 10}}
	for i := range nodes {
		n := &cluster.Node{ID: cluster.NodeID(fmt.Sprintf("n%d", i+1)), Name: fmt.Sprintf("node-%d", i+1), Status: cluster.NodeReady, StatusChangedAt: epoch.Add(-time.Hour)}
		n.Canonicalize()
		t.nodes = append(t.nodes, n)
	}
	t.jobs = append(t.jobs, &cluster.Job{Namespace: "default", ID: "web", Type: cluster.JobService, Priority: 70, TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: allocs,
		Migrate: &cluster.MigrateStrategy{MaxParallel: 1, HealthyDeadline: time.Minute},
		Tasks:   []*cluster.Task{{Name: "t", KillTimeout: 20 * time.Second}},
	}}})
	for i := range allocs {
		t.place(cluster.AllocID(fmt.Sprintf("a%d", i+1)), t.jobs[0], t.nodes[i%nodes].ID)
	}
	return t
}

// place puts a healthy allocation of the job's first group on a node.
func (t *town) place(id cluster.AllocID, j *cluster.Job, n cluster.NodeID) *cluster.Allocation {
	a := &cluster.Allocation{
		ID: id, Namespace: j.Namespace, JobID: j.ID, Job: j, TaskGroup: j.TaskGroups[0].Name, NodeID: n,
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
		DeploymentStatus: &cluster.DeploymentStatus{Healthy: new(true)},
		CreateTime:       epoch.Add(-time.Hour), ModifyTime: epoch.Add(-time.Hour),
	}
	t.allocs = append(t.allocs, a)
	return a
}

// job adds a job of another type with one group "g" of one.
func (t *town) job(id cluster.JobID, kind cluster.JobType) *cluster.Job {
	j := &cluster.Job{Namespace: "default", ID: id, Type: kind, Priority: 50, TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: 1, Tasks: []*cluster.Task{{Name: "t", KillTimeout: 20 * time.Second}},
	}}}
	t.jobs = append(t.jobs, j)
	return j
}

// drain starts a drain on a node at the epoch, under revision 7.
func (t *town) drain(id cluster.NodeID, deadline time.Duration) *cluster.Drain {
	d := &cluster.Drain{ID: drainOf(id), NodeID: id, Revision: 7, UpdatedAt: epoch}
	d.Strategy.Deadline, d.Strategy.StartedAt = deadline, epoch
	if deadline > 0 {
		d.Strategy.ForceDeadline = epoch.Add(deadline)
	}
	n := t.node(id)
	n.Drain, n.SchedulingEligibility = d, cluster.NodeIneligible
	return d
}

func (t *town) node(id cluster.NodeID) *cluster.Node         { return t.Node(id) }
func (t *town) alloc(id cluster.AllocID) *cluster.Allocation { return t.Alloc(id) }
func (t *town) group() *cluster.TaskGroup                    { return t.jobs[0].TaskGroups[0] }
