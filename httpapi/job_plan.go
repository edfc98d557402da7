package httpapi

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// mostPlanned bounds the new allocations of a preview.
const mostPlanned = 100_000

// planJob answers PUT /v1/job/{id}/plan: what a registration of the job would do. It writes nothing.
func planJob(q *request) error {
	if q.backend.Planner == nil {
		return fail(http.StatusNotImplemented, "this server does not plan jobs")
	}
	var body wire.JobPlanRequest
	if err := decodeDeep(q, &body); err != nil {
		return err
	}
	job, warnings, err := jobOf(q, body.Job)
	if err != nil {
		return err
	}
	if err := poolExists(q, job); err != nil {
		return err
	}
	plan, state, err := q.backend.Planner.PlanJob(q.Context(), job, mostPlanned)
	if err != nil {
		return err
	}
	updates := desiredUpdates(state, job, plan)
	if fresh(plan) >= mostPlanned {
		warnings = append(warnings, fmt.Sprintf("The plan ends after %d new allocations", mostPlanned))
	}
	answer := wire.JobPlanResponse{
		Annotations: &wire.PlanAnnotations{DesiredTGUpdates: updates}, Warnings: strings.Join(warnings, "\n"),
		CreatedEvals: []*wire.Evaluation{}, FailedTGAllocs: unplaced(state, job, plan),
	}
	if b := plan.Blocked; b != nil && b.CreateIndex == 0 {
		answer.CreatedEvals = append(answer.CreatedEvals, wire.NewEvaluation(b))
	}
	before := state.Job(job.Key())
	if before != nil {
		answer.JobModifyIndex = before.JobModifyIndex
	}
	if body.Diff {
		answer.Diff = diffJob(before, job)
		for _, g := range answer.Diff.TaskGroups {
			g.Updates = updateWords(updates[g.Name])
		}
	}
	return q.written(state.Index(), answer)
}

// fresh counts the placements that replace no allocation.
func fresh(p *cluster.Plan) (count int) {
	for _, a := range p.Places {
		if a.PreviousAllocation == "" {
			count++
		}
	}
	return count
}

// desiredUpdates counts, by group, what a plan does with the allocations of its job.
func desiredUpdates(s State, j *cluster.Job, p *cluster.Plan) map[string]*wire.DesiredUpdates {
	groups := map[string]*wire.DesiredUpdates{}
	of := func(group string) *wire.DesiredUpdates {
		if groups[group] == nil {
			groups[group] = &wire.DesiredUpdates{}
		}
		return groups[group]
	}
	for _, g := range j.TaskGroups {
		of(g.Name)
	}
	stops := make(map[cluster.AllocID]cluster.PlanStop, len(p.Stops))
	for _, stop := range p.Stops {
		stops[stop.Alloc] = stop
	}
	for a := range s.AllocsByJob(j.Key()) {
		switch stop, stopped := stops[a.ID]; {
		case stopped && stop.Unknown:
			of(a.TaskGroup).Disconnect++
		case stopped && stop.Migrate:
			of(a.TaskGroup).Migrate++
		case stopped && stop.Description == cluster.DescRescheduled:
			of(a.TaskGroup).RescheduleNow++
		case a.Terminal(): // a stop only says that no client will report its end
		case stopped:
			of(a.TaskGroup).Stop++
		default:
			of(a.TaskGroup).Ignore++
		}
	}
	for _, a := range p.Places {
		if stop := stops[a.PreviousAllocation]; !stop.Migrate && stop.Description != cluster.DescRescheduled {
			of(a.TaskGroup).Place++
		}
	}
	for group, queued := range p.Eval.Queued {
		of(group).Place += uint64(queued)
	}
	return groups
}

// updateWords names the counts as a difference shows them, without those that are zero.
func updateWords(u *wire.DesiredUpdates) map[string]uint64 {
	words := map[string]uint64{}
	if u == nil {
		return words
	}
	for word, count := range map[string]uint64{
		"ignore": u.Ignore, "create": u.Place, "migrate": u.Migrate, "destroy": u.Stop,
		"disconnect": u.Disconnect, "reschedule": u.RescheduleNow,
	} {
		if count > 0 {
			words[word] = count
		}
	}
	return words
}

// unplaced says, by group, why a plan does not place allocations. It is nil if all are placed.
func unplaced(s State, j *cluster.Job, p *cluster.Plan) map[string]*wire.AllocationMetric {
	if len(p.Eval.Queued) == 0 {
		return nil
	}
	after := newPlanned(s, p)
	failed := map[string]*wire.AllocationMetric{}
	for name, queued := range p.Eval.Queued {
		failed[name] = newShortage(after, j, j.Group(name), queued).metric
	}
	return failed
}

// planned is a state with the placements of a plan. Stopped allocations still hold their resources,
// because their clients have not stopped them yet.
type planned struct {
	State
	places []*cluster.Allocation
	used   map[cluster.NodeID]cluster.Usage
}

func newPlanned(s State, p *cluster.Plan) *planned {
	after := &planned{State: s, places: p.Places, used: map[cluster.NodeID]cluster.Usage{}}
	for _, a := range p.Places {
		u := after.used[a.NodeID]
		after.used[a.NodeID] = cluster.Usage{Live: u.Live + 1, Resources: u.Resources.Plus(a.Resources)}
	}
	return after
}

// Usage is the need of the node's allocations.
func (p *planned) Usage(id cluster.NodeID) cluster.Usage {
	u, more := p.State.Usage(id), p.used[id]
	return cluster.Usage{Live: u.Live + more.Live, Resources: u.Resources.Plus(more.Resources)}
}

// AllocsByNode yields the node's allocations.
func (p *planned) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	all := slices.Collect(p.State.AllocsByNode(id))
	for _, a := range p.places {
		if a.NodeID == id {
			all = append(all, a)
		}
	}
	return slices.Values(all)
}

// AllocsByJob yields the job's allocations.
func (p *planned) AllocsByJob(key cluster.JobKey) iter.Seq[*cluster.Allocation] {
	all := slices.Collect(p.State.AllocsByJob(key))
	for _, a := range p.places {
		if a.JobKey() == key {
			all = append(all, a)
		}
	}
	return slices.Values(all)
}
