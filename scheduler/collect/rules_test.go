package collect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var (
	_ collect.State = statestore.WorkView{}
	_ collect.Txn   = (*statestore.Txn)(nil)
)

// noon is when the rows of the tests were written. The tests collect at three.
var (
	noon  = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	three = noon.Add(3 * time.Hour)
)

// fixture is a store with the ready node n1 and the service "web".
type fixture struct {
	t     *testing.T
	store *statestore.Store
	index uint64
	// at is the time of the next write.
	at  time.Time
	web *cluster.Job
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, store: statestore.New(), at: noon}
	f.write(func(txn *statestore.Txn) error {
		txn.RaiseClusterVersion(cluster.MaxVersion)
		return txn.UpsertNode(clustertest.Node("n1"), f.at)
	})
	f.web = f.job(clustertest.Job("web", cluster.JobService, 1))
	return f
}

func (f *fixture) state() *statestore.Snapshot { return f.store.Snapshot() }

func (f *fixture) write(entry func(*statestore.Txn) error) {
	f.t.Helper()
	f.index++
	txn := f.store.Begin(f.index)
	must.NoError(f.t, entry(txn))
	txn.Commit()
}

func (f *fixture) job(j *cluster.Job) *cluster.Job {
	f.t.Helper()
	f.write(func(txn *statestore.Txn) error { return txn.UpsertJob(j) })
	return f.state().Job(j.Key())
}

// stop stops the job, and answers the evaluation of that.
func (f *fixture) stop(j *cluster.Job) {
	f.t.Helper()
	f.write(func(txn *statestore.Txn) error { return txn.DeleteJob(j.Key(), false) })
	f.eval(j, cluster.EvalID(fmt.Sprintf("stop-%s", j.ID)), cluster.EvalComplete)
}

// place writes an allocation unchanged.
func (f *fixture) place(a *cluster.Allocation) {
	f.t.Helper()
	f.write(func(txn *statestore.Txn) error {
		dropped, err := txn.ApplyPlan(&cluster.Plan{At: f.at, Places: []*cluster.Allocation{a}})
		must.SliceEmpty(f.t, dropped)
		return err
	})
}

func (f *fixture) eval(j *cluster.Job, id cluster.EvalID, s cluster.EvalStatus, edit ...func(*cluster.Evaluation)) {
	f.t.Helper()
	e := clustertest.Eval(j, id, f.at)
	e.Status = s
	for _, change := range edit {
		change(e)
	}
	f.write(func(txn *statestore.Txn) error { return txn.UpsertEvals([]*cluster.Evaluation{e}) })
}

// ended is an allocation of the job that a plan stopped for a replacement that is gone by now.
func ended(j *cluster.Job, id cluster.AllocID) *cluster.Allocation {
	a := clustertest.Alloc(j, id, "n1", noon)
	a.EvalID = "gone"
	a.DesiredStatus, a.DesiredDescription = cluster.DesiredStop, cluster.DescMigrating
	a.ClientStatus, a.NextAllocation = cluster.ClientComplete, "gone"
	return a
}

// batch makes f.web a batch job with a closed evaluation and with allocations that are complete.
func (f *fixture) batch(complete ...cluster.AllocID) {
	f.t.Helper()
	f.web = f.job(clustertest.Job("sum", cluster.JobBatch, max(1, len(complete))))
	f.eval(f.web, "e", cluster.EvalComplete)
	for _, id := range complete {
		f.place(f.done(id))
	}
}

// done is a complete allocation of the job.
func (f *fixture) done(id cluster.AllocID) *cluster.Allocation {
	a := clustertest.Alloc(f.web, id, "n1", noon)
	a.EvalID, a.ClientStatus = "e", cluster.ClientComplete
	return a
}

// keeping makes the client keep the data of an allocation.
func keeping(a *cluster.Allocation) *cluster.Allocation {
	a.DataOut = &cluster.DataMove{State: cluster.DataKept}
	return a
}

// running is an allocation of the job that runs.
func running(j *cluster.Job, id, previous cluster.AllocID) *cluster.Allocation {
	a := clustertest.Alloc(j, id, "n1", noon)
	a.ClientStatus, a.PreviousAllocation = cluster.ClientRunning, previous
	return a
}

