package invariant_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// stage is a history made by hand before a judge: honest entries go through a real
// state machine, others are written past it.
type stage struct {
	t     testing.TB
	fsm   *shims.FSM
	j     *invariant.Judge
	now   time.Time
	index uint64
	evals int
	// last is the last entry.
	last shims.Applied
}

func newStage(t testing.TB, o invariant.Options) *stage {
	if o.Every == 0 {
		o.Every = 1
	}
	s := &stage{t: t, j: invariant.New(o), now: epoch}
	s.fsm = shims.NewFSM(shims.FSMConfig{OnApply: s.tell})
	return s
}

// web is a stage with three nodes, a job of that count and limit, and allocations
// a1, a2, a3 of it, one on each node.
func web(t testing.TB, o invariant.Options, count, maxParallel int) *stage {
	s := newStage(t, o)
	for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
		s.node(id)
	}
	s.job(service("web", count, maxParallel))
	for i, id := range []cluster.AllocID{"a1", "a2", "a3"} {
		s.place(id, "web", cluster.NodeID(fmt.Sprintf("n%d", i+1)))
	}
	s.run("a1", "a2", "a3")
	return s
}

func (s *stage) tell(a shims.Applied) {
	s.last = a
	s.j.Applied(s.now, a)
}

func (s *stage) state() *statestore.Snapshot { return s.fsm.Store().Snapshot() }

// apply applies a message as the state machine does.
func (s *stage) apply(m shims.Message) shims.Response {
	s.t.Helper()
	data, err := shims.Encode(m)
	must.NoError(s.t, err)
	s.index++
	response, err := s.fsm.ApplyEntry(s.index, data)
	must.NoError(s.t, err)
	return response
}

// lie shows the judge an entry that has written something else.
func (s *stage) lie(m shims.Message, r shims.Response, write func(*statestore.Txn)) {
	s.t.Helper()
	s.index++
	store := s.fsm.Store()
	a := shims.Applied{Index: s.index, Type: m.Type(), Message: m, Response: r, Before: store.Snapshot()}
	txn := store.Begin(s.index)
	write(txn)
	txn.Commit()
	a.After = store.Snapshot()
	s.tell(a)
}

// wait lets time pass.
func (s *stage) wait(d time.Duration) { s.now = s.now.Add(d) }

func (s *stage) node(id cluster.NodeID) {
	n := &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 1000, MemoryMB: 1000, DiskMB: 1000}}
	n.Canonicalize()
	s.apply(&shims.NodeRegister{At: s.now, Node: n})
}

func (s *stage) status(id cluster.NodeID, status cluster.NodeStatus) {
	s.apply(&shims.NodeUpdateStatus{At: s.now, Node: id, Status: status})
}

func newJob(kind cluster.JobType, id cluster.JobID, count int) *cluster.Job {
	j := &cluster.Job{ID: id, Type: kind, TaskGroups: []*cluster.TaskGroup{{
		Name: string(id), Count: count, Tasks: []*cluster.Task{{Name: "t", KillTimeout: 5 * time.Second}},
	}}}
	j.Canonicalize()
	return j
}

func service(id cluster.JobID, count, maxParallel int) *cluster.Job {
	j := newJob(cluster.JobService, id, count)
	j.TaskGroups[0].Migrate.MaxParallel = maxParallel
	return j
}

// plugin makes the job a storage plugin.
func plugin(j *cluster.Job) *cluster.Job {
	j.TaskGroups[0].Tasks[0].StoragePlugin = true
	return j
}

func (s *stage) job(j *cluster.Job) { s.apply(&shims.JobRegister{Job: j}) }

func jobKey(id cluster.JobID) cluster.JobKey { return cluster.JobKey{Namespace: "default", ID: id} }

func groupKey(id cluster.JobID) cluster.GroupKey {
	return cluster.GroupKey{Job: jobKey(id), Name: string(id)}
}

// eval is an evaluation that waits for the scheduler.
func (s *stage) eval(id cluster.JobID) *cluster.Evaluation {
	s.evals++
	return &cluster.Evaluation{
		ID: cluster.EvalID(fmt.Sprintf("e%03d", s.evals)), Namespace: "default", JobID: id,
		Type: cluster.JobService, Priority: 50, TriggeredBy: cluster.TriggerNodeDrain, Status: cluster.EvalPending, CreateTime: s.now, ModifyTime: s.now,
	}
}

// answered has no evaluation of the job open any more.
func (s *stage) answered(id cluster.JobID) {
	var evals []*cluster.Evaluation
	for e := range s.state().OpenEvals(jobKey(id)) {
		e = e.Copy()
		e.Status = cluster.EvalComplete
		evals = append(evals, e)
	}
	s.apply(&shims.EvalUpdate{Evals: evals})
}

