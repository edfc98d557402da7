package scheduler_test

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var _ scheduler.View = statestore.WorkView{}

// start is when every test begins.
var start = time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)

// failer is a test, or a run of a property test.
type failer interface {
	must.T
	Fatalf(format string, args ...any)
}

// cell is a small cluster: a state store that is written one entry at a time,
// and a hand to schedule with.
type cell struct {
	t     failer
	store *statestore.Store
	index uint64
	now   time.Time
	// lastID is the number of the last created id.
	lastID int
}

// newCell returns a cell of the newest cluster version.
func newCell(t failer) *cell { return newCellOf(t, cluster.MaxVersion) }

func newCellOf(t failer, v cluster.Version) *cell {
	c := &cell{t: t, store: statestore.New(), now: start}
	c.write(func(txn *statestore.Txn) error {
		txn.RaiseClusterVersion(v)
		return nil
	})
	return c
}

func (c *cell) view() *statestore.Snapshot { return c.store.Snapshot() }

// write applies one entry.
func (c *cell) write(entry func(txn *statestore.Txn) error) {
	c.index++
	txn := c.store.Begin(c.index)
	defer txn.Abort()
	must.NoError(c.t, entry(txn))
	txn.Commit()
}

func (c *cell) id(kind string) string {
	c.lastID++
	return fmt.Sprintf("%s-%05d", kind, c.lastID)
}

func (c *cell) evalID() cluster.EvalID { return cluster.EvalID(c.id("eval")) }

func (c *cell) ids() scheduler.IDs {
	return scheduler.IDs{
		Alloc: func() cluster.AllocID { return cluster.AllocID(c.id("alloc")) },
		Eval:  c.evalID,
	}
}

// node registers a ready node with room for ten of [cell.service]'s allocations.
func (c *cell) node(id string, edit ...func(*cluster.Node)) cluster.NodeID {
	n := clustertest.Node(cluster.NodeID(id))
	n.Resources = cluster.Resources{CPU: 1000, MemoryMB: 1000, DiskMB: 1000, GPU: 1000}
	for _, f := range edit {
		f(n)
	}
	c.write(func(txn *statestore.Txn) error {
		if err := txn.UpsertNode(n, c.now); err != nil {
			return err
		}
		return txn.UpsertEvals(scheduler.NodeEvals(txn.State().WorkView(), n.ID, cluster.TriggerNodeUpdate, c.now, c.evalID))
	})
	return n.ID
}

// job registers a job with one group "g".
func (c *cell) job(id string, kind cluster.JobType, count int, edit ...func(*cluster.Job)) cluster.JobKey {
	j := &cluster.Job{ID: cluster.JobID(id), Type: kind, TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: count,
		Tasks: []*cluster.Task{{Name: "t", Resources: cluster.Resources{CPU: 100, MemoryMB: 100}}},
	}}}
	for _, f := range edit {
		f(j)
	}
	return c.register(j)
}

func (c *cell) register(j *cluster.Job) cluster.JobKey {
	j.Canonicalize()
	must.NoError(c.t, j.Validate())
	c.write(func(txn *statestore.Txn) error {
		if err := txn.UpsertJob(j); err != nil {
			return err
		}
		return txn.UpsertEvals([]*cluster.Evaluation{scheduler.JobEval(j, cluster.TriggerJobRegister, c.now, c.evalID())})
	})
	return j.Key()
}

// edit registers another version of a job.
func (c *cell) edit(k cluster.JobKey, edit func(*cluster.Job)) {
	j := c.view().Job(k).Copy()
	edit(j)
	c.register(j)
}

func (c *cell) stopJob(k cluster.JobKey, purge bool) {
	j := c.view().Job(k)
	c.write(func(txn *statestore.Txn) error {
		if err := txn.DeleteJob(k, purge); err != nil {
			return err
		}
		return txn.UpsertEvals([]*cluster.Evaluation{scheduler.JobEval(j, cluster.TriggerJobDeregister, c.now, c.evalID())})
	})
}

// status gives a node another status.
func (c *cell) status(n cluster.NodeID, s cluster.NodeStatus) {
	c.write(func(txn *statestore.Txn) error {
		if err := txn.UpdateNodeStatus(n, s, c.now); err != nil {
			return err
		}
		return txn.UpsertEvals(scheduler.NodeEvals(txn.State().WorkView(), n, cluster.TriggerNodeUpdate, c.now, c.evalID))
	})
}

// drain starts the drain of a node.
func (c *cell) drain(n cluster.NodeID) {
	c.write(func(txn *statestore.Txn) error {
		_, err := txn.UpdateNodeDrain(cluster.DrainUpdate{Node: n, Spec: &cluster.DrainSpec{}, Drain: cluster.DrainID(c.id("drain")), At: c.now})
		return err
	})
}

