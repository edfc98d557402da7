package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jsonbody"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/limits"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// jobSummary is a job with the counts of its allocations and evaluations.
type jobSummary struct {
	of     *cluster.Job // never nil
	groups map[string]wire.GroupSummary
	// live: an allocation is neither stopped nor ended. open: an evaluation is pending or blocked.
	// known: the job has evaluations.
	live, open, known bool
	// delayed: an allocation has ended, and its replacement is not placed yet.
	delayed bool
	// submitted is when this version was registered, or zero if it is unknown.
	submitted time.Time
	// index is of the newest of the job, its allocations and its evaluations, rows how
	// many those are.
	index uint64
	rows  int
}

// summarize counts a job's allocations, and what its open evaluations could not place.
func summarize(s State, j *cluster.Job) *jobSummary {
	sum := &jobSummary{of: j, groups: map[string]wire.GroupSummary{}, index: j.ModifyIndex, rows: 1}
	for _, g := range j.TaskGroups {
		if g != nil {
			sum.groups[g.Name] = wire.GroupSummary{}
		}
	}
	for a := range s.AllocsByJob(j.Key()) {
		sum.count(a)
		if r := j.Rescheduling(a, s.Alloc); r != nil && !r.Spent {
			sum.delayed = true
		}
	}
	for e := range s.EvalsByJob(j.Key()) {
		sum.queue(e)
	}
	return sum
}

func (sum *jobSummary) count(a *cluster.Allocation) {
	sum.index, sum.rows = max(sum.index, a.ModifyIndex), sum.rows+1
	sum.live = sum.live || !a.Terminal()
	if a.Job != nil && a.Job.Version == sum.of.Version && a.Job.CreateIndex == sum.of.CreateIndex {
		sum.submittedBy(a.CreateTime)
	}
	g := sum.groups[a.TaskGroup]
	switch a.ClientStatus {
	case cluster.ClientPending:
		g.Starting++
	case cluster.ClientRunning:
		g.Running++
	case cluster.ClientComplete:
		g.Complete++
	case cluster.ClientFailed:
		g.Failed++
	case cluster.ClientLost:
		g.Lost++
	case cluster.ClientUnknown:
		g.Unknown++
	}
	sum.groups[a.TaskGroup] = g
}

func (sum *jobSummary) queue(e *cluster.Evaluation) {
	sum.index, sum.rows = max(sum.index, e.ModifyIndex), sum.rows+1
	sum.known, sum.open = true, sum.open || e.Open()
	if e.CreateIndex == sum.of.JobModifyIndex { // the registration created it
		sum.submittedBy(e.CreateTime)
	}
	if !e.Open() {
		return
	}
	for name, queued := range e.Queued {
		g := sum.groups[name]
		g.Queued = max(g.Queued, queued)
		sum.groups[name] = g
	}
}

// submittedBy records that the version was registered at that time or before.
func (sum *jobSummary) submittedBy(at time.Time) {
	if sum.submitted.IsZero() || at.Before(sum.submitted) {
		sum.submitted = at
	}
}

// submitTime is when the version was registered, in Unix nanoseconds, or zero. The servers do not store
// it: it is the time of the evaluation that the registration created, or else of the first placement.
func (sum *jobSummary) submitTime() int64 {
	if sum.submitted.IsZero() {
		return 0
	}
	return sum.submitted.UnixNano()
}

// status is pending, running or dead.
func (sum *jobSummary) status() string {
	switch {
	case sum.live, sum.of.Type.EveryNode() && !sum.of.Stop:
		return "running"
	case sum.open, sum.delayed, !sum.known && !sum.of.Stop:
		return "pending"
	}
	return "dead"
}

// job is the job in a cluster of the region.
func (sum *jobSummary) job(region string) *wire.Job {
	w := wire.NewJob(sum.of, region)
	w.Status, w.SubmitTime = new(sum.status()), new(sum.submitTime())
	return w
}

func (sum *jobSummary) summary() *wire.JobSummary {
	return &wire.JobSummary{
		JobID: string(sum.of.ID), Namespace: string(sum.of.Namespace), Summary: sum.groups, Children: &wire.JobChildren{},
		CreateIndex: sum.of.CreateIndex, ModifyIndex: sum.index,
	}
}

