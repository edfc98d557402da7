package httpapi_test

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// noon is when everything happens in a town whose clock stands.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)

// standing stops the town's clock.
func (w *town) standing() *town {
	w.now = func() time.Time { return noon }
	return w
}

// uuid is the id of the n-th thing of a kind, a hexadecimal digit.
func uuid(kind byte, n int) string { return fmt.Sprintf("%c%07x-aaaa-bbbb-cccc-000000000000", kind, n) }

func nodeID(n int) cluster.NodeID   { return cluster.NodeID(uuid('a', n)) }
func allocID(n int) cluster.AllocID { return cluster.AllocID(uuid('b', n)) }

// secretOf is a node's secret.
func secretOf(id cluster.NodeID) string { return "secret-" + string(id) }

// nodes registers the first n nodes, ready.
func (w *town) nodes(n int) *town {
	w.t.Helper()
	for i := 1; i <= n; i++ {
		w.must(&shims.NodeRegister{At: w.time(), Node: &cluster.Node{
			ID: nodeID(i), SecretID: secretOf(nodeID(i)), Name: fmt.Sprintf("n%d", i), Datacenter: "dc1", Status: cluster.NodeReady,
			HTTPAddr:   fmt.Sprintf("10.0.0.%d:4646", i),
			Attributes: map[string]string{"os.name": "debian", "nomad.version": "2.0.6"},
			Resources:  cluster.Resources{CPU: 4000, MemoryMB: 4000, DiskMB: 10_000},
		}})
	}
	return w
}

// job registers a job with one group of the same name.
func (w *town) job(id string, t cluster.JobType, count int) *cluster.Job {
	w.t.Helper()
	j := &cluster.Job{
		ID: cluster.JobID(id), Type: t, Datacenters: []string{"dc1"},
		TaskGroups: []*cluster.TaskGroup{{Name: id, Count: count, Tasks: []*cluster.Task{{
			Name: "main", Resources: cluster.Resources{CPU: 100, MemoryMB: 64}, KillTimeout: 20 * time.Second,
		}}}},
	}
	j.Canonicalize()
	w.must(&shims.JobRegister{Job: j})
	return w.snap().Job(j.Key())
}

// place puts the n-th allocation on a node, running and healthy.
func (w *town) place(n int, j *cluster.Job, on cluster.NodeID) {
	w.t.Helper()
	id, group := allocID(n), j.TaskGroups[0]
	eval := cluster.Evaluation{
		ID: cluster.EvalID(uuid('c', n)), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority,
		TriggeredBy: cluster.TriggerJobRegister, Status: cluster.EvalPending, CreateTime: w.time(), ModifyTime: w.time(),
	}
	w.must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{eval.Copy()}})
	eval.Status = cluster.EvalComplete
	response, _, err := w.write(&shims.ApplyPlan{Plan: cluster.Plan{
		At: w.time(), Eval: &eval, SnapshotIndex: w.snap().Index(),
		Places: []*cluster.Allocation{{
			ID: id, Namespace: j.Namespace, EvalID: cluster.EvalID(uuid('c', n)), Name: fmt.Sprintf("%s.%s[%d]", j.ID, group.Name, n),
			NodeID: on, NodeName: w.snap().Node(on).Name, JobID: j.ID, Job: j, TaskGroup: group.Name, Resources: group.Resources(),
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, CreateTime: w.time(), ModifyTime: w.time(),
		}},
	}})
	must.NoError(w.t, err)
	applied := response.(shims.PlanApplied)
	must.SliceEmpty(w.t, applied.Refused)
	must.SliceEmpty(w.t, applied.Dropped)
	w.report(n, cluster.ClientRunning)
}

// report has the client of the n-th allocation say its status; running is healthy.
func (w *town) report(n int, s cluster.ClientStatus) uint64 {
	w.t.Helper()
	a := w.snap().Alloc(allocID(n))
	r := cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: s, At: w.time()}
	if s == cluster.ClientRunning {
		r.Healthy, r.HealthyAt = new(true), w.time()
	}
	return w.must(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{r}})
}

// drain starts the drain of a node.
func (w *town) drain(id cluster.NodeID, spec cluster.DrainSpec) uint64 {
	w.t.Helper()
	done, err := w.UpdateDrain(w.t.Context(), httpapi.DrainRequest{Node: id, Spec: &spec})
	must.NoError(w.t, err)
	return done.Index
}

// mark has the drain of the n-th allocation's node ask it to leave.
func (w *town) mark(n int, class cluster.MarkClass) uint64 {
	w.t.Helper()
	s := w.snap()
	a := s.Alloc(allocID(n))
	d := s.Node(a.NodeID).Drain
	return w.must(&shims.AllocUpdateDesiredTransition{Marks: rules.Marks{
		At:    w.time(),
		Marks: []rules.Mark{{Alloc: a.ID, Group: a.GroupKey(), Node: a.NodeID, Drain: d.ID, Revision: d.Revision, Class: class}},
		Evals: []*cluster.Evaluation{w.eval(a.Job, cluster.TriggerNodeDrain, "")},
	}})
}

// end ends the drain of a node that has nothing left to wait for.
func (w *town) end(id cluster.NodeID) uint64 {
	w.t.Helper()
	d := w.snap().Node(id).Drain
	index := w.must(&shims.NodesDrainComplete{Completions: rules.Completions{
		At: w.time(), Completions: []rules.Completion{{Node: id, Drain: d.ID, Revision: d.Revision}},
	}})
	must.False(w.t, w.snap().Node(id).Draining())
	return index
}

// slicesOf collects rows.
func slicesOf[Row any](rows iter.Seq[Row]) []Row { return slices.Collect(rows) }

// restore puts a snapshot of the state in its own place.
func (w *town) restore() {
	w.t.Helper()
	var b bytes.Buffer
	must.NoError(w.t, w.snap().Persist(&b))
	must.NoError(w.t, w.fsm.Restore(io.NopCloser(&b)))
}

// stop has the servers stop the n-th allocation, which is marked.
func (w *town) stop(n int) {
	w.t.Helper()
	a := w.snap().Alloc(allocID(n))
	eval := w.eval(a.Job, cluster.TriggerNodeDrain, "")
	w.must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{eval.Copy()}})
	eval.Status = cluster.EvalComplete
	w.must(&shims.ApplyPlan{Plan: cluster.Plan{
		At: w.time(), Eval: eval, SnapshotIndex: w.snap().Index(), Stops: []cluster.PlanStop{{Alloc: a.ID, Description: cluster.DescMigrating, Migrate: true}},
	}})
	must.True(w.t, w.snap().Alloc(a.ID).ServerTerminal())
}
