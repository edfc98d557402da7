package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jobdiff"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/shortage"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// mostPlanned bounds the new allocations of a preview.
const mostPlanned = 100_000

// planJob answers PUT /v1/job/{id}/plan: what a registration of the job would do. It writes nothing.
func planJob(q *request) error {
	if q.backend.Planner == nil {
		return failure.New(http.StatusNotImplemented, "this server does not plan jobs")
	}
	var body wire.JobPlanRequest
	warnings, err := decodeJob(q, &body)
	if err != nil {
		return err
	}
	job, err := jobOf(q, body.Job)
	if err != nil {
		return err
	}
	present, err := q.state()
	if err != nil {
		return err
	}
	job, more, err := atPresent(q, present, job)
	if err != nil {
		return err
	}
	warnings = append(warnings, more...)
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
		CreatedEvals: []*wire.Evaluation{}, FailedTGAllocs: shortage.OfPlan(state, job, plan),
	}
	if b := plan.Blocked; b != nil && b.CreateIndex == 0 {
		answer.CreatedEvals = append(answer.CreatedEvals, wire.NewEvaluation(b))
	}
	before := state.Job(job.Key())
	if before != nil {
		answer.JobModifyIndex = before.JobModifyIndex
	}
	if body.Diff {
		answer.Diff = jobdiff.Of(before, job)
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
		case a.Terminal(): // a stop only means that no client will report its end
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

// usualTTL is the longest time that the next heartbeat of a node may take in a cluster with few nodes.
const usualTTL = 20 * time.Second

// shortLeashes returns a warning for each group with a stop_on_client_after that clients do not obey exactly.
func shortLeashes(j *cluster.Job) (warnings []string) {
	for _, g := range j.TaskGroups {
		if after := g.Disconnect.StopOnClientAfter; after > 0 && after < usualTTL {
			warnings = append(warnings, fmt.Sprintf("group %q has a stop_on_client_after of %s: its tasks stop when the next heartbeat of the node is overdue, which takes up to %s, and longer with more than 500 nodes", g.Name, after, usualTTL))
		}
	}
	return warnings
}
