package cluster_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func TestAllocation_terminal(t *testing.T) {
	t.Parallel()
	for status, terminal := range map[cluster.ClientStatus]bool{
		cluster.ClientPending:  false,
		cluster.ClientRunning:  false,
		cluster.ClientUnknown:  false, // it may still run, and may come back
		cluster.ClientComplete: true,
		cluster.ClientFailed:   true,
		cluster.ClientLost:     true,
	} {
		a := &cluster.Allocation{DesiredStatus: cluster.DesiredRun, ClientStatus: status}
		must.Eq(t, terminal, a.ClientTerminal(), must.Sprint(status))
		must.Eq(t, terminal, a.Terminal(), must.Sprint(status))
		must.False(t, a.ServerTerminal())
	}
	for status, terminal := range map[cluster.DesiredStatus]bool{
		cluster.DesiredRun:   false,
		cluster.DesiredStop:  true,
		cluster.DesiredEvict: true,
	} {
		a := &cluster.Allocation{DesiredStatus: status, ClientStatus: cluster.ClientRunning}
		must.Eq(t, terminal, a.ServerTerminal(), must.Sprint(status))
		must.Eq(t, terminal, a.Terminal(), must.Sprint(status))
		must.Eq(t, terminal, a.Leaving(), must.Sprint(status))
		must.False(t, a.ClientTerminal(), must.Sprint("a stop is no proof that it has stopped"))
	}
}

// A mark belongs to the drain that made it. Another drain, and a cancel of another drain, do not
// change it.
func TestAllocation_MarkedBy(t *testing.T) {
	t.Parallel()
	byDrain := &cluster.Allocation{DesiredTransition: cluster.DesiredTransition{Migrate: true, Drain: "monday"}}
	must.True(t, byDrain.Leaving())
	must.True(t, byDrain.MarkedBy("monday"))
	must.False(t, byDrain.MarkedBy("tuesday"))

	byHand := &cluster.Allocation{DesiredTransition: cluster.DesiredTransition{Migrate: true}}
	must.True(t, byHand.Marked())
	must.False(t, byHand.MarkedBy("monday"))
	must.False(t, byHand.MarkedBy(""), must.Sprint("no drain has no marks"))

	withdrawn := &cluster.Allocation{DesiredTransition: cluster.DesiredTransition{Drain: "monday"}}
	must.False(t, withdrawn.MarkedBy("monday"))
}

func TestAllocation_verdict(t *testing.T) {
	t.Parallel()
	good, bad := true, false
	for _, test := range []struct {
		status       *cluster.DeploymentStatus
		has, healthy bool
	}{
		{nil, false, false},
		{&cluster.DeploymentStatus{}, false, false},
		{&cluster.DeploymentStatus{Healthy: &bad}, true, false},
		{&cluster.DeploymentStatus{Healthy: &good}, true, true},
	} {
		a := &cluster.Allocation{DeploymentStatus: test.status}
		must.Eq(t, test.has, a.HasVerdict())
		must.Eq(t, test.healthy, a.JudgedHealthy())
	}
}

// Equal job ids in two namespaces are two jobs, and two groups.
func TestKeys(t *testing.T) {
	t.Parallel()
	order := []cluster.GroupKey{
		{Job: cluster.JobKey{Namespace: "a", ID: "web"}, Name: "x"},
		{Job: cluster.JobKey{Namespace: "a", ID: "web"}, Name: "y"},
		{Job: cluster.JobKey{Namespace: "a", ID: "www"}, Name: "a"},
		{Job: cluster.JobKey{Namespace: "b", ID: "web"}, Name: "x"},
	}
	for i, a := range order {
		for j, b := range order {
			must.Eq(t, i < j, a.Compare(b) < 0)
			must.Eq(t, i == j, a.Compare(b) == 0)
		}
	}
	must.Eq(t, "a/web.x", order[0].String())

	a := &cluster.Allocation{Namespace: "b", JobID: "web", TaskGroup: "x"}
	must.Eq(t, order[3], a.GroupKey())
	eval := &cluster.Evaluation{Namespace: "b", JobID: "web"}
	must.Eq(t, a.JobKey(), eval.JobKey())
	must.Eq(t, a.JobKey(), (&cluster.Job{Namespace: "b", ID: "web"}).Key())
}

func TestEvaluation_Open(t *testing.T) {
	t.Parallel()
	for status, open := range map[cluster.EvalStatus]bool{
		cluster.EvalPending:   true,
		cluster.EvalBlocked:   true,
		cluster.EvalComplete:  false,
		cluster.EvalFailed:    false,
		cluster.EvalCancelled: false,
	} {
		must.Eq(t, open, (&cluster.Evaluation{Status: status}).Open(), must.Sprint(status))
	}
}

func TestAllocation_Progress(t *testing.T) {
	t.Parallel()
	judged := &cluster.DeploymentStatus{Healthy: new(false)}
	for name, c := range map[string]struct {
		alloc cluster.Allocation
		want  cluster.Progress
	}{
		"judged":                          {cluster.Allocation{DeploymentStatus: judged}, cluster.ProgressStable},
		"judged in another's place":       {cluster.Allocation{DeploymentStatus: judged, PreviousAllocation: "a0"}, cluster.ProgressStable},
		"of a batch job, without health":  {cluster.Allocation{Job: &cluster.Job{Type: cluster.JobBatch}, PreviousAllocation: "a0"}, cluster.ProgressStable},
		"without a verdict":               {cluster.Allocation{}, cluster.ProgressChanging},
		"without one, in another's place": {cluster.Allocation{PreviousAllocation: "a0"}, cluster.ProgressHoldsSlot},
		"marked":                          {cluster.Allocation{DeploymentStatus: judged, DesiredTransition: cluster.DesiredTransition{Migrate: true, Class: cluster.MarkPaced}}, cluster.ProgressChanging},
		"marked free":                     {cluster.Allocation{DeploymentStatus: judged, DesiredTransition: cluster.DesiredTransition{Migrate: true, Class: cluster.MarkFree}}, cluster.ProgressHoldsSlot},
		"stopping":                        {cluster.Allocation{DeploymentStatus: judged, DesiredStatus: cluster.DesiredStop}, cluster.ProgressChanging},
		"a canary that has left": {cluster.Allocation{
			ClientStatus: cluster.ClientComplete, DeploymentStatus: judged, DesiredTransition: cluster.DesiredTransition{Migrate: true, Class: cluster.MarkCanary},
		}, cluster.ProgressHoldsSlot},
	} {
		must.Eq(t, c.want, c.alloc.Progress(), must.Sprint(name))
		must.Eq(t, c.want == cluster.ProgressStable, c.alloc.Stable(), must.Sprint(name))
	}
}