func (sum *jobSummary) stub() *wire.JobListStub {
	j := sum.of
	return &wire.JobListStub{
		ID: string(j.ID), Name: string(j.ID), Namespace: string(j.Namespace), Datacenters: j.Datacenters, NodePool: j.NodePool,
		Type: string(j.Type), Priority: j.Priority, Stop: j.Stop, Status: sum.status(), JobSummary: sum.summary(),
		CreateIndex: j.CreateIndex, ModifyIndex: j.ModifyIndex, JobModifyIndex: j.JobModifyIndex,
		SubmitTime: sum.submitTime(),
	}
}

// readJobScale answers GET /v1/job/{id}/scale.
func readJobScale(q *request) error {
	return q.read(func(s State) found {
		j := s.Job(q.jobKey())
		if j == nil {
			return found{index: s.TableIndex(TableJobs), missing: jobNotFound}
		}
		sum := summarize(s, j)
		return found{index: sum.index, rows: sum.rows, body: func() (any, error) { return scaleStatus(s, j), nil }}
	})
}

func scaleStatus(s State, j *cluster.Job) *wire.JobScaleStatus {
	w := &wire.JobScaleStatus{
		JobID: string(j.ID), Namespace: string(j.Namespace), JobCreateIndex: j.CreateIndex, JobModifyIndex: j.JobModifyIndex, JobStopped: j.Stop,
		TaskGroups: map[string]wire.GroupScaleStatus{},
	}
	for _, g := range j.TaskGroups {
		w.TaskGroups[g.Name] = wire.GroupScaleStatus{Desired: g.Count, Events: []wire.Nothing{}}
	}
	for a := range s.AllocsByJob(j.Key()) {
		g, has := w.TaskGroups[a.TaskGroup]
		if !has || a.Terminal() {
			continue
		}
		g.Placed++
		if a.ClientStatus == cluster.ClientRunning {
			g.Running++
		}
		if a.JudgedHealthy() {
			g.Healthy++
		} else if a.HasVerdict() {
			g.Unhealthy++
		}
		w.TaskGroups[a.TaskGroup] = g
	}
	return w
}

// scaleJob answers PUT /v1/job/{id}/scale: the next version of the job has another count of one group.
func scaleJob(q *request) error {
	var body wire.JobScaleRequest
	if err := jsonbody.Decode(q.body, &body); err != nil {
		return err
	}
	if id := body.Target["Job"]; id != "" && id != q.PathValue("id") {
		return failure.Bad("Job ID does not match")
	}
	s, err := q.state()
	if err != nil {
		return err
	}
	j := s.Job(q.jobKey())
	if j == nil {
		return failure.New(http.StatusNotFound, jobNotFound)
	}
	if at := body.JobModifyIndex; at != 0 {
		if err := j.CheckModifyIndex(at); err != nil {
			return err
		}
	}
	next := j.Copy()
	group := next.Group(body.Target["Group"])
	switch {
	case body.Target["Group"] == "":
		return failure.Bad("missing task group name for scaling action")
	case group == nil:
		return failure.Bad("task group %q specified for scaling does not exist in job", body.Target["Group"])
	case body.Error && body.Count != nil:
		return failure.Bad("scaling action should not contain count if error is true")
	case body.Count == nil:
		return q.written(s.Index(), wire.JobResponse{
			JobModifyIndex: j.JobModifyIndex, Index: s.Index(), Warnings: "nothing has changed: without a count the request only records an event, and the servers keep no events of scaling",
		})
	case j.Stop:
		return failure.Bad("job %q is stopped: register it again to scale it", j.ID)
	case *body.Count < 0 || *body.Count > cluster.MaxJobCount:
		return failure.Bad("the count of a group is 0 to %d, not %d", cluster.MaxJobCount, *body.Count)
	}
	group.Count = int(*body.Count)
	err = next.Validate()
	if err == nil {
		err = limits.Counts(next)
	}
	if err != nil {
		return failure.New(http.StatusBadRequest, err.Error())
	}
	return changeJob(q, j, next)
}

