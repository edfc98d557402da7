package httpapi_test

import (
	"fmt"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// noon is the time of a fixture whose clock is stopped.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)

// atNoon stops the fixture's clock.
func (w *fixture) atNoon() *fixture {
	w.Now = func() time.Time { return noon }
	return w
}

// uuid is the id of the n-th thing of a kind, a hexadecimal digit.
func uuid(kind byte, n int) string { return fmt.Sprintf("%c%07x-aaaa-bbbb-cccc-000000000000", kind, n) }

func nodeID(n int) cluster.NodeID   { return cluster.NodeID(uuid('a', n)) }
func allocID(n int) cluster.AllocID { return cluster.AllocID(uuid('b', n)) }

func secretOf(id cluster.NodeID) string { return "secret-" + string(id) }

// nodes registers the first n nodes, ready.
func (w *fixture) nodes(n int) *fixture {
	w.Helper()
	for i := 1; i <= n; i++ {
		w.must(&shims.NodeRegister{At: w.Now(), Node: &cluster.Node{
			ID: nodeID(i), SecretID: secretOf(nodeID(i)), Name: fmt.Sprintf("n%d", i), Datacenter: "dc1", Status: cluster.NodeReady,
			HTTPAddr:   fmt.Sprintf("10.0.0.%d:4646", i),
			Attributes: map[string]string{"os.name": "debian", "nomad.version": "2.0.6"},
			Resources:  cluster.Resources{CPU: 4000, MemoryMB: 4000, DiskMB: 10_000},
		}})
	}
	return w
}

// job registers a job with one group of the same name.
func (w *fixture) job(id string, t cluster.JobType, count int) *cluster.Job {
	w.Helper()
	j := clustertest.Job(cluster.JobID(id), t, count)
	j.Datacenters = []string{"dc1"}
	j.TaskGroups[0].Tasks[0].Name, j.TaskGroups[0].Tasks[0].KillTimeout = "main", 20*time.Second
	return w.Job(j)
}

func (w *fixture) eval(j *cluster.Job, trigger cluster.EvalTrigger, node cluster.NodeID) *cluster.Evaluation {
	e := clustertest.Eval(j, w.evalID(), w.Now())
	e.TriggeredBy, e.NodeID = trigger, node
	return e
}

func (w *fixture) evalID() cluster.EvalID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.evals++
	return cluster.EvalID(fmt.Sprintf("e%07d-0000-0000-0000-000000000000", w.evals))
}

// place places the n-th allocation on a node, running and healthy.
func (w *fixture) place(n int, j *cluster.Job, on cluster.NodeID) {
	w.Helper()
	eval := clustertest.Eval(j, cluster.EvalID(uuid('c', n)), w.Now())
	eval.TriggeredBy = cluster.TriggerJobRegister
	w.must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{eval.Copy()}})
	eval.Status = cluster.EvalComplete
	a := clustertest.Alloc(j, allocID(n), on, w.Now())
	a.EvalID, a.Name, a.NodeName = eval.ID, fmt.Sprintf("%s.%s[%d]", j.ID, a.TaskGroup, n), w.State().Node(on).Name
	applied := w.Must(&shims.ApplyPlan{Plan: cluster.Plan{
		At: w.Now(), Eval: eval, SnapshotIndex: w.Index, Places: []*cluster.Allocation{a},
	}}).(shims.PlanApplied)
	must.SliceEmpty(w, applied.Refused)
	must.SliceEmpty(w, applied.Dropped)
	w.report(n, cluster.ClientRunning)
}

// report applies the report of the n-th allocation's client.
func (w *fixture) report(n int, s cluster.ClientStatus) uint64 {
	w.Helper()
	w.Report(s, allocID(n))
	return w.Index
}

func (w *fixture) drain(id cluster.NodeID, spec cluster.DrainSpec) uint64 {
	w.Helper()
	w.Drain(id, &spec)
	return w.Index
}

// mark marks the n-th allocation for the drain of its node.
func (w *fixture) mark(n int, class cluster.MarkClass) uint64 {
	w.Helper()
	a := w.State().Alloc(allocID(n))
	return w.must(&shims.AllocUpdateDesiredTransition{Marks: rules.Marks{
		At: w.Now(), Marks: []rules.Mark{clustertest.Mark(w.State().Node(a.NodeID), a, class)},
		Evals: []*cluster.Evaluation{w.eval(a.Job, cluster.TriggerNodeDrain, "")},
	}})
}

func (w *fixture) end(id cluster.NodeID) uint64 {
	w.Helper()
	must.SliceLen(w, 1, w.Complete(id).Ended)
	return w.Index
}

// restore replaces the state by a snapshot of itself.
func (w *fixture) restore() { w.Restore(w.State()) }

// stop applies a plan that stops the n-th allocation, which is marked.
func (w *fixture) stop(n int) {
	w.Helper()
	a := w.State().Alloc(allocID(n))
	must.SliceEmpty(w, w.Plan(a.Job, []cluster.AllocID{a.ID}).Refused)
}