// blocked has the evaluations of the job wait for capacity.
func (s *stage) blocked(id cluster.JobID) {
	s.answered(id)
	e := s.eval(id)
	e.Status = cluster.EvalBlocked
	s.apply(&shims.EvalUpdate{Evals: []*cluster.Evaluation{e}})
}

// place places an allocation, past the scheduler's own judgement.
func (s *stage) place(id cluster.AllocID, of cluster.JobID, on cluster.NodeID, change ...func(*cluster.Allocation)) {
	a := &cluster.Allocation{
		ID: id, Name: fmt.Sprintf("%s.%s[%s]", of, of, id), Namespace: "default", JobID: of, Job: s.state().Job(jobKey(of)),
		TaskGroup: string(of), NodeID: on, DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, CreateTime: s.now,
	}
	for _, c := range change {
		c(a)
	}
	e := s.eval(of)
	e.Status = cluster.EvalComplete
	m := &shims.ApplyPlan{Plan: cluster.Plan{At: s.now, Eval: e, Places: []*cluster.Allocation{a}}}
	s.lie(m, shims.PlanApplied{Accepted: &m.Plan}, func(txn *statestore.Txn) {
		dropped, err := txn.ApplyPlan(&m.Plan)
		must.NoError(s.t, err)
		must.SliceEmpty(s.t, dropped)
	})
}

func canary(a *cluster.Allocation) { a.DeploymentStatus = &cluster.DeploymentStatus{Canary: true} }

func replacing(id cluster.AllocID) func(*cluster.Allocation) {
	return func(a *cluster.Allocation) { a.PreviousAllocation = id }
}

// stop has a plan stop an allocation.
func (s *stage) stop(id cluster.AllocID, migrate bool) {
	e := s.eval(s.state().Alloc(id).JobID)
	e.Status = cluster.EvalComplete
	m := &shims.ApplyPlan{Plan: cluster.Plan{At: s.now, Eval: e, Stops: []cluster.PlanStop{{Alloc: id, Migrate: migrate}}}}
	s.lie(m, shims.PlanApplied{Accepted: &m.Plan}, func(txn *statestore.Txn) {
		_, err := txn.ApplyPlan(&m.Plan)
		must.NoError(s.t, err)
	})
}

// report has clients report.
func (s *stage) report(status cluster.ClientStatus, healthy *bool, ids ...cluster.AllocID) {
	m := &shims.AllocClientUpdate{}
	for _, id := range ids {
		m.Reports = append(m.Reports, cluster.AllocReport{
			Alloc: id, Node: s.state().Alloc(id).NodeID, ClientStatus: status, Healthy: healthy, HealthyAt: s.now, At: s.now,
		})
	}
	s.apply(m)
}

// run has allocations run well, sick have them run badly.
func (s *stage) run(ids ...cluster.AllocID)    { s.report(cluster.ClientRunning, pointer(true), ids...) }
func (s *stage) sick(ids ...cluster.AllocID)   { s.report(cluster.ClientRunning, pointer(false), ids...) }
func (s *stage) ended(ids ...cluster.AllocID)  { s.report(cluster.ClientComplete, nil, ids...) }
func (s *stage) failed(ids ...cluster.AllocID) { s.report(cluster.ClientFailed, nil, ids...) }

func pointer[T any](v T) *T { return &v }

// request is a request about the drain of a node; its id is the node's with a d
// before it.
func (s *stage) request(id cluster.NodeID, spec *cluster.DrainSpec) *shims.NodeUpdateDrain {
	return &shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{Node: id, Spec: spec, Drain: drainOf(id), At: s.now}}
}

func drainOf(id cluster.NodeID) cluster.DrainID { return cluster.DrainID("d" + id) }

func (s *stage) drain(id cluster.NodeID, deadline time.Duration) {
	s.apply(s.request(id, &cluster.DrainSpec{Deadline: deadline}))
}

func (s *stage) cancel(id cluster.NodeID) { s.apply(s.request(id, nil)) }

// marks is an entry that marks allocations under a class, planned now, with the
// evaluations of their jobs.
func (s *stage) marks(c cluster.MarkClass, ids ...cluster.AllocID) *shims.AllocUpdateDesiredTransition {
	m := &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: s.now}}
	seen := map[cluster.JobID]bool{}
	for _, id := range ids {
		a := s.state().Alloc(id)
		mark := rules.Mark{Alloc: id, Group: a.GroupKey(), Node: a.NodeID, Class: c}
		if n := s.state().Node(a.NodeID); n != nil && n.Drain != nil {
			mark.Drain, mark.Revision = n.Drain.ID, n.Drain.Revision
		}
		m.Marks.Marks = append(m.Marks.Marks, mark)
		if !seen[a.JobID] {
			seen[a.JobID] = true
			m.Evals = append(m.Evals, s.eval(a.JobID))
		}
	}
	return m
}