// givenUp returns the groups of the job with slots that the scheduler does not fill again, or nil.
func givenUp(q *request, s State, j *cluster.Job) map[string]wire.GroupGivenUp {
	if q.backend.Planner == nil {
		return nil
	}
	var groups map[string]wire.GroupGivenUp
	for _, id := range q.backend.Planner.GivenUp(j.Key()) {
		a := s.Alloc(id)
		if a == nil {
			continue // the planner has read a newer state
		}
		replaced := 0
		if before := rescheduled(s, a); before != nil {
			replaced = len(before.Events)
		}
		g := groups[a.TaskGroup]
		if r := j.Rescheduling(a, s.Alloc); r != nil {
			g.Policy = r.Policy.Limit()
		}
		g.Slots, g.Failed, g.Replaced = g.Slots+1, g.Failed+replaced+1, max(g.Replaced, replaced)
		task, event := lastFailure(a)
		if at := wire.NewTime(event.Time); g.AllocID == "" || at.After(g.At.Time) {
			g.AllocID, g.NodeID, g.Task, g.Event, g.Message, g.At = string(a.ID), string(a.NodeID), task, event.Type, event.Message, at
		}
		if groups == nil {
			groups = make(map[string]wire.GroupGivenUp)
		}
		groups[a.TaskGroup] = g
	}
	return groups
}

// delays returns the groups of the job with allocations whose replacements are not placed yet, or nil.
func delays(s State, j *cluster.Job) map[string]wire.GroupRescheduled {
	var groups map[string]wire.GroupRescheduled
	for a := range s.AllocsByJob(j.Key()) {
		r := j.Rescheduling(a, s.Alloc)
		if r == nil || r.DueAt.IsZero() {
			continue
		}
		g := groups[a.TaskGroup]
		g.Allocs++
		if g.AllocID == "" || r.DueAt.Before(g.DueAt.Time) {
			g.AllocID, g.DueAt, g.Attempts = string(a.ID), wire.NewTime(r.DueAt), r.Attempts
		}
		if groups == nil {
			groups = make(map[string]wire.GroupRescheduled)
		}
		groups[a.TaskGroup] = g
	}
	return groups
}

// rollouts returns the rollouts of the job that have not ended, or nil.
func rollouts(q *request, s State, j *cluster.Job) map[string]wire.GroupRollout {
	if q.backend.Planner == nil {
		return nil
	}
	var groups map[string]wire.GroupRollout
	for _, r := range q.backend.Planner.Rollouts(j.Key()) {
		if groups == nil {
			groups = make(map[string]wire.GroupRollout)
		}
		groups[r.Group] = wire.GroupRollout{
			Outdated: r.Outdated, UnhealthyAllocID: string(r.Unhealthy), UnhealthyBecause: unhealthyBecause(s.Alloc(r.Unhealthy)), Why: r.Why,
		}
	}
	return groups
}

// unhealthyBecause returns what the client last reported of an allocation that it judges unhealthy, such as a failing check
// with its output. It is empty for any other allocation.
func unhealthyBecause(a *cluster.Allocation) (message string) {
	if a == nil || a.TaskStates == nil || !a.HasVerdict() || a.JudgedHealthy() {
		return ""
	}
	var at time.Time
	for _, t := range a.TaskStates.Tasks {
		for _, e := range t.Events {
			if e.Type == unhealthyEvent && !e.Time.Before(at) {
				message, at = e.Message, e.Time
			}
		}
	}
	return message
}

// unhealthyEvent is the type of the event with which a client explains the verdict.
const unhealthyEvent = "Alloc Unhealthy"

// lastFailure returns the newest event that describes how a failed task of the allocation failed. If the client
// has reported none, the task is empty, and the message is the description of the allocation by its client.
func lastFailure(a *cluster.Allocation) (task string, last cluster.TaskEvent) {
	if a.TaskStates == nil {
		return "", cluster.TaskEvent{Message: a.ClientDescription}
	}
	failed := false // last is a failure
	for _, t := range a.TaskStates.Tasks {
		for _, e := range t.Events {
			// Other events are about what followed.
			fails := e.Type == "Terminated" || strings.HasSuffix(e.Type, "Failure")
			if t.Failed && (fails || !failed) && (fails != failed || !e.Time.Before(last.Time)) {
				task, last, failed = t.Name, e, fails
			}
		}
	}
	if task == "" {
		last.Message = a.ClientDescription
	}
	return task, last
}
