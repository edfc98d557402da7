package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Jobs lists the jobs of the namespace by id.
func (c *Client) Jobs(ctx context.Context, q Query) ([]*wire.JobListStub, Answer, error) {
	return get[[]*wire.JobListStub](ctx, c, "/v1/jobs", q.values())
}

// Job reads a job by its whole id, in the client's namespace.
func (c *Client) Job(ctx context.Context, id string, q Query) (*wire.Job, Answer, error) {
	return get[*wire.Job](ctx, c, jobPath(id, ""), q.values())
}

// JobSummary counts the allocations of a job by group.
func (c *Client) JobSummary(ctx context.Context, id string, q Query) (*wire.JobSummary, Answer, error) {
	return get[*wire.JobSummary](ctx, c, jobPath(id, "/summary"), q.values())
}

// JobAllocations lists the allocations of a job.
func (c *Client) JobAllocations(ctx context.Context, id string, q Query) ([]*wire.AllocationListStub, Answer, error) {
	return get[[]*wire.AllocationListStub](ctx, c, jobPath(id, "/allocations"), q.values())
}

// JobEvaluations lists the evaluations of a job.
func (c *Client) JobEvaluations(ctx context.Context, id string, q Query) ([]*wire.Evaluation, Answer, error) {
	return get[[]*wire.Evaluation](ctx, c, jobPath(id, "/evaluations"), q.values())
}

// RegisterJob registers a job, or its next version. The body is JSON of [wire.JobRegisterRequest].
func (c *Client) RegisterJob(ctx context.Context, body json.RawMessage) (*wire.JobResponse, Answer, error) {
	return put[*wire.JobResponse](ctx, c, "/v1/jobs", body)
}

// JobFile is a registration that is not sent. Its requests change nothing.
type JobFile struct {
	client *Client
	body   json.RawMessage
}

// JobFile returns the requests about a registration. The body is JSON of [wire.JobPlanRequest] or of
// [wire.JobValidateRequest].
func (c *Client) JobFile(body json.RawMessage) JobFile { return JobFile{c, body} }

// Plan returns what the registration would do. The id is the job's.
func (f JobFile) Plan(ctx context.Context, id string) (*wire.JobPlanResponse, Answer, error) {
	return put[*wire.JobPlanResponse](ctx, f.client, jobPath(id, "/plan"), f.body)
}

// Validate returns whether the servers would register the job.
func (f JobFile) Validate(ctx context.Context) (*wire.JobValidateResponse, Answer, error) {
	return put[*wire.JobValidateResponse](ctx, f.client, "/v1/validate/job", f.body)
}

// StopJob stops a job.
func (c *Client) StopJob(ctx context.Context, id string, how cluster.JobStop) (*wire.JobResponse, Answer, error) {
	values := url.Values{}
	if how.Purge {
		values.Set("purge", "true")
	}
	if how.EvalPriority != 0 {
		values.Set("eval_priority", strconv.Itoa(how.EvalPriority))
	}
	return call[*wire.JobResponse](ctx, c, http.MethodDelete, jobPath(id, ""), values, nil)
}

// Allocations lists allocations by id.
func (c *Client) Allocations(ctx context.Context, q Query) ([]*wire.AllocationListStub, Answer, error) {
	return get[[]*wire.AllocationListStub](ctx, c, "/v1/allocations", q.values())
}

// Allocation reads an allocation by its whole id.
func (c *Client) Allocation(ctx context.Context, id string, q Query) (*wire.Allocation, Answer, error) {
	return get[*wire.Allocation](ctx, c, "/v1/allocation/"+pathElement(id), q.values())
}

// Evaluations lists evaluations by id.
func (c *Client) Evaluations(ctx context.Context, q Query) ([]*wire.Evaluation, Answer, error) {
	return get[[]*wire.Evaluation](ctx, c, "/v1/evaluations", q.values())
}

// Evaluation reads an evaluation by its whole id. A blocked evaluation has the reason.
func (c *Client) Evaluation(ctx context.Context, id string, q Query) (*wire.Evaluation, Answer, error) {
	return get[*wire.Evaluation](ctx, c, "/v1/evaluation/"+pathElement(id), q.values())
}

func jobPath(id, what string) string { return "/v1/job/" + pathElement(id) + what }
