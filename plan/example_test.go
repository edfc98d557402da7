package plan_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rowview"
	"github.com/seed-f9cf0b39/nodedrain/plan"
)

// A scheduler with rows of its own plans the drain of a node. Its own scheduler takes no part, so placement is
// not judged.
func ExampleLoadElsewhere() {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	web := &cluster.Job{ID: "web", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{Name: "web", Count: 2, Tasks: []*cluster.Task{{Name: "main"}}}}}
	web.Canonicalize()
	alloc := func(id cluster.AllocID, on cluster.NodeID) *cluster.Allocation {
		return &cluster.Allocation{
			ID: id, Namespace: web.Namespace, JobID: web.ID, Job: web, TaskGroup: "web", Name: "web.web[" + string(id) + "]", NodeID: on, CreateTime: at,
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning, DeploymentStatus: &cluster.DeploymentStatus{Healthy: new(true), Timestamp: at},
		}
	}
	ready := func(id cluster.NodeID) *cluster.Node {
		return &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible}
	}
	rows := rowview.New(7, []*cluster.Node{ready("n1"), ready("n2")}, []*cluster.Job{web}, []*cluster.Allocation{alloc("0", "n1"), alloc("1", "n1")}, nil)

	store, err := plan.LoadElsewhere(rows)
	if err != nil {
		panic(err)
	}
	q := plan.Question{Nodes: []cluster.NodeID{"n1"}, Spec: cluster.DrainSpec{Deadline: time.Hour}, At: at.Add(time.Minute)}
	answer, err := plan.Answer(context.Background(), store, q, plan.Settings{Elsewhere: true}, 1, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Sentence)
	// Output: 2 allocations leave in 17s; nothing falls below its limit
}
