package timeline_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// history is a replica that passes its entries to observers.
type history struct {
	*clustertest.Replica
	at        time.Duration
	observers []func(at time.Duration, a shims.Applied)
}

func newHistory(t testing.TB) *history {
	h := new(history)
	h.Replica = clustertest.NewReplica(t, shims.FSMConfig{OnApply: func(a shims.Applied) {
		for _, observe := range h.observers {
			observe(h.at, a)
		}
	}})
	h.Now = func() time.Time { return epoch.Add(h.at) }
	return h
}

func (h *history) node(ids ...cluster.NodeID) {
	for _, id := range ids {
		n := clustertest.Node(id)
		n.Resources = cluster.Resources{CPU: 1e6, MemoryMB: 1e6, DiskMB: 1e6}
		h.Must(&shims.NodeRegister{At: h.Now(), Node: n})
	}
}

func (h *history) status(id cluster.NodeID, s cluster.NodeStatus) {
	h.Apply(&shims.NodeUpdateStatus{At: h.Now(), Node: id, Status: s})
}

// job registers a job with one group of its own name.
func (h *history) job(id cluster.JobID, t cluster.JobType, count, maxParallel int) cluster.GroupKey {
	j := clustertest.Job(id, t, count)
	if t == cluster.JobService {
		j.TaskGroups[0].Migrate.MaxParallel = maxParallel
	}
	return clustertest.Group(h.Job(j))
}

// eval makes a pending evaluation of a job, which may not exist.
func (h *history) eval(g cluster.GroupKey) *cluster.Evaluation {
	return h.Eval(&cluster.Job{Namespace: g.Job.Namespace, ID: g.Job.ID, Type: cluster.JobService, Priority: 50})
}

// alloc is a new allocation. previous is the one that it replaces, or empty.
func (h *history) alloc(g cluster.GroupKey, id cluster.AllocID, on cluster.NodeID, index int, previous cluster.AllocID) *cluster.Allocation {
	return &cluster.Allocation{
		ID: id, Namespace: g.Job.Namespace, JobID: g.Job.ID, Job: h.State().Job(g.Job), TaskGroup: g.Name, NodeID: on,
		Name: fmt.Sprintf("%s.%s[%d]", g.Job.ID, g.Name, index), DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending,
		PreviousAllocation: previous, CreateTime: h.Now(),
	}
}

// plan applies a plan for a new evaluation of the group.
func (h *history) plan(g cluster.GroupKey, stops []cluster.AllocID, places ...*cluster.Allocation) {
	e := h.eval(g)
	h.Apply(&shims.EvalUpdate{Evals: []*cluster.Evaluation{e}})
	p := cluster.Plan{At: h.Now(), Eval: e.Copy(), SnapshotIndex: h.Index, Places: places}
	p.Eval.Status = cluster.EvalComplete
	for _, id := range stops {
		p.Stops = append(p.Stops, cluster.PlanStop{Alloc: id, Migrate: true})
	}
	h.Apply(&shims.ApplyPlan{Plan: p})
}

// report applies the clients' reports on allocations.
func (h *history) report(status cluster.ClientStatus, healthy *bool, ids ...cluster.AllocID) {
	var reports []cluster.AllocReport
	for _, id := range ids {
		if a := h.State().Alloc(id); a != nil {
			reports = append(reports, cluster.AllocReport{
				Alloc: id, Node: a.NodeID, ClientStatus: status, Healthy: healthy, HealthyAt: h.Now(), At: h.Now(),
			})
		}
	}
	h.Apply(&shims.AllocClientUpdate{Reports: reports})
}

func (h *history) healthy(ids ...cluster.AllocID) {
	yes := true
	h.report(cluster.ClientRunning, &yes, ids...)
}

func (h *history) gone(ids ...cluster.AllocID) { h.report(cluster.ClientComplete, nil, ids...) }

