package invariant_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// history is an FSM and a judge of its entries. Tests write wrong entries past the FSM.
type history struct {
	t     testing.TB
	fsm   *shims.FSM
	j     *invariant.Judge
	now   time.Time
	index uint64
	evals int
	// last is the last entry.
	last shims.Applied
}

func (s *history) observe(a shims.Applied) {
	s.last = a
	s.j.Applied(s.now, a)
}

func (s *history) state() *statestore.Snapshot { return s.fsm.Store().Snapshot() }

// apply lets the FSM apply a message.
func (s *history) apply(m shims.Message) shims.Response {
	s.t.Helper()
	data, err := shims.Encode(m)
	must.NoError(s.t, err)
	s.index++
	response, err := s.fsm.ApplyEntry(s.index, data)
	must.NoError(s.t, err)
	return response
}

// fake shows the judge an entry with this response and these writes.
func (s *history) fake(m shims.Message, r shims.Response, write func(*statestore.Txn)) {
	s.t.Helper()
	s.index++
	store := s.fsm.Store()
	a := shims.Applied{Index: s.index, Type: m.Type(), Message: m, Response: r, Before: store.Snapshot()}
	txn := store.Begin(s.index)
	write(txn)
	txn.Commit()
	a.After = store.Snapshot()
	s.observe(a)
}

// wait advances the time.
func (s *history) wait(d time.Duration) { s.now = s.now.Add(d) }

func (s *history) node(id cluster.NodeID) {
	n := &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 1000, MemoryMB: 1000, DiskMB: 1000}}
	n.Canonicalize()
	s.apply(&shims.NodeRegister{At: s.now, Node: n})
}

// limits registers a node with the storage plugin disks and two limits: allowance for the volumes
// of a stopped allocation, and hold for a storage plugin that waits for volumes.
func (s *history) limits(id cluster.NodeID, allowance, hold time.Duration) {
	n := s.state().Node(id).Copy()
	n.VolumeAllowance, n.HoldLimit, n.Drain = allowance, hold, nil
	n.StoragePlugins = []*cluster.StoragePlugin{{ID: "disks", Type: cluster.PluginNode, Healthy: true}}
	s.apply(&shims.NodeRegister{At: s.now, Node: n})
}

// singleWriter are the modes of the volumes.
var singleWriter = cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}

// volume registers a volume of the plugin disks.
func (s *history) volume(id cluster.VolumeID) {
	s.apply(&shims.VolumeRegister{At: s.now, Volume: &cluster.Volume{
		Namespace: "default", ID: id, ExternalID: string(id), Plugin: "disks", Capabilities: []cluster.VolumeCapability{singleWriter},
	}})
}

func (s *history) status(id cluster.NodeID, status cluster.NodeStatus) {
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

// withVolume makes the group of the job request a volume.
func withVolume(j *cluster.Job) *cluster.Job {
	j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "data", Type: cluster.VolumeCSI, Source: "data", Capability: singleWriter}}
	return j
}

func (s *history) job(j *cluster.Job) { s.apply(&shims.JobRegister{Job: j}) }

func jobKey(id cluster.JobID) cluster.JobKey { return cluster.JobKey{Namespace: "default", ID: id} }

func groupKey(id cluster.JobID) cluster.GroupKey {
	return cluster.GroupKey{Job: jobKey(id), Name: string(id)}
}

// eval returns a new pending evaluation.
func (s *history) eval(id cluster.JobID) *cluster.Evaluation {
	s.evals++
	return &cluster.Evaluation{
		ID: cluster.EvalID(fmt.Sprintf("e%03d", s.evals)), Namespace: "default", JobID: id,
		Type: cluster.JobService, Priority: 50, TriggeredBy: cluster.TriggerNodeDrain, Status: cluster.EvalPending, CreateTime: s.now, ModifyTime: s.now,
	}
}

