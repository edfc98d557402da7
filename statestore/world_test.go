package statestore_test

import (
	"strings"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// world is a store and its log. Each write is a separate entry, one second after the last.
type world struct {
	t     must.T
	store *statestore.Store
	index uint64
	now   time.Time
	// each runs after each entry, or is nil.
	each func()
}

func newWorld(t must.T) *world {
	return &world{
		t:     t,
		store: statestore.New(),
		now:   time.Date(2026, 3, 4, 5, 6, 7, 890_123_456, time.FixedZone("elsewhere", 3600)),
	}
}

func (w *world) snap() *statestore.Snapshot { return w.store.Snapshot() }

// write applies one entry.
func (w *world) write(f func(*statestore.Txn)) {
	w.t.Helper()
	w.index++
	w.now = w.now.Add(time.Second)
	txn := w.store.Begin(w.index)
	defer txn.Abort()
	f(txn)
	txn.Commit()
	if w.each != nil {
		w.each()
	}
}

// nodes registers ready nodes.
func (w *world) nodes(ids ...cluster.NodeID) {
	for _, id := range ids {
		w.write(func(t *statestore.Txn) {
			must.NoError(w.t, t.UpsertNode(&cluster.Node{ID: id, Name: "name of " + string(id), Status: cluster.NodeReady}, w.now))
		})
	}
}

// job registers a job and returns it as it is stored.
func (w *world) job(j *cluster.Job) *cluster.Job {
	w.write(func(t *statestore.Txn) { must.NoError(w.t, t.UpsertJob(j)) })
	return w.snap().Job(j.Key())
}

// place places running, healthy allocations on a node. edit changes each of them, or is nil.
func (w *world) place(j *cluster.Job, n cluster.NodeID, edit func(*cluster.Allocation), ids ...string) {
	plan := &cluster.Plan{}
	for _, id := range ids {
		a := place(j, id, n)
		a.ClientStatus = cluster.ClientRunning
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: pointer(true)}
		if edit != nil {
			edit(a)
		}
		plan.Places = append(plan.Places, a)
	}
	w.plan(plan)
}

// plan applies a plan that was made now. No placement may be dropped.
func (w *world) plan(p *cluster.Plan) {
	w.write(func(t *statestore.Txn) {
		p.At = w.now
		dropped, err := t.ApplyPlan(p)
		must.NoError(w.t, err)
		must.SliceEmpty(w.t, dropped)
	})
}

// drain starts or updates the drain of a node.
func (w *world) drain(n cluster.NodeID, d cluster.DrainID, spec cluster.DrainSpec) cluster.DrainResult {
	return w.request(cluster.DrainUpdate{Node: n, Drain: d, Spec: &spec})
}

// request makes a drain request at the current time.
func (w *world) request(u cluster.DrainUpdate) (done cluster.DrainResult) {
	w.t.Helper()
	w.write(func(t *statestore.Txn) {
		var err error
		u.At = w.now
		done, err = t.UpdateNodeDrain(u)
		must.NoError(w.t, err)
	})
	return done
}

// mark marks allocations for the drains that run on their nodes.
func (w *world) mark(c cluster.MarkClass, ids ...cluster.AllocID) {
	var marks []rules.Mark
	for _, id := range ids {
		a := w.snap().Alloc(id)
		n := w.snap().Node(a.NodeID)
		marks = append(marks, clustertest.Mark(n, a, c))
	}
	w.write(func(t *statestore.Txn) { must.NoError(w.t, t.ApplyMarks(w.now, marks, nil)) })
}

// stop applies a plan that stops allocations.
func (w *world) stop(ids ...cluster.AllocID) {
	p := &cluster.Plan{}
	for _, id := range ids {
		p.Stops = append(p.Stops, cluster.PlanStop{Alloc: id, Description: cluster.DescMigrating})
	}
	w.plan(p)
}

// report applies reports of a status by the allocations' clients.
func (w *world) report(s cluster.ClientStatus, ids ...cluster.AllocID) {
	var reports []cluster.AllocReport
	for _, id := range ids {
		reports = append(reports, cluster.AllocReport{Alloc: id, Node: w.snap().Alloc(id).NodeID, ClientStatus: s, At: w.now})
	}
	w.write(func(t *statestore.Txn) { t.UpdateAllocsFromClient(reports, time.Time{}) })
}

// status writes a node's status.
func (w *world) status(n cluster.NodeID, s cluster.NodeStatus) {
	w.write(func(t *statestore.Txn) { must.NoError(w.t, t.UpdateNodeStatus(n, s, w.now)) })
}

// complete ends the node's drain.
func (w *world) complete(n cluster.NodeID, o cluster.Outcome, stillStopping int) {
	d := w.snap().Node(n).Drain
	e := rules.Ending{
		Completion: rules.Completion{Node: n, Drain: d.ID, Revision: d.Revision},
		Outcome:    o, StillStopping: stillStopping,
	}
	w.write(func(t *statestore.Txn) { t.CompleteDrains(w.now, []rules.Ending{e}) })
}

// messages are the events of a node, oldest first.
func (w *world) messages(id cluster.NodeID) (all []string) {
	for _, e := range w.snap().Node(id).Events {
		all = append(all, e.Message)
	}
	return all
}

func dump(t must.T, s *statestore.Snapshot) string {
	var b strings.Builder
	must.NoError(t, statestore.Dump(&b, s))
	return b.String()
}

func allocIDs(seq func(func(*cluster.Allocation) bool)) (ids []cluster.AllocID) {
	for a := range seq {
		ids = append(ids, a.ID)
	}
	return ids
}

func evalIDs(seq func(func(*cluster.Evaluation) bool)) (ids []cluster.EvalID) {
	for e := range seq {
		ids = append(ids, e.ID)
	}
	return ids
}

func nodeIDs(seq func(func(*cluster.Node) bool)) (ids []cluster.NodeID) {
	for n := range seq {
		ids = append(ids, n.ID)
	}
	return ids
}

func recordIDs(seq func(func(*cluster.Drain) bool)) (ids []cluster.DrainID) {
	for d := range seq {
		ids = append(ids, d.ID)
	}
	return ids
}

func pointer[T any](v T) *T { return &v }

// serviceJob returns a canonical service job with one group, "g".
func serviceJob(id string, count int) *cluster.Job { return job(id, cluster.JobService, count) }

func job(id string, t cluster.JobType, count int) *cluster.Job {
	j := &cluster.Job{
		ID:   cluster.JobID(id),
		Type: t,
		TaskGroups: []*cluster.TaskGroup{{
			Name:  "g",
			Count: count,
			Tasks: []*cluster.Task{{Name: "t", KillTimeout: 5 * time.Second, Resources: cluster.Resources{CPU: 100, MemoryMB: 64}}},
		}},
	}
	j.Canonicalize()
	return j
}

// pluginJob returns a job whose allocations are storage plugins.
func pluginJob(id string, t cluster.JobType) *cluster.Job {
	j := job(id, t, 1)
	j.TaskGroups[0].Tasks[0].StoragePlugin = true
	return j
}

// place returns a new allocation of the job's group "g".
func place(j *cluster.Job, id string, node cluster.NodeID) *cluster.Allocation {
	return &cluster.Allocation{
		ID: cluster.AllocID(id), Namespace: j.Namespace, JobID: j.ID, TaskGroup: "g", NodeID: node,
		Resources: j.TaskGroups[0].Resources(),
	}
}

// seconds returns the time in whole seconds, as in Nomad's API.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
