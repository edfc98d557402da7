package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jobdiff"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/listing"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/shortage"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
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
		case !stopped && j.Rescheduling(a, s.Alloc).Waits(p.Eval.ModifyTime):
			of(a.TaskGroup).RescheduleLater++
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
		"disconnect": u.Disconnect, "reschedule": u.RescheduleNow, "reschedule later": u.RescheduleLater,
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

// Bounds of the plans of drains. A plan takes a processor for seconds, so a server makes one at a time.
const (
	// maxDrainPlans bounds the plans that a server makes or that wait, maxDrainPlansPerClient those of one caller.
	maxDrainPlans          = 16
	maxDrainPlansPerClient = 4
	// maxDrainPlanBody bounds the body, which may name every node of a cluster.
	maxDrainPlanBody = 1 << 20
	// playsWithin is the time after which no further play of a plan begins.
	playsWithin = 20 * time.Second
)

// planDrains answers PUT /v1/drains/plan: what drains would do. It writes nothing. A leader passes the request to
// another server, and answers it if no other server does. Any other server answers from its own state.
func planDrains(q *request) error {
	if q.backend.Planner == nil {
		return failure.New(http.StatusNotImplemented, "this server does not plan drains")
	}
	var body drainplan.Request
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	if err := checkDrainPlan(&body); err != nil {
		return err
	}
	h, client := q.handler, q.client()
	if !h.drainPlans.Take(client) {
		return failure.Newf(http.StatusTooManyRequests,
			"too many plans of drains are being made: a server has at most %d, and %d of one caller; retry later", maxDrainPlans, maxDrainPlansPerClient)
	}
	defer h.drainPlans.Free(client)
	end := time.Now().Add(drainplan.MaxTime)
	ctx, cancel := context.WithDeadline(q.Context(), end)
	defer cancel()
	passed, err := passPlan(ctx, q)
	switch {
	case passed:
		return nil
	case ctx.Err() != nil, !time.Now().Before(end): // the other server may have ended first
		return planTooLong()
	case err != nil:
		return err
	}
	return makeDrainPlan(ctx, q, &body)
}

// planTooLong is the failure of a plan that takes longer than drainplan.MaxTime.
func planTooLong() error {
	return failure.Newf(http.StatusServiceUnavailable, "the plan was not ready after %s: name fewer nodes", drainplan.MaxTime)
}

// makeDrainPlan answers a request from the state of this server.
func makeDrainPlan(ctx context.Context, q *request, body *drainplan.Request) error {
	if err := awaitApplied(ctx, q); err != nil {
		return err
	}
	state, err := q.state()
	if err != nil {
		return err
	}
	question, err := drainQuestion(state, body)
	if err != nil {
		return err
	}
	end, err := beginDrainPlan(ctx, q.handler)
	if err != nil {
		return err
	}
	defer end()
	began := time.Now()
	answer, err := q.backend.Planner.PlanDrains(ctx, question, func(int) bool { return time.Since(began) < playsWithin })
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return planTooLong()
	case err != nil:
		return orNotFound(err, http.StatusInternalServerError, nodeNotFound)
	}
	q.readHeaders(answer.Index)
	return q.answer(answer)
}

// appliedHeader is the index of an entry that the state must show, in a request that another server has passed.
const appliedHeader = "X-Nodedrain-Applied"

// appliedTime is the longest wait for that entry. A server whose state is older then leaves the request to others.
const appliedTime = time.Second

// passPlan passes the request to another server, so that plans take no processor time of the leader. It reports
// whether one has answered. The state from which that server answers shows every entry that this one's shows.
func passPlan(ctx context.Context, q *request) (passed bool, err error) {
	if q.forwarder != "" || !q.backend.Peers.Leads() {
		return false, nil
	}
	state, err := q.state()
	if err != nil {
		return false, err
	}
	marked := markedRequest(ctx, q)
	marked.Header.Set(appliedHeader, strconv.FormatUint(state.Index(), 10))
	return q.backend.Peers.Pass(q.w, marked), nil
}

// awaitApplied waits for the entry that the server that has passed the request names.
func awaitApplied(ctx context.Context, q *request) error {
	text := q.Header.Get(appliedHeader)
	if q.forwarder == "" || text == "" {
		return nil
	}
	index, err := strconv.ParseUint(text, 10, 64)
	if err != nil || index == 0 {
		return failure.Bad("%s is no index", appliedHeader)
	}
	wait, cancel := context.WithTimeout(ctx, appliedTime)
	defer cancel()
	err = q.readAgain(wait, index-1, func(s State) (uint64, error) { return s.Index(), nil })
	if err != nil && wait.Err() != nil {
		return failure.Newf(http.StatusServiceUnavailable, "the state of this server was older than that of the leader for %s", appliedTime)
	}
	return err
}

// beginDrainPlan waits until the server makes no other plan. The caller calls end.
func beginDrainPlan(ctx context.Context, h *Handler) (end func(), err error) {
	end = func() {}
	select {
	case h.drainPlanTurn <- struct{}{}:
		end = func() { <-h.drainPlanTurn }
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // perhaps at the same time as the turn
		end()
		return nil, failure.Newf(http.StatusServiceUnavailable, "the server was busy with other plans for %s; retry later", drainplan.MaxTime)
	}
	return end, nil
}

// checkDrainPlan checks what does not depend on the state.
func checkDrainPlan(body *drainplan.Request) error {
	switch {
	case body.DrainSpec == nil:
		return failure.New(http.StatusBadRequest, "DrainSpec is missing")
	case body.Plays < 0 || body.Plays > drainplan.MaxPlays:
		return failure.Bad("Plays is %d and must be at most %d; 0 lets the server choose", body.Plays, drainplan.MaxPlays)
	case len(body.Nodes) == 0 && body.Filter == "":
		return failure.New(http.StatusBadRequest, "Nodes or Filter is required")
	}
	return checkDrainSpec(body.DrainSpec)
}

// drainQuestion selects the nodes of a request.
func drainQuestion(s State, body *drainplan.Request) (DrainQuestion, error) {
	question := DrainQuestion{OneByOne: body.OneByOne, Plays: body.Plays}
	question.Spec = body.DrainSpec.Spec()
	if v := s.ClusterVersion(); question.Spec.MaxSurge != 0 && v < cluster.VersionOfSurge {
		return question, failure.Newf(http.StatusServiceUnavailable, "the cluster has version %d until all its servers are upgraded, and MaxSurge of a drain needs version %d: "+
			"upgrade the servers, then request the plan", v, cluster.VersionOfSurge)
	}
	seen := map[cluster.NodeID]bool{}
	for _, text := range body.Nodes {
		id := cluster.NodeID(text)
		if s.Node(id) == nil {
			return question, failure.Newf(http.StatusNotFound, "node not found: %s", failure.Quoted(text))
		}
		if !seen[id] {
			seen[id] = true
			question.Nodes = append(question.Nodes, id)
		}
	}
	if body.Filter == "" {
		return question, nil
	}
	selected, err := listing.Select(s.Nodes(), body.Filter, func(n *cluster.Node) any { return wire.NewNode(n) })
	if err != nil {
		return question, err
	}
	for _, n := range selected {
		if !seen[n.ID] {
			question.Nodes = append(question.Nodes, n.ID)
		}
	}
	if len(question.Nodes) == 0 {
		return question, failure.New(http.StatusNotFound, "the filter selects no node")
	}
	return question, nil
}