// closeEvals completes all open evaluations of the job.
func (s *history) closeEvals(id cluster.JobID) {
	var evals []*cluster.Evaluation
	for e := range s.state().WorkView().OpenEvals(jobKey(id)) {
		e = e.Copy()
		e.Status = cluster.EvalComplete
		evals = append(evals, e)
	}
	s.apply(&shims.EvalUpdate{Evals: evals})
}

// blockEvals completes all open evaluations of the job, and adds a blocked one.
func (s *history) blockEvals(id cluster.JobID) {
	s.closeEvals(id)
	e := s.eval(id)
	e.Status = cluster.EvalBlocked
	s.apply(&shims.EvalUpdate{Evals: []*cluster.Evaluation{e}})
}

// place places an allocation without a scheduler.
func (s *history) place(id cluster.AllocID, of cluster.JobID, on cluster.NodeID, change ...func(*cluster.Allocation)) {
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
	s.fake(m, shims.PlanApplied{Accepted: &m.Plan}, func(txn *statestore.Txn) {
		dropped, err := txn.ApplyPlan(&m.Plan)
		must.NoError(s.t, err)
		must.SliceEmpty(s.t, dropped)
	})
}

func canary(a *cluster.Allocation) { a.DeploymentStatus = &cluster.DeploymentStatus{Canary: true} }

func replacing(id cluster.AllocID) func(*cluster.Allocation) {
	return func(a *cluster.Allocation) { a.PreviousAllocation = id }
}

// stop applies a plan that stops an allocation.
func (s *history) stop(id cluster.AllocID, migrate bool) {
	s.stopAs(cluster.PlanStop{Alloc: id, Migrate: migrate})
}

// stopAs applies a plan with one stop.
func (s *history) stopAs(stop cluster.PlanStop) {
	e := s.eval(s.state().Alloc(stop.Alloc).JobID)
	e.Status = cluster.EvalComplete
	m := &shims.ApplyPlan{Plan: cluster.Plan{At: s.now, Eval: e, Stops: []cluster.PlanStop{stop}}}
	s.fake(m, shims.PlanApplied{Accepted: &m.Plan}, func(txn *statestore.Txn) {
		_, err := txn.ApplyPlan(&m.Plan)
		must.NoError(s.t, err)
	})
}

// report applies reports of clients.
func (s *history) report(status cluster.ClientStatus, healthy *bool, ids ...cluster.AllocID) {
	m := &shims.AllocClientUpdate{}
	for _, id := range ids {
		m.Reports = append(m.Reports, cluster.AllocReport{
			Alloc: id, Node: s.state().Alloc(id).NodeID, ClientStatus: status, Healthy: healthy, HealthyAt: s.now, At: s.now,
		})
	}
	s.apply(m)
}

// run reports allocations as running and healthy, unhealthy as running and unhealthy.
func (s *history) run(ids ...cluster.AllocID) { s.report(cluster.ClientRunning, pointer(true), ids...) }

func (s *history) unhealthy(ids ...cluster.AllocID) {
	s.report(cluster.ClientRunning, pointer(false), ids...)
}

func (s *history) ended(ids ...cluster.AllocID) { s.report(cluster.ClientComplete, nil, ids...) }

func (s *history) failed(ids ...cluster.AllocID) { s.report(cluster.ClientFailed, nil, ids...) }

func pointer[T any](v T) *T { return &v }

// forge is like fake, and also edits rows past the rules of the store. It works on a copy of the
// state, and the FSM continues with the copy.
func (s *history) forge(m shims.Message, r shims.Response, write func(*statestore.Txn), edit func(*statestore.Snapshot)) {
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
	s.observe(a)
}

func (s *history) persist(state *statestore.Snapshot) *bytes.Buffer {
	var b bytes.Buffer
	must.NoError(s.t, statestore.Persist(&b, state))
	return &b
}

// nothing writes nothing.
func nothing(*statestore.Txn) {}