// place places healthy allocations on nodes: "job/0" and so on.
func (h *history) place(g cluster.GroupKey, nodes ...cluster.NodeID) {
	var places []*cluster.Allocation
	var ids []cluster.AllocID
	for i, on := range nodes {
		ids = append(ids, cluster.AllocID(fmt.Sprintf("%s/%d", g.Name, i)))
		places = append(places, h.alloc(g, ids[i], on, i, ""))
	}
	h.plan(g, nil, places...)
	h.healthy(ids...)
}

// drain starts or updates the drains of nodes; a nil spec cancels.
func (h *history) drain(spec *cluster.DrainSpec, nodes ...cluster.NodeID) {
	for _, id := range nodes {
		h.Apply(h.DrainRequest(id, spec))
	}
}

// mark marks allocations of one group, for the drains of their nodes.
func (h *history) mark(g cluster.GroupKey, class cluster.MarkClass, ids ...cluster.AllocID) {
	m := rules.Marks{At: h.Now(), Evals: []*cluster.Evaluation{h.eval(g)}}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		a := h.State().Alloc(id)
		if n := h.State().Node(a.NodeID); n.Draining() {
			m.Marks = append(m.Marks, clustertest.Mark(n, a, class))
		}
	}
	h.Apply(&shims.AllocUpdateDesiredTransition{Marks: m})
}

// finish ends drains.
func (h *history) finish(nodes ...cluster.NodeID) {
	c := rules.Completions{At: h.Now()}
	for _, id := range nodes {
		if n := h.State().Node(id); n.Draining() {
			c.Completions = append(c.Completions, rules.Completion{Node: id, Drain: n.Drain.ID, Revision: n.Drain.Revision})
		}
	}
	h.Apply(&shims.NodesDrainComplete{Completions: c})
}

// story is a run with everything that a picture shows: a drain that reaches its deadline, one
// that is cancelled, a lost leader, faults, and a violation.
func story(t testing.TB, o timeline.Options, observers ...func(time.Duration, shims.Applied)) *timeline.Recorder {
	h, r := newHistory(t), timeline.New(o)
	h.observers = append(observers, r.Applied)
	r.Leader(0, 0)
	h.node("n1", "n2", "n3", "n4")
	web, scan := h.job("web", cluster.JobService, 4, 1), h.job("scan", cluster.JobBatch, 1, 0)
	h.place(web, "n1", "n1", "n2", "n4")
	h.place(scan, "n1")

	h.at = 10 * time.Second
	h.drain(&cluster.DrainSpec{Deadline: 20 * time.Minute}, "n1")
	h.at += 50 * time.Millisecond
	h.mark(web, cluster.MarkPaced, "web/0")
	h.at = 12 * time.Second
	h.plan(web, []cluster.AllocID{"web/0"}, h.alloc(web, "web/0b", "n3", 0, "web/0"))
	h.at = 20 * time.Second
	h.gone("web/0")
	h.at = 35 * time.Second
	h.healthy("web/0b")
	h.mark(web, cluster.MarkPaced, "web/1")
	r.Fault(h.at, h.at, "leader/lose-mid-batch", "")
	h.at = 40 * time.Second
	r.Leader(h.at, 1)
	r.Fault(h.at, h.at+30*time.Second, "node/disconnect", "n4")
	h.status("n4", cluster.NodeDisconnected)
	r.Violation(h.at, timeline.Violation{Guarantee: "G1", Text: "paced mark on web/1 left 2 of 4 healthy, limit 3", Group: web})
	h.at = 45 * time.Second
	h.drain(&cluster.DrainSpec{}, "n2")
	h.plan(web, []cluster.AllocID{"web/1"}, h.alloc(web, "web/1b", "n3", 1, "web/1"))
	h.at = 55 * time.Second
	h.gone("web/1")
	h.at = 70 * time.Second
	h.status("n4", cluster.NodeReady)
	h.healthy("web/1b")
	h.drain(nil, "n2")
	h.at = 20*time.Minute + 10*time.Second
	h.mark(scan, cluster.MarkDeadline, "scan/0")
	h.plan(scan, []cluster.AllocID{"scan/0"})
	h.at += 3 * time.Second
	h.gone("scan/0")
	h.finish("n1")
	h.at = 25 * time.Minute
	r.End(h.at)
	return r
}