func (s *stage) mark(c cluster.MarkClass, ids ...cluster.AllocID) { s.apply(s.marks(c, ids...)) }

// believe applies an entry of marks and judges nothing of it.
func (s *stage) believe(m *shims.AllocUpdateDesiredTransition) {
	s.lie(m, shims.MarksApplied{Accepted: m.Marks.Marks}, func(txn *statestore.Txn) {
		must.NoError(s.t, txn.ApplyMarks(m.At, m.Marks.Marks, m.Evals))
	})
}

// markAnyway marks although nobody should.
func (s *stage) markAnyway(c cluster.MarkClass, ids ...cluster.AllocID) {
	s.believe(s.marks(c, ids...))
}

// refuse refuses all of an entry of marks.
func (s *stage) refuse(m *shims.AllocUpdateDesiredTransition) {
	r := shims.MarksApplied{}
	for _, mark := range m.Marks.Marks {
		r.Refused = append(r.Refused, rules.Refusal{Alloc: mark.Alloc, Node: mark.Node, Why: "no"})
	}
	s.lie(m, r, func(*statestore.Txn) {})
}

// ends is an entry that ends the drains of nodes, planned now.
func (s *stage) ends(ids ...cluster.NodeID) *shims.NodesDrainComplete {
	m := &shims.NodesDrainComplete{Completions: rules.Completions{At: s.now}}
	for _, id := range ids {
		d := s.state().Node(id).Drain
		m.Completions.Completions = append(m.Completions.Completions, rules.Completion{Node: id, Drain: d.ID, Revision: d.Revision})
	}
	return m
}

func (s *stage) end(ids ...cluster.NodeID) { s.apply(s.ends(ids...)) }

// endAnyway ends a drain although nobody should, so.
func (s *stage) endAnyway(id cluster.NodeID, o cluster.Outcome, left int) {
	m := s.ends(id)
	endings := []rules.Ending{{Completion: m.Completions.Completions[0], Outcome: o, StillStopping: left}}
	s.lie(m, shims.CompletionsApplied{Ended: endings}, func(txn *statestore.Txn) { txn.CompleteDrains(m.At, endings) })
}

// forge shows the judge an entry that has written something else and changed rows
// past every rule of the store: in a copy of the state, which the state machine then
// goes on with.
func (s *stage) forge(m shims.Message, r shims.Response, write func(*statestore.Txn), edit func(*statestore.Snapshot)) {
	s.t.Helper()
	s.index++
	a := shims.Applied{Index: s.index, Type: m.Type(), Message: m, Response: r, Before: s.state()}
	copied, err := statestore.Restore(s.persist(a.Before))
	must.NoError(s.t, err)
	txn := copied.Begin(s.index)
	write(txn)
	txn.Commit()
	edit(copied.Snapshot())
	must.NoError(s.t, s.fsm.Restore(io.NopCloser(s.persist(copied.Snapshot()))))
	a.After = s.state()
	s.tell(a)
}

func (s *stage) persist(state *statestore.Snapshot) *bytes.Buffer {
	var b bytes.Buffer
	must.NoError(s.t, state.Persist(&b))
	return &b
}

// nothing writes nothing.
func nothing(*statestore.Txn) {}

// evalsOf writes the evaluations of an entry.
func (s *stage) evalsOf(m *shims.AllocUpdateDesiredTransition) func(*statestore.Txn) {
	return func(txn *statestore.Txn) { must.NoError(s.t, txn.UpsertEvals(m.Evals)) }
}

// markRows writes the marks of an entry into the rows, and counts them.
func (s *stage) markRows(m *shims.AllocUpdateDesiredTransition) func(*statestore.Snapshot) {
	return func(state *statestore.Snapshot) {
		for _, mark := range m.Marks.Marks {
			state.Alloc(mark.Alloc).DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: mark.Drain, Class: mark.Class, MarkedAt: m.At}
			if n := state.Node(mark.Node); n.Drain != nil {
				n.Drain.Marked[mark.Class]++
			}
		}
	}
}

// endings is what ends one drain.
func endings(id cluster.NodeID, d cluster.DrainID, o cluster.Outcome) []rules.Ending {
	return []rules.Ending{{Completion: rules.Completion{Node: id, Drain: d}, Outcome: o}}
}
