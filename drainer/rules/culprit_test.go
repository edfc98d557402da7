package rules

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// A group below its budget names the allocation that is not healthy, with its node and its state.
// It named none.
func TestExplain_namesTheSick(t *testing.T) {
	t.Parallel()
	at := fixture.Epoch.Add(time.Minute)
	for name, test := range map[string]struct {
		edit func(*fixture.Cluster, *cluster.Allocation)
		want string
	}{
		"unhealthy": {
			edit: func(_ *fixture.Cluster, a *cluster.Allocation) {
				a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false), Timestamp: at}
			},
			want: "alloc a2 on node-2 is unhealthy since 2030-01-01T00:01:00Z",
		},
		"unhealthy, not dated": {
			edit: func(_ *fixture.Cluster, a *cluster.Allocation) { *a.DeploymentStatus.Healthy = false },
			want: "alloc a2 on node-2 is unhealthy since 2029-12-31T23:00:00Z",
		},
		"never judged": {
			edit: func(_ *fixture.Cluster, a *cluster.Allocation) { a.DeploymentStatus = nil },
			want: "alloc a2 on node-2 is overdue with its health verdict since 2029-12-31T23:01:10Z",
		},
		"judged healthy, and does not run": {
			edit: func(_ *fixture.Cluster, a *cluster.Allocation) {
				a.ClientStatus, a.ModifyTime = cluster.ClientPending, at
			},
			want: "alloc a2 on node-2 is judged healthy but does not run since 2030-01-01T00:01:00Z",
		},
		"on a node that is down": {
			edit: func(w *fixture.Cluster, _ *cluster.Allocation) {
				w.Node("n2").Status, w.Node("n2").StatusChangedAt = cluster.NodeDown, at
			},
			want: "alloc a2 on node-2 cannot report since 2030-01-01T00:01:00Z",
		},
		"on a node that does not exist": {
			edit: func(_ *fixture.Cluster, a *cluster.Allocation) { a.NodeID, a.ModifyTime = "gone", time.Time{} },
			want: "alloc a2 on gone cannot report",
		},
		"two of them, and one is missing": {
			edit: func(w *fixture.Cluster, a *cluster.Allocation) {
				a.DeploymentStatus = nil
				w.Place("a3", w.Jobs[0], "n2").DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false), Timestamp: at}
				w.TaskGroup().Count = 4
			},
			want: "alloc a3 on node-2 is unhealthy since 2030-01-01T00:01:00Z, and 1 more; the group lacks 1 allocation",
		},
		"the one that is sick for longest": {
			edit: func(w *fixture.Cluster, a *cluster.Allocation) {
				a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false), Timestamp: at.Add(time.Second)}
				w.Place("a3", w.Jobs[0], "n2").DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false), Timestamp: at}
				w.TaskGroup().Count = 3
			},
			want: "alloc a3 on node-2 is unhealthy since 2030-01-01T00:01:00Z, and 1 more",
		},
		"a canary is none": {
			edit: func(w *fixture.Cluster, a *cluster.Allocation) { a.DeploymentStatus.Canary = true },
			want: "the group lacks 1 allocation",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(2, 2)
			w.StartDrain("n1", 0)
			test.edit(w, w.Alloc("a2"))
			report, err := Explain(w, TermState{}, "n1", fixture.Epoch.Add(5*time.Minute), Policy{})
			must.NoError(t, err)
			must.Eq(t, ReasonBelowBudget, report.Worst.Reason)
			must.Eq(t, test.want, report.Worst.Cause())
		})
	}
}

// The cause of a reason that waits for an evaluation has the evaluation, its status and what the
// scheduler has written on it.
func TestAllocExplanation_Cause(t *testing.T) {
	t.Parallel()
	eval := func(status cluster.EvalStatus, queued map[string]int) *cluster.Evaluation {
		return &cluster.Evaluation{ID: "e1", Status: status, StatusDescription: cluster.BlockedEvalDescription, Queued: queued}
	}
	for want, r := range map[string]AllocExplanation{
		"": {},
		"evaluation e1 is pending: the scheduler has not processed it":          {Eval: eval(cluster.EvalPending, nil)},
		"evaluation e1 is blocked: created to place remaining allocations":      {Eval: eval(cluster.EvalBlocked, map[string]int{"other": 1})},
		"evaluation e1 is blocked: 2 allocations of the group cannot be placed": {Eval: eval(cluster.EvalBlocked, map[string]int{"g": 2})},
		"evaluation e1 is blocked: 2 allocations of the group cannot be placed: no memory": {
			Eval: &cluster.Evaluation{ID: "e1", Status: cluster.EvalBlocked, StatusDescription: "no memory", Queued: map[string]int{"g": 2}},
		},
		"evaluation e1 is blocked": {Eval: &cluster.Evaluation{ID: "e1", Status: cluster.EvalBlocked}},
	} {
		r.Group = fixture.Group
		must.Eq(t, want, r.Cause())
	}
	must.Eq(t, "is in an unknown state", CulpritStateCount.String())
}