// Each of these is why an ended allocation stays, or that it may go.
func TestWhatNeedsAnAllocation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// make writes the allocation "a" and what surrounds it.
		make func(f *fixture)
		want string
	}{
		"nothing":                {func(f *fixture) { f.place(ended(f.web, "a")) }, ""},
		"it does not exist":      {func(*fixture) {}, "it does not exist"},
		"it runs":                {func(f *fixture) { f.place(running(f.web, "a", "")) }, "it has not ended"},
		"it still stops":         {func(f *fixture) { a := ended(f.web, "a"); a.ClientStatus = cluster.ClientRunning; f.place(a) }, "it has not ended"},
		"written within the age": {func(f *fixture) { f.at = three.Add(-time.Hour); f.place(ended(f.web, "a")) }, "it was written lately"},
		"written just before":    {func(f *fixture) { f.at = three.Add(-time.Hour - 1); f.place(ended(f.web, "a")) }, ""},
		"a running drain marked it": {func(f *fixture) {
			f.place(running(f.web, "a", ""))
			f.drain("d1")
			f.mark(cluster.MarkPaced)
			f.end("a")
		}, "a drain needs it"},
		"an ended drain marked it": {func(f *fixture) {
			f.place(running(f.web, "a", ""))
			f.drain("d1")
			f.mark(cluster.MarkPaced)
			f.end("a")
			f.write(func(txn *statestore.Txn) error {
				_, err := txn.UpdateNodeDrain(cluster.DrainUpdate{Node: "n1", At: f.at})
				return err
			})
		}, ""},
		"its replacement keeps a slot of a drain": {func(f *fixture) {
			a := ended(f.web, "a")
			a.DesiredTransition.Class = cluster.MarkCanary
			f.place(a)
			f.place(running(f.web, "b", "a"))
		}, "its replacement may keep a slot of a drain"},
		"its node is down": {func(f *fixture) {
			a := ended(f.web, "a")
			a.ClientStatus = cluster.ClientLost
			f.place(a)
			f.status(cluster.NodeDown)
		}, "its node may still run it"},
		"its node came back lately": {func(f *fixture) {
			a := ended(f.web, "a")
			a.ClientStatus = cluster.ClientLost
			f.place(a)
			f.status(cluster.NodeDown)
			f.at = three.Add(-time.Hour)
			f.status(cluster.NodeReady)
		}, "its node may still run it"},
		"its node is gone": {func(f *fixture) {
			a := ended(f.web, "a")
			a.ClientStatus, a.NodeID = cluster.ClientLost, "n9"
			f.place(a)
		}, ""},
		"its client keeps its data": {func(f *fixture) { f.place(keeping(ended(f.web, "a"))) }, "its client keeps its data for a replacement"},
		"its client keeps its data on a deleted node": {func(f *fixture) {
			a := keeping(ended(f.web, "a"))
			a.NodeID = "n9"
			f.place(a)
		}, ""},
		"its replacement waits for data": {func(f *fixture) {
			f.place(ended(f.web, "a"))
			b := running(f.web, "b", "a")
			b.ClientStatus, b.DataIn = cluster.ClientPending, &cluster.DataMove{State: cluster.DataCopying}
			f.place(b)
		}, "an allocation that replaces it waits for data"},
		"its volume is still on the node": {func(f *fixture) {
			f.web = f.stored("web", cluster.JobService)
			f.place(ended(f.web, "a"))
		}, "it claims a volume"},
		"its volume has left the node": {func(f *fixture) {
			f.web = f.stored("web", cluster.JobService)
			f.place(ended(f.web, "a"))
			f.release()
		}, ""},
		"completed batch": {func(f *fixture) {
			f.place(complete(f.job(clustertest.Job("sum", cluster.JobBatch, 1)), "a"))
		}, "it holds a slot of its group"},
		"completed batch of older work": {func(f *fixture) {
			f.place(complete(f.job(clustertest.Job("sum", cluster.JobBatch, 1)), "a"))
			edited := clustertest.Job("sum", cluster.JobBatch, 1)
			edited.TaskGroups[0].Tasks[0].Resources.CPU++
			f.job(edited)
		}, ""},
		"completed sysbatch": {func(f *fixture) {
			f.place(complete(f.job(clustertest.Job("scan", cluster.JobSysBatch, 1)), "a"))
		}, "it holds a slot of its group"},
		"batch that a deadline stopped": {func(f *fixture) {
			a := ended(f.job(clustertest.Job("sum", cluster.JobBatch, 1)), "a")
			a.DesiredTransition.MigrateDisablePlacement = true
			f.place(a)
		}, "it holds a slot of its group"},
		"it failed for good": {func(f *fixture) { f.failures(cluster.MaxReschedules+1, false) }, "it holds a slot of its group"},
		"no room for its replacement": {func(f *fixture) {
			a := ended(f.web, "a")
			a.NextAllocation = ""
			f.place(a)
			f.eval(f.web, "e", cluster.EvalBlocked)
		}, "it waits for its replacement"},
		"a canary without replacement": {func(f *fixture) {
			a := ended(f.web, "a")
			a.NextAllocation, a.DeploymentStatus = "", &cluster.DeploymentStatus{Canary: true}
			f.place(a)
		}, "it waits for its replacement"},
		"its replacement runs after failures in a row": {func(f *fixture) {
			f.failures(cluster.MaxReschedules, true)
			must.NotNil(f.t, f.state().Alloc("a"))
		}, "it counts as a failure of its replacement"},
		"more failures ago than count": {func(f *fixture) { f.failures(cluster.MaxReschedules+1, true) }, ""},
		"what it replaced is back": {func(f *fixture) {
			f.place(running(f.web, "old", ""))
			a := ended(f.web, "a")
			a.PreviousAllocation = "old"
			f.place(a)
		}, "the allocation that it replaced has come back"},
		"its job is gone": {func(f *fixture) {
			f.place(complete(f.web, "a"))
			f.web = f.job(clustertest.Job("other", cluster.JobService, 1))
			f.write(func(txn *statestore.Txn) error { return txn.DeleteJob(f.web.Key(), true) })
		}, ""},
		"its job was purged": {func(f *fixture) {
			f.place(running(f.web, "a", ""))
			f.write(func(txn *statestore.Txn) error { return statestore.PurgeJob(txn, f.web.Key(), f.at) })
			f.end("a")
		}, ""},
		"its job was purged and it stops": {func(f *fixture) {
			f.place(running(f.web, "a", ""))
			f.write(func(txn *statestore.Txn) error { return statestore.PurgeJob(txn, f.web.Key(), f.at) })
		}, "it has not ended"},
		"its job was purged and registered again": {func(f *fixture) {
			f.place(running(f.web, "a", ""))
			f.write(func(txn *statestore.Txn) error { return statestore.PurgeJob(txn, f.web.Key(), f.at) })
			f.end("a")
			f.web = f.job(clustertest.Job("web", cluster.JobService, 1))
		}, ""},
		"completed batch of a job stopped lately": {func(f *fixture) {
			sum := f.job(clustertest.Job("sum", cluster.JobBatch, 1))
			f.place(complete(sum, "a"))
			f.stop(sum)
		}, "its job was stopped lately"},
		"completed batch of a job stopped long ago": {func(f *fixture) {
			f.at = three.Add(-4*time.Hour - 1)
			sum := f.job(clustertest.Job("sum", cluster.JobBatch, 1))
			f.place(complete(sum, "a"))
			f.stop(sum)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.make(f)
			judge := collect.NewJudge(f.state().WorkView(), collect.Before{Allocs: three.Add(-time.Hour), Jobs: three.Add(-4 * time.Hour)})
			must.Eq(t, c.want, judge.Alloc(f.state().Alloc("a")))
		})
	}
}

