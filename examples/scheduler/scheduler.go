package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// plan is what the scheduler decides for one evaluation, from the state of the index: see
// state.execute.
type plan struct {
	Eval  cluster.EvalID
	Index uint64
	Stop  []cluster.AllocID
	Place []*cluster.Allocation
	// Queued counts, by group, the allocations for which no node is ready; or nil.
	Queued map[string]int
}

// nextPlan returns the plan of an open evaluation that changes something, or nil. The plan of a
// blocked evaluation changes something when a node is ready again.
func (s *state) nextPlan() *plan {
	for _, key := range slices.SortedFunc(maps.Keys(s.jobs), cluster.JobKey.Compare) {
		for e := range s.view.OpenEvals(key) {
			if p := s.schedule(e, s.jobs[key]); e.Status == cluster.EvalPending || len(p.Place) > 0 {
				return p
			}
		}
	}
	return nil
}

// schedule stops the marked allocations of a job, also if no node is ready for their replacements,
// and places what is missing. A service has as many allocations as its count, spread over the nodes;
// a system job has one on each node.
func (s *state) schedule(e *cluster.Evaluation, job *cluster.Job) *plan {
	p := &plan{Eval: e.ID, Index: s.index}
	var ready, kept []cluster.NodeID
	for _, id := range slices.Sorted(maps.Keys(s.nodes)) {
		if s.nodes[id].Ready() {
			ready = append(ready, id)
		}
	}
	group := job.TaskGroups[0] // jobs of this scheduler have one group
	for a := range s.view.GroupAllocs(cluster.GroupKey{Job: job.Key(), Name: group.Name}) {
		switch {
		case a.ServerTerminal():
		case a.Marked():
			p.Stop = append(p.Stop, a.ID)
		default:
			kept = append(kept, a.NodeID)
		}
	}
	missing := group.Count - len(kept)
	switch {
	case job.Type == cluster.JobSystem:
		for _, node := range ready {
			if !slices.Contains(kept, node) {
				p.place(job, node)
			}
		}
	case len(ready) == 0 && missing > 0:
		p.Queued = map[string]int{group.Name: missing}
	default:
		for i := range missing {
			p.place(job, ready[(int(s.index)+i)%len(ready)])
		}
	}
	return p
}

// place adds an allocation. The first ones replace those that the plan stops.
func (p *plan) place(job *cluster.Job, node cluster.NodeID) {
	a := &cluster.Allocation{
		ID:        cluster.AllocID(fmt.Sprintf("%s-%d-%d", job.ID, p.Index, len(p.Place))),
		Namespace: job.Namespace, JobID: job.ID, Job: job, TaskGroup: job.TaskGroups[0].Name, NodeID: node, EvalID: p.Eval,
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending,
	}
	if len(p.Place) < len(p.Stop) && job.Type == cluster.JobService {
		a.PreviousAllocation = p.Stop[len(p.Place)]
	}
	p.Place = append(p.Place, a)
}

// The times that an allocation takes to start and to stop.
const startTime, stopTime = 4 * time.Second, 2 * time.Second

// reports plays the clients of all nodes: it returns what they would report by now. A real client
// runs tasks and sends its reports to the leader.
func (s *state) reports(now time.Time) (reports []cluster.AllocReport) {
	for _, id := range slices.Sorted(maps.Keys(s.allocs)) {
		a := s.allocs[id]
		r := cluster.AllocReport{Alloc: id, Node: a.NodeID, ClientStatus: a.ClientStatus, Healthy: new(bool), HealthyAt: now, At: now}
		switch {
		case a.ServerTerminal() && now.Sub(a.StoppedAt) >= stopTime:
			r.ClientStatus = cluster.ClientComplete
		case !a.ServerTerminal() && now.Sub(a.CreateTime) >= startTime:
			r.ClientStatus, *r.Healthy = cluster.ClientRunning, true
		}
		if r.ClientStatus != a.ClientStatus {
			reports = append(reports, r)
		}
	}
	return reports
}