// cancel ends the drain of a node and makes it eligible.
func (c *cell) cancel(n cluster.NodeID) {
	c.write(func(txn *statestore.Txn) error {
		if _, err := txn.UpdateNodeDrain(cluster.DrainUpdate{Node: n, MarkEligible: true, At: c.now}); err != nil {
			return err
		}
		return txn.UpsertEvals(scheduler.NodeEvals(txn.State().WorkView(), n, cluster.TriggerNodeUpdate, c.now, c.evalID))
	})
}

// mark marks allocations on draining nodes, each with its job's evaluation.
func (c *cell) mark(class cluster.MarkClass, allocs ...*cluster.Allocation) {
	var marks []rules.Mark
	var evals []*cluster.Evaluation
	for _, a := range allocs {
		n := c.view().Node(a.NodeID)
		marks = append(marks, clustertest.Mark(n, a, class))
		evals = append(evals, scheduler.JobEval(a.Job, cluster.TriggerNodeDrain, c.now, c.evalID()))
	}
	c.write(func(txn *statestore.Txn) error { return txn.ApplyMarks(c.now, marks, evals) })
}

// failEvals gives up the pending evaluations of a job with the trigger.
func failEvals(c *cell, k cluster.JobKey, t cluster.EvalTrigger) {
	c.write(func(txn *statestore.Txn) error {
		var failed []*cluster.Evaluation
		for e := range txn.State().WorkView().OpenEvals(k) {
			if e.TriggeredBy == t {
				e = e.Copy()
				e.Status = cluster.EvalFailed
				failed = append(failed, e)
			}
		}
		return txn.UpsertEvals(failed)
	})
}

// report applies clients' reports, with their evaluations.
func (c *cell) report(reports ...cluster.AllocReport) {
	if len(reports) == 0 {
		return
	}
	c.write(func(txn *statestore.Txn) error {
		evals := scheduler.ReportEvals(txn.State().WorkView(), reports, c.now, c.evalID)
		txn.UpdateAllocsFromClient(reports, c.now)
		return txn.UpsertEvals(evals)
	})
}

// statusReport is the report that an allocation has a status; running ones are healthy.
func (c *cell) statusReport(a *cluster.Allocation, s cluster.ClientStatus) cluster.AllocReport {
	r := clustertest.Report(a, s, c.now)
	if a.JobType().ToCompletion() {
		r.Healthy, r.HealthyAt = nil, time.Time{}
	}
	return r
}

// progress has every client that is in touch start what it should run and end
// what it should not.
func (c *cell) progress() {
	var reports []cluster.AllocReport
	for a := range c.view().Allocs() {
		n := c.view().Node(a.NodeID)
		switch {
		case a.ClientTerminal() || n == nil || n.Status != cluster.NodeReady:
		case a.ServerTerminal():
			reports = append(reports, c.statusReport(a, cluster.ClientComplete))
		case a.ClientStatus != cluster.ClientRunning:
			reports = append(reports, c.statusReport(a, cluster.ClientRunning))
		}
	}
	c.report(reports...)
}

// apply checks and applies a plan.
func (c *cell) apply(p *cluster.Plan) (refused []scheduler.Refusal) {
	c.write(func(txn *statestore.Txn) error {
		var accepted *cluster.Plan
		accepted, refused = scheduler.Check(txn.State().WorkView(), p)
		same, alike := scheduler.Check(whole{txn.State().WorkView(), txn.State()}, p)
		must.Eq(c.t, same, accepted, must.Sprint("concluded allocations changed the check"))
		must.Eq(c.t, alike, refused, must.Sprint("concluded allocations changed the check"))
		dropped, err := txn.ApplyPlan(accepted)
		must.SliceEmpty(c.t, dropped)
		return err
	})
	return refused
}

// schedule plans an evaluation. Concluded allocations do not change the plan.
func (c *cell) schedule(e *cluster.Evaluation) *cluster.Plan {
	lastID, view := c.lastID, c.view()
	same := scheduler.Schedule(whole{view.WorkView(), view}, e, c.now, c.ids())
	c.lastID = lastID
	plan := scheduler.Schedule(view.WorkView(), e, c.now, c.ids())
	must.Eq(c.t, same, plan, must.Sprint("concluded allocations changed the plan"))
	return plan
}

// whole is a view that leaves out no concluded allocation.
type whole struct {
	scheduler.View
	history interface {
		AllocsByJob(cluster.JobKey) iter.Seq[*cluster.Allocation]
	}
}

// UnconcludedAllocs yields all allocations of the job.
func (w whole) UnconcludedAllocs(k cluster.JobKey) iter.Seq[*cluster.Allocation] {
	return w.history.AllocsByJob(k)
}