// stored is a job whose allocation uses the volume "data".
func (f *fixture) stored(id cluster.JobID, kind cluster.JobType) *cluster.Job {
	f.t.Helper()
	mode := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
	f.write(func(txn *statestore.Txn) error {
		n := clustertest.Node("n1")
		n.StoragePlugins = []*cluster.StoragePlugin{{ID: "disks", Type: cluster.PluginNode, Alloc: "p", Healthy: true, NodeID: "n1"}}
		must.NoError(f.t, txn.UpsertNode(n, f.at))
		return txn.UpsertVolume(&cluster.Volume{
			Namespace: "default", ID: "data", Name: "data", ExternalID: "ext", Plugin: "disks", Capabilities: []cluster.VolumeCapability{mode},
		}, f.at)
	})
	j := clustertest.Job(id, kind, 1)
	j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "data", Type: cluster.VolumeCSI, Source: "data", Capability: mode}}
	return f.job(j)
}

// release frees the claim of the allocation "a".
func (f *fixture) release() {
	f.t.Helper()
	f.write(func(txn *statestore.Txn) error {
		must.SliceEmpty(f.t, txn.UpdateClaims(&cluster.ClaimUpdate{At: f.at, Changes: []cluster.ClaimChange{{
			Claim: cluster.ClaimKey{Volume: cluster.VolumeKey{Namespace: "default", ID: "data"}, Alloc: "a"}, Node: "n1", Cause: cluster.CauseNode,
		}}}))
		return nil
	})
}

