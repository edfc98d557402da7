package witness_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// rows are the state of a small store. One with indexes has a faster filter.
type rows struct {
	nodes  map[cluster.NodeID]*cluster.Node
	jobs   map[cluster.JobKey]*cluster.Job
	allocs map[cluster.AllocID]*cluster.Allocation
	evals  []*cluster.Evaluation
	drains map[cluster.DrainID]*cluster.Drain
}

var _ witness.State = rows{}

func (r rows) Node(id cluster.NodeID) *cluster.Node          { return r.nodes[id] }
func (r rows) Job(key cluster.JobKey) *cluster.Job           { return r.jobs[key] }
func (r rows) Alloc(id cluster.AllocID) *cluster.Allocation  { return r.allocs[id] }
func (r rows) DrainRecord(id cluster.DrainID) *cluster.Drain { return r.drains[id] }

func (r rows) AllocsByJob(key cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return filter(maps.Values(r.allocs), func(a *cluster.Allocation) bool { return a.JobKey() == key })
}

func (r rows) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	return filter(maps.Values(r.allocs), func(a *cluster.Allocation) bool { return a.NodeID == id })
}

func (r rows) EvalsByJob(key cluster.JobKey) iter.Seq[*cluster.Evaluation] {
	return filter(slices.Values(r.evals), func(e *cluster.Evaluation) bool { return e.JobKey() == key })
}

func filter[T any](all iter.Seq[T], is func(T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for row := range all {
			if is(row) && !yield(row) {
				return
			}
		}
	}
}

// A state machine that applies marks without a check breaks the budget of a group. The witness finds
// this in the states before and after the entry.
func ExampleWitness() {
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "web", Count: 2, Tasks: []*cluster.Task{{Name: "web"}}}}}
	job.Canonicalize() // max_parallel is 1
	before := rows{
		nodes:  map[cluster.NodeID]*cluster.Node{"n1": {ID: "n1", Status: cluster.NodeReady, Drain: &cluster.Drain{ID: "d1", NodeID: "n1"}}},
		jobs:   map[cluster.JobKey]*cluster.Job{job.Key(): job},
		allocs: map[cluster.AllocID]*cluster.Allocation{},
	}
	after := before
	after.allocs = map[cluster.AllocID]*cluster.Allocation{}
	for _, id := range []cluster.AllocID{"a1", "a2"} {
		healthy := true
		a := &cluster.Allocation{
			ID: id, Namespace: job.Namespace, JobID: job.ID, Job: job, TaskGroup: "web", NodeID: "n1",
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning, DeploymentStatus: &cluster.DeploymentStatus{Healthy: &healthy},
		}
		before.allocs[id], after.allocs[id] = a, a.Copy()
		after.allocs[id].DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d1", Class: cluster.MarkPaced}
	}

	w := witness.New(witness.Options{})
	w.Observe(witness.Entry{Index: 9, Before: before, After: after, Touched: witness.Touched{Allocs: []cluster.AllocID{"a1", "a2"}}})
	for _, f := range w.Report().Findings {
		fmt.Println(f)
	}

	// Output:
	// G1 below limit at index 9, drain d1, node n1, allocation a2, group default/web.web, healthy 0, limit 1: paced mark took its group below its limit
}