// settle answers every pending evaluation. Nothing moves meanwhile, so nothing
// may be refused.
func (c *cell) settle() {
	for range 1000 {
		e := first(c.view().WorkView().PendingEvals())
		if e == nil {
			return
		}
		must.SliceEmpty(c.t, c.apply(c.schedule(e)))
	}
	c.t.Fatalf("evaluations never end")
}

// unblock plans the blocked evaluations again.
func (c *cell) unblock() {
	for _, e := range slices.Collect(c.view().WorkView().BlockedEvals()) {
		if c.view().WorkView().CapacityIndex() > e.SnapshotIndex {
			must.SliceEmpty(c.t, c.apply(c.schedule(e)))
		}
	}
}

// run settles, lets clients progress, and does so again until nothing moves.
func (c *cell) run() {
	for range 1000 {
		before := c.index
		c.settle()
		c.unblock()
		c.progress()
		if c.index == before {
			return
		}
	}
	c.t.Fatalf("the cluster never comes to rest")
}

func first[T any](seq iter.Seq[*T]) *T {
	for v := range seq {
		return v
	}
	return nil
}

// allocs are the job's allocations that match, by name and age.
func (c *cell) allocs(k cluster.JobKey, match func(*cluster.Allocation) bool) []*cluster.Allocation {
	var found []*cluster.Allocation
	for a := range c.view().AllocsByJob(k) {
		if match(a) {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, func(a, b *cluster.Allocation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
	return found
}

// wanted are the allocations that should run and have not ended.
func (c *cell) wanted(k cluster.JobKey) []*cluster.Allocation {
	return c.allocs(k, func(a *cluster.Allocation) bool { return !a.Terminal() })
}

func on(n cluster.NodeID) func(*cluster.Allocation) bool {
	return func(a *cluster.Allocation) bool { return a.NodeID == n }
}

func pick(allocs []*cluster.Allocation, match func(*cluster.Allocation) bool) []*cluster.Allocation {
	return slices.DeleteFunc(slices.Clone(allocs), func(a *cluster.Allocation) bool { return !match(a) })
}

func namesOf(allocs []*cluster.Allocation) []string {
	var names []string
	for _, a := range allocs {
		names = append(names, a.Name)
	}
	return names
}

func nodesOf(allocs []*cluster.Allocation) []cluster.NodeID {
	var nodes []cluster.NodeID
	for _, a := range allocs {
		nodes = append(nodes, a.NodeID)
	}
	slices.Sort(nodes)
	return nodes
}

// alloc returns an allocation as it is now.
func (c *cell) alloc(id cluster.AllocID) *cluster.Allocation {
	a := c.view().Alloc(id)
	must.NotNil(c.t, a)
	return a
}

// seed writes an allocation as it is, and fills in what is missing.
func (c *cell) seed(k cluster.JobKey, n cluster.NodeID, edit ...func(*cluster.Allocation)) *cluster.Allocation {
	j := c.view().Job(k)
	a := clustertest.Alloc(j, cluster.AllocID(c.id("alloc")), n, c.now)
	a.Name, a.ClientStatus = fmt.Sprintf("%s.%s[%d]", k.ID, j.TaskGroups[0].Name, len(c.wanted(k))), cluster.ClientRunning
	for _, f := range edit {
		f(a)
	}
	c.write(func(txn *statestore.Txn) error {
		_, err := txn.ApplyPlan(&cluster.Plan{At: c.now, Places: []*cluster.Allocation{a}})
		return err
	})
	return c.alloc(a.ID)
}

// evaluate makes an evaluation of a job.
func (c *cell) evaluate(k cluster.JobKey) {
	c.write(func(txn *statestore.Txn) error {
		return txn.UpsertEvals([]*cluster.Evaluation{scheduler.JobEval(txn.State().Job(k), cluster.TriggerNodeUpdate, c.now, c.evalID())})
	})
}

func canary(a *cluster.Allocation) {
	healthy := true
	a.DeploymentID = "deployment-1"
	a.DeploymentStatus = &cluster.DeploymentStatus{Canary: true, Healthy: &healthy}
}

func marked(a *cluster.Allocation) { a.DesiredTransition.Migrate = true }

func parallel(t *testing.T) *cell {
	t.Helper()
	t.Parallel()
	return newCell(t)
}

// running is parallel with a job that runs on the node n1, which is the only one.
func running(t *testing.T, id string, kind cluster.JobType, count int, edit ...func(*cluster.Job)) (c *cell, n1 cluster.NodeID, job cluster.JobKey) {
	t.Helper()
	c = parallel(t)
	n1 = c.node("n1")
	job = c.job(id, kind, count, edit...)
	c.run()
	return c, n1, job
}
