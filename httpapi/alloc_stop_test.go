package httpapi_test

import (
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// The compatible client stops an allocation, and follows the evaluation that replaces it.
func TestStopAlloc(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	job := w.job("web", cluster.JobService, 1)
	w.place(1, job, nodeID(1))
	client := w.client()
	stopped := result.Of(client.Allocations().Stop(&api.Allocation{ID: string(allocID(1))}, nil)).OK(t)
	must.NotEqOp(t, "", stopped.EvalID)
	must.EqOp(t, w.State().Index(), stopped.LastIndex)
	must.True(t, w.State().Alloc(allocID(1)).Marked())
	must.EqOp(t, cluster.TriggerAllocStop, w.State().Eval(cluster.EvalID(stopped.EvalID)).TriggeredBy)
}