// complete is an allocation whose tasks have ended by themselves.
func complete(j *cluster.Job, id cluster.AllocID) *cluster.Allocation {
	a := running(j, id, "")
	a.EvalID, a.ClientStatus = "gone", cluster.ClientComplete
	return a
}

// failures places allocations that failed and were placed again, n times in a row: first "a" if
// the last runs, otherwise last.
func (f *fixture) failures(n int, runs bool) {
	f.t.Helper()
	id := func(i int) cluster.AllocID {
		if runs && i == 0 || !runs && i == n-1 {
			return "a"
		}
		return cluster.AllocID(fmt.Sprint("f", i))
	}
	previous := cluster.AllocID("")
	for i := range n {
		a := running(f.web, id(i), previous)
		a.ClientStatus = cluster.ClientFailed
		if runs || i < n-1 {
			a.DesiredStatus, a.DesiredDescription = cluster.DesiredStop, cluster.DescRescheduled
		}
		f.place(a)
		previous = a.ID
	}
	if runs {
		f.place(running(f.web, "last", previous))
	}
}

func (f *fixture) drain(id cluster.DrainID) {
	f.t.Helper()
	f.write(func(txn *statestore.Txn) error {
		_, err := txn.UpdateNodeDrain(cluster.DrainUpdate{Node: "n1", Spec: &cluster.DrainSpec{}, Drain: id, At: f.at})
		return err
	})
}

// mark marks the allocation "a".
func (f *fixture) mark(class cluster.MarkClass) {
	f.t.Helper()
	mark := clustertest.Mark(f.state().Node("n1"), f.state().Alloc("a"), class)
	f.write(func(txn *statestore.Txn) error { return txn.ApplyMarks(f.at, []rules.Mark{mark}, nil) })
}

// end stops an allocation, and its client reports that it has ended.
func (f *fixture) end(id cluster.AllocID) {
	f.t.Helper()
	a := f.state().Alloc(id)
	f.write(func(txn *statestore.Txn) error {
		_, err := txn.ApplyPlan(&cluster.Plan{At: f.at, Stops: []cluster.PlanStop{{Alloc: id, Description: cluster.DescMigrating}}})
		txn.UpdateAllocsFromClient([]cluster.AllocReport{clustertest.Report(a, cluster.ClientComplete, f.at)}, time.Time{})
		return err
	})
}

func (f *fixture) status(s cluster.NodeStatus) {
	f.t.Helper()
	f.write(func(txn *statestore.Txn) error { return txn.UpdateNodeStatus("n1", s, f.at) })
}

// Each of these is why a closed evaluation stays, or that it may go.
func TestWhatNeedsAnEvaluation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(f *fixture)
		want string
	}{
		"nothing": {func(f *fixture) {
			f.eval(f.web, "e", cluster.EvalComplete)
			f.eval(f.web, "later", cluster.EvalComplete)
		}, ""},
		"it does not exist":      {func(*fixture) {}, "it does not exist"},
		"it is pending":          {func(f *fixture) { f.eval(f.web, "e", cluster.EvalPending) }, "it is open"},
		"it is blocked":          {func(f *fixture) { f.eval(f.web, "e", cluster.EvalBlocked) }, "it is open"},
		"written within the age": {func(f *fixture) { f.at = three.Add(-time.Hour); f.eval(f.web, "e", cluster.EvalFailed) }, "it was written lately"},
		"newest of its job": {func(f *fixture) {
			f.eval(f.web, "older", cluster.EvalComplete)
			f.eval(f.web, "e", cluster.EvalCancelled)
		}, "it is the newest of its job"},
		"its job is gone": {func(f *fixture) { f.eval(clustertest.Job("gone", cluster.JobService, 1), "e", cluster.EvalComplete) }, ""},
		"an allocation names it": {func(f *fixture) {
			f.eval(f.web, "e", cluster.EvalComplete)
			f.eval(f.web, "later", cluster.EvalComplete)
			a := running(f.web, "a", "")
			a.EvalID = "e"
			f.place(a)
		}, "an allocation names it"},
		"its placements wait": {func(f *fixture) {
			f.eval(f.web, "e", cluster.EvalComplete, func(e *cluster.Evaluation) { e.BlockedEval = "b" })
			f.eval(f.web, "b", cluster.EvalBlocked)
		}, "the evaluation that it made is open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.make(f)
			judge := collect.NewJudge(f.state().WorkView(), collect.Before{Evals: three.Add(-time.Hour)})
			must.Eq(t, c.want, judge.Eval(f.state().Eval("e")))
		})
	}
}

