package rules_test

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rowview"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// An FSM checks an entry of marks in the state in which it applies the entry. Here the state has room
// for one of two marks: two of two allocations are healthy, and one must stay.
func ExampleRecheck() {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	node := &cluster.Node{ID: "n1", Status: cluster.NodeReady, Drain: &cluster.Drain{ID: "d1", NodeID: "n1", Revision: 7}}
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "web", Count: 2, Tasks: []*cluster.Task{{Name: "web"}}}}}
	job.Canonicalize() // max_parallel is 1

	entry := &rules.Marks{At: noon, Evals: []*cluster.Evaluation{{ID: "e1", Namespace: job.Namespace, JobID: job.ID}}}
	var allocs []*cluster.Allocation
	for _, id := range []cluster.AllocID{"a1", "a2"} {
		healthy := true
		a := &cluster.Allocation{
			ID: id, Namespace: job.Namespace, JobID: job.ID, Job: job, TaskGroup: "web", NodeID: node.ID, CreateTime: noon,
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning, DeploymentStatus: &cluster.DeploymentStatus{Healthy: &healthy},
		}
		allocs = append(allocs, a)
		entry.Marks = append(entry.Marks, rules.Mark{Alloc: id, Group: a.GroupKey(), Node: "n1", Drain: "d1", Revision: 7, Class: cluster.MarkPaced})
	}
	view := rowview.New(8, []*cluster.Node{node}, []*cluster.Job{job}, allocs, nil)

	accepted, evals, refused := rules.Recheck(view, entry)
	for _, m := range accepted {
		fmt.Println("mark", m.Alloc)
	}
	for _, e := range evals {
		fmt.Println("write evaluation", e.ID)
	}
	for _, r := range refused {
		fmt.Printf("refuse %s: %s\n", r.Alloc, r.Why)
	}

	// Output:
	// mark a1
	// write evaluation e1
	// refuse a2: the group has no room
}
