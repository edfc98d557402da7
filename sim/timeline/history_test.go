package timeline_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// history is a log being applied to a state machine, and shown to who wants to see.
type history struct {
	testing.TB
	fsm   *shims.FSM
	index uint64
	ids   int
	at    time.Duration
	seen  []func(at time.Duration, a shims.Applied)
}

func newHistory(t testing.TB) *history {
	h := &history{TB: t}
	h.fsm = shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) {
		for _, see := range h.seen {
			see(h.at, a)
		}
	}})
	return h
}

func (h *history) state() *statestore.Snapshot { return h.fsm.Store().Snapshot() }

func (h *history) now() time.Time { return epoch.Add(h.at) }

// apply applies a message, refused or not.
func (h *history) apply(m shims.Message) shims.Response {
	h.Helper()
	data, err := shims.Encode(m)
	must.NoError(h, err)
	h.index++
	response, err := h.fsm.ApplyEntry(h.index, data)
	must.NoError(h, err)
	return response
}

// do applies a message that is not refused.
func (h *history) do(m shims.Message) shims.Response {
	h.Helper()
	response := h.apply(m)
	if refused, is := response.(shims.Refused); is {
		must.NoError(h, refused.Err)
	}
	return response
}

func (h *history) node(ids ...cluster.NodeID) {
	for _, id := range ids {
		n := &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 1e6, MemoryMB: 1e6, DiskMB: 1e6}}
		n.Canonicalize()
		h.do(&shims.NodeRegister{At: h.now(), Node: n})
	}
}

func (h *history) status(id cluster.NodeID, s cluster.NodeStatus) {
	h.apply(&shims.NodeUpdateStatus{At: h.now(), Node: id, Status: s})
}

// job registers a job with one group of its own name, or of one like it if no job may
// have that name: nodes may have it still.
func (h *history) job(id cluster.JobID, t cluster.JobType, count, maxParallel int) cluster.GroupKey {
	if err := cluster.CheckID(id); err != nil {
		id = cluster.JobID(fmt.Sprintf("%.40x", string(id)))
	}
	g := &cluster.TaskGroup{Name: string(id), Count: count, Tasks: []*cluster.Task{{Name: "t"}}}
	j := &cluster.Job{ID: id, Type: t, TaskGroups: []*cluster.TaskGroup{g}}
	if t == cluster.JobService {
		g.Migrate = cluster.DefaultMigrateStrategy()
		g.Migrate.MaxParallel = maxParallel
	}
	j.Canonicalize()
	h.do(&shims.JobRegister{Job: j})
	return cluster.GroupKey{Job: j.Key(), Name: g.Name}
}

// eval makes a pending evaluation of a job.
func (h *history) eval(g cluster.GroupKey) *cluster.Evaluation {
	h.ids++
	return &cluster.Evaluation{
		ID: cluster.EvalID(fmt.Sprintf("e%d", h.ids)), Namespace: g.Job.Namespace, JobID: g.Job.ID,
		Type: cluster.JobService, Priority: 50, Status: cluster.EvalPending,
	}
}

// alloc is an allocation to be placed, in the place of another or of none.
func (h *history) alloc(g cluster.GroupKey, id cluster.AllocID, on cluster.NodeID, index int, previous cluster.AllocID) *cluster.Allocation {
	return &cluster.Allocation{
		ID: id, Namespace: g.Job.Namespace, JobID: g.Job.ID, Job: h.state().Job(g.Job), TaskGroup: g.Name, NodeID: on,
		Name: fmt.Sprintf("%s.%s[%d]", g.Job.ID, g.Name, index), DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending,
		PreviousAllocation: previous, CreateTime: h.now(),
	}
}

// plan answers an evaluation of the group, made for it.
func (h *history) plan(g cluster.GroupKey, stops []cluster.AllocID, places ...*cluster.Allocation) {
	e := h.eval(g)
	h.apply(&shims.EvalUpdate{Evals: []*cluster.Evaluation{e}})
	p := cluster.Plan{At: h.now(), Eval: e.Copy(), SnapshotIndex: h.index, Places: places}
	p.Eval.Status = cluster.EvalComplete
	for _, id := range stops {
		p.Stops = append(p.Stops, cluster.PlanStop{Alloc: id, Migrate: true})
	}
	h.apply(&shims.ApplyPlan{Plan: p})
}

// report has the allocations' clients say how they are.
func (h *history) report(status cluster.ClientStatus, healthy *bool, ids ...cluster.AllocID) {
	var reports []cluster.AllocReport
	for _, id := range ids {
		if a := h.state().Alloc(id); a != nil {
			reports = append(reports, cluster.AllocReport{
				Alloc: id, Node: a.NodeID, ClientStatus: status, Healthy: healthy, HealthyAt: h.now(), At: h.now(),
			})
		}
	}
	h.apply(&shims.AllocClientUpdate{Reports: reports})
}

func (h *history) healthy(ids ...cluster.AllocID) {
	yes := true
	h.report(cluster.ClientRunning, &yes, ids...)
}

func (h *history) gone(ids ...cluster.AllocID) { h.report(cluster.ClientComplete, nil, ids...) }

// place has healthy allocations on nodes, "job/0" and so on.
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

// drain has nodes drain; a nil spec cancels.
func (h *history) drain(spec *cluster.DrainSpec, nodes ...cluster.NodeID) {
	for _, id := range nodes {
		h.ids++
		h.apply(&shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{
			Node: id, Drain: cluster.DrainID(fmt.Sprintf("d%d", h.ids)), Spec: spec, At: h.now(),
		}})
	}
}

// mark has the drains of their nodes mark allocations of one group.
func (h *history) mark(g cluster.GroupKey, class cluster.MarkClass, ids ...cluster.AllocID) {
	m := rules.Marks{At: h.now(), Evals: []*cluster.Evaluation{h.eval(g)}}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		a := h.state().Alloc(id)
		if n := h.state().Node(a.NodeID); n.Draining() {
			m.Marks = append(m.Marks, rules.Mark{
				Alloc: id, Node: n.ID, Group: g, Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: class,
			})
		}
	}
	h.apply(&shims.AllocUpdateDesiredTransition{Marks: m})
}

// finish has the drainer end drains.
func (h *history) finish(nodes ...cluster.NodeID) {
	c := rules.Completions{At: h.now()}
	for _, id := range nodes {
		if n := h.state().Node(id); n.Draining() {
			c.Completions = append(c.Completions, rules.Completion{Node: id, Drain: n.Drain.ID, Revision: n.Drain.Revision})
		}
	}
	h.apply(&shims.NodesDrainComplete{Completions: c})
}

// story is a run in which something of everything happens: two drains, of which one
// meets its deadline and one is cancelled, a leader lost in between, faults, and a
// guarantee that is broken.
func story(t testing.TB, o timeline.Options, watch ...func(time.Duration, shims.Applied)) *timeline.Recorder {
	h, r := newHistory(t), timeline.New(o)
	h.seen = append(watch, r.Applied)
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
	r.NoLeader(h.at)
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