// Each of these is why a job stays, or that it may go.
func TestWhatNeedsAJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(f *fixture)
		want string
	}{
		"nothing":            {func(f *fixture) { f.stop(f.web) }, ""},
		"it does not exist":  {func(f *fixture) { f.web = clustertest.Job("gone", cluster.JobService, 1) }, "it does not exist"},
		"it is not stopped":  {func(*fixture) {}, "it is not stopped"},
		"it has allocations": {func(f *fixture) { f.place(ended(f.web, "a")); f.stop(f.web) }, "it has allocations"},
		"more evaluations":   {func(f *fixture) { f.eval(f.web, "e", cluster.EvalComplete); f.stop(f.web) }, "it has evaluations"},
		"an open evaluation": {func(f *fixture) {
			f.write(func(txn *statestore.Txn) error { return txn.DeleteJob(f.web.Key(), false) })
			f.eval(f.web, "e", cluster.EvalPending)
		}, "it has evaluations"},
		"stopped lately":           {func(f *fixture) { f.at = three.Add(-time.Hour); f.stop(f.web) }, "it was stopped lately"},
		"a batch job that is done": {func(f *fixture) { f.batch("a", "b") }, ""},
		"a batch job whose work runs": {func(f *fixture) {
			f.batch("a")
			f.place(running(f.web, "b", ""))
		}, "it has work that has not ended"},
		"a batch job whose work ended lately": {func(f *fixture) {
			f.batch("a")
			f.at = three.Add(-time.Hour)
			f.place(f.done("b"))
		}, "its work ended lately"},
		"a batch job that waits for room": {func(f *fixture) {
			f.batch("a")
			f.eval(f.web, "e2", cluster.EvalBlocked)
		}, "it is not stopped"},
		"a batch job that was planned lately": {func(f *fixture) {
			f.batch("a")
			f.at = three.Add(-time.Hour)
			f.eval(f.web, "e2", cluster.EvalComplete)
		}, "it was planned lately"},
		"a batch job that has not run": {func(f *fixture) { f.batch() }, "it has not run"},
		"a batch job whose lost work may run on": {func(f *fixture) {
			f.batch()
			a := f.done("a")
			a.ClientStatus, a.NodeID = cluster.ClientLost, "n2"
			f.place(a)
			f.write(func(txn *statestore.Txn) error {
				n := clustertest.Node("n2")
				n.Status = cluster.NodeDown
				return txn.UpsertNode(n, f.at)
			})
		}, "it has allocations"},
		"a batch job whose work claims a volume": {func(f *fixture) {
			f.web = f.stored("sum", cluster.JobBatch)
			f.eval(f.web, "e", cluster.EvalComplete)
			f.place(f.done("a"))
		}, "it has allocations"},
		"a batch job whose volumes are free": {func(f *fixture) {
			f.web = f.stored("sum", cluster.JobBatch)
			f.eval(f.web, "e", cluster.EvalComplete)
			f.place(f.done("a"))
			f.release()
		}, ""},
		"a batch job whose work a drain has marked": {func(f *fixture) {
			f.batch()
			f.place(running(f.web, "a", ""))
			f.drain("d1")
			f.mark(cluster.MarkDeadline)
			f.end("a")
		}, "it has allocations"},
		"a sysbatch job that is done": {func(f *fixture) {
			f.web = f.job(clustertest.Job("sum", cluster.JobSysBatch, 1))
			f.eval(f.web, "e", cluster.EvalComplete)
			f.place(f.done("a"))
		}, "it is not stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.make(f)
			judge := collect.NewJudge(f.state().WorkView(), collect.Before{Allocs: three.Add(-time.Hour), Jobs: three.Add(-time.Hour)})
			must.Eq(t, c.want, judge.Job(f.state().Job(f.web.Key())))
		})
	}
}
