//race:skip one goroutine
package collected_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/collected"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// now is the time of every entry that deletes rows. All rows were written at the start.
func now() time.Time { return start().Add(time.Hour) }

const age = 10 * time.Minute

// world is a state with the nodes n1 and n2, the job web with the allocation a1, and the batch job
// sum with the allocation b1. a0 has ended and a1 has replaced it. Each job has a complete
// evaluation, and web also has an older one. A test changes the rows before they are written.
type world struct {
	node     *cluster.Node
	web, sum *cluster.Job
	allocs   []*cluster.Allocation // a0, a1, b1
	evals    []*cluster.Evaluation // e0, e1, sum
	// drain is the running drain of n1, or empty. stop means that sum is stopped.
	drain cluster.DrainID
	stop  bool
	// claims means that the allocations of both jobs claim the volume data, which all of them may use.
	claims bool
	// at is the time at which the allocations are written.
	at time.Time
}

func newWorld() *world {
	job := func(id cluster.JobID, kind cluster.JobType) *cluster.Job {
		j := &cluster.Job{ID: id, Type: kind, TaskGroups: []*cluster.TaskGroup{{Name: "g", Count: 1, Tasks: []*cluster.Task{{Name: "t"}}}}}
		j.Canonicalize()
		return j
	}
	w := &world{
		at:   start(),
		node: &cluster.Node{ID: "n1", Name: "n1", Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible},
		web:  job("web", cluster.JobService), sum: job("sum", cluster.JobBatch),
	}
	alloc := func(id cluster.AllocID, j *cluster.Job, status cluster.ClientStatus) *cluster.Allocation {
		return &cluster.Allocation{
			ID: id, Namespace: "default", JobID: j.ID, Job: j, TaskGroup: "g", Name: string(j.ID) + ".g[0]", NodeID: "n1",
			DesiredStatus: cluster.DesiredRun, ClientStatus: status, EvalID: "e1",
		}
	}
	w.allocs = []*cluster.Allocation{
		alloc("a0", w.web, cluster.ClientComplete), alloc("a1", w.web, cluster.ClientRunning), alloc("b1", w.sum, cluster.ClientComplete),
	}
	w.allocs[0].DesiredStatus, w.allocs[0].DesiredDescription, w.allocs[0].NextAllocation = cluster.DesiredStop, cluster.DescMigrating, "a1"
	w.allocs[1].PreviousAllocation = "a0"
	eval := func(id cluster.EvalID, job cluster.JobID) *cluster.Evaluation {
		return &cluster.Evaluation{ID: id, Namespace: "default", JobID: job, Status: cluster.EvalComplete, ModifyTime: start()}
	}
	w.evals = []*cluster.Evaluation{eval("e0", "web"), eval("e1", "web"), eval("sum", "sum")}
	return w
}

// keepsData adds an allocation that a0 replaced, whose data has moved so far. a1 has ended too.
func (w *world) keepsData(s cluster.DataState) {
	k := w.allocs[0].Copy()
	k.ID, k.NextAllocation, k.DataOut = "k", "a0", &cluster.DataMove{State: s}
	w.allocs[0].PreviousAllocation, w.allocs[1].ClientStatus = "k", cluster.ClientFailed
	w.allocs = append(w.allocs, k)
}

// otherWork returns another version of the job, with other tasks.
func otherWork(j *cluster.Job) *cluster.Job {
	other := *j
	group := *j.TaskGroups[0]
	group.Tasks = []*cluster.Task{{Name: "other"}}
	other.TaskGroups = []*cluster.TaskGroup{&group}
	return &other
}

// store writes the rows.
func (w *world) store(t *testing.T) *statestore.Store {
	t.Helper()
	s := statestore.New()
	txn := s.Begin(1)
	txn.RaiseClusterVersion(cluster.MaxVersion)
	must.NoError(t, txn.UpsertNode(w.node, start()))
	if w.claims {
		w.addVolume(t, txn)
	}
	must.NoError(t, txn.UpsertJob(w.web))
	must.NoError(t, txn.UpsertJob(w.sum))
	_, err := txn.ApplyPlan(&cluster.Plan{At: w.at, Places: w.allocs})
	must.NoError(t, err)
	if w.drain != "" {
		_, err = txn.UpdateNodeDrain(cluster.DrainUpdate{Node: "n1", Drain: w.drain, Spec: &cluster.DrainSpec{}, At: start()})
		must.NoError(t, err)
	}
	if w.stop {
		must.NoError(t, txn.DeleteJob(w.sum.Key(), false))
	}
	must.NoError(t, txn.UpsertEvals(w.evals))
	txn.Commit()
	return s
}

// addVolume writes the volume, which the groups of both jobs use.
func (w *world) addVolume(t *testing.T, txn *statestore.Txn) {
	t.Helper()
	mode := cluster.VolumeCapability{Access: cluster.MultiNodeReader, Attachment: cluster.AttachFileSystem}
	must.NoError(t, txn.UpsertVolume(&cluster.Volume{
		Namespace: "default", ID: "data", Name: "data", ExternalID: "ext", Plugin: "disks", Capabilities: []cluster.VolumeCapability{mode},
	}, start()))
	for _, j := range []*cluster.Job{w.web, w.sum} {
		j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "data", Type: cluster.VolumeCSI, Source: "data", ReadOnly: true, Capability: mode}}
	}
}

// delete deletes rows in an entry that names them all, and returns the checks that fail.
func (w *world) delete(t *testing.T, rows collect.Rows) []invariant.Check {
	t.Helper()
	return w.entry(t, rows, func(txn *statestore.Txn) {
		txn.DeleteAllocs(rows.Allocs)
		txn.DeleteEvals(rows.Evals)
		for _, job := range rows.Jobs {
			must.NoError(t, txn.DeleteJob(job, true))
		}
	})
}

// entry makes an entry that names the rows, and returns the checks that fail.
func (w *world) entry(t *testing.T, rows collect.Rows, change func(*statestore.Txn)) []invariant.Check {
	t.Helper()
	s := w.store(t)
	before := s.Snapshot()
	txn := s.Begin(2)
	change(txn)
	txn.Commit()
	old := now().Add(-age)
	var j collected.Judge
	j.Applied(now(), shims.Applied{
		Index: 2, Before: before, After: s.Snapshot(), Response: shims.CollectApplied{Deleted: rows},
		Message: &shims.Collect{At: now(), Request: collect.Request{Rows: rows, Before: collect.Before{Allocs: old, Evals: old, Jobs: old}}},
	})
	return checks(t, &j)
}

func checks(t *testing.T, j *collected.Judge) (names []invariant.Check) {
	t.Helper()
	for _, v := range j.Violations() {
		c := invariant.Check(v.Guarantee + " " + v.Check)
		must.SliceContains(t, collected.Checks(), c)
		names = append(names, c)
	}
	return names
}

// Each way to delete too much is reported.
func TestJudge_Applied(t *testing.T) {
	t.Parallel()
	allocs := func(ids ...cluster.AllocID) collect.Rows { return collect.Rows{Allocs: ids} }
	evals := func(ids ...cluster.EvalID) collect.Rows { return collect.Rows{Evals: ids} }
	use, slot := collected.StillOfUse, collected.SlotChanged
	for name, c := range map[string]struct {
		edit func(*world)
		rows collect.Rows
		want []invariant.Check
	}{
		"a replaced allocation":    {nil, allocs("a0"), nil},
		"completed batch work":     {nil, allocs("b1"), []invariant.Check{use, slot}},
		"batch work of other work": {func(w *world) { w.allocs[2].Job = otherWork(w.sum) }, allocs("b1"), nil},
		"batch work of other work that a deadline stopped, and an open evaluation": {func(w *world) {
			b := w.allocs[2]
			b.Job, b.DesiredStatus, b.DesiredDescription = otherWork(w.sum), cluster.DesiredStop, cluster.DescMigrating
			b.DesiredTransition.MigrateDisablePlacement, w.evals[2].Status = true, cluster.EvalBlocked
		}, allocs("b1"), nil},
		"its replacement has not reported yet, and its data moves": {func(w *world) {
			w.web.TaskGroups[0].EphemeralDisk.Migrate, w.allocs[1].ClientStatus = true, cluster.ClientPending
		}, allocs("a0"), []invariant.Check{use}},
		"its replacement has not reported yet":                     {func(w *world) { w.allocs[1].ClientStatus = cluster.ClientPending }, allocs("a0"), nil},
		"data before it is kept, and its replacement has ended":    {func(w *world) { w.keepsData(cluster.DataKept) }, allocs("a0"), []invariant.Check{use}},
		"data before it was copied, and its replacement has ended": {func(w *world) { w.keepsData(cluster.DataCopied) }, allocs("a0"), nil},
		"one that claims a volume":                                 {func(w *world) { w.claims = true }, allocs("a0"), []invariant.Check{use}},
		"a young one":                                              {func(w *world) { w.at = now().Add(-age) }, allocs("a0"), []invariant.Check{collected.TooYoung}},
		"one of a running drain": {func(w *world) {
			w.drain = "d1"
			w.allocs[0].DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d1", Class: cluster.MarkPaced}
		}, allocs("a0"), []invariant.Check{use}},
		"one of an ended drain": {func(w *world) {
			w.allocs[0].DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d1", Class: cluster.MarkPaced}
		}, allocs("a0"), nil},
		"a canary of a drain": {func(w *world) {
			w.allocs[0].DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d1", Class: cluster.MarkCanary}
		}, allocs("a0"), []invariant.Check{use}},
		"a lost one that may return": {func(w *world) {
			w.node.Status, w.allocs[0].ClientStatus = cluster.NodeDown, cluster.ClientLost
		}, allocs("a0"), []invariant.Check{use}},
		"a failure in a row": {func(w *world) {
			w.allocs[0].DesiredDescription = cluster.DescRescheduled
		}, allocs("a0"), []invariant.Check{use, collected.CountChanged}},
		"one of a job with an open evaluation": {func(w *world) {
			w.allocs[0].NextAllocation, w.allocs[1].PreviousAllocation, w.evals[1].Status = "", "", cluster.EvalPending
		}, allocs("a0"), []invariant.Check{use}},
		"work of a job stopped lately": {func(w *world) {
			w.stop, w.evals[2].ModifyTime = true, now()
		}, allocs("b1"), []invariant.Check{collected.TooYoung}},
		"an older evaluation": {nil, evals("e0"), nil},
		"one that is named":   {nil, evals("e1"), []invariant.Check{use, use}},
		"the last of a job":   {func(w *world) { w.allocs[2].EvalID = "" }, evals("sum"), []invariant.Check{use}},
		"one that made a blocked": {func(w *world) {
			w.evals[0].BlockedEval, w.evals[1].Status = "e1", cluster.EvalBlocked
		}, evals("e0"), []invariant.Check{use}},
		"a young evaluation": {func(w *world) { w.evals[0].ModifyTime = now() }, evals("e0"), []invariant.Check{collected.TooYoung}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			if c.edit != nil {
				c.edit(w)
			}
			must.Eq(t, c.want, w.delete(t, c.rows))
		})
	}
}

// Only a stopped job without allocations may be deleted, together with its evaluation.
func TestJudge_job(t *testing.T) {
	t.Parallel()
	w := newWorld()
	sum := collect.Rows{Jobs: []cluster.JobKey{w.sum.Key()}}
	must.Nil(t, w.delete(t, sum)) // all of it has ended
	w.claims = true
	must.Eq(t, []invariant.Check{collected.StillOfUse}, w.delete(t, sum)) // its work claims a volume
	w.claims, w.allocs = false, w.allocs[:2]
	must.Eq(t, []invariant.Check{collected.StillOfUse}, w.delete(t, sum)) // it has not run
	w.sum.Stop = true
	must.Nil(t, w.delete(t, sum))
	w.evals[2].Status = cluster.EvalPending
	must.Eq(t, []invariant.Check{collected.StillOfUse}, w.delete(t, sum))
	w.evals[2].Status, w.evals[2].ModifyTime = cluster.EvalComplete, now()
	must.Eq(t, []invariant.Check{collected.TooYoung}, w.delete(t, sum))
}

// An entry changes nothing that it does not name, and its answer is true.
func TestJudge_outside(t *testing.T) {
	t.Parallel()
	a0 := collect.Rows{Allocs: []cluster.AllocID{"a0"}}
	outside, answer := collected.Outside, collected.WrongAnswer
	for name, c := range map[string]struct {
		change func(*statestore.Txn)
		want   []invariant.Check
	}{
		"nothing":       {func(*statestore.Txn) {}, []invariant.Check{answer}},
		"another row":   {func(txn *statestore.Txn) { txn.DeleteAllocs([]cluster.AllocID{"a0", "b1"}) }, []invariant.Check{outside}},
		"another table": {func(txn *statestore.Txn) { txn.DeleteAllocs(a0.Allocs); txn.DeleteEvals([]cluster.EvalID{"e0"}) }, []invariant.Check{outside}},
		"a changed node": {func(txn *statestore.Txn) {
			txn.DeleteAllocs(a0.Allocs)
			must.NoError(t, txn.UpdateNodeEligibility("n1", cluster.NodeIneligible, now()))
		}, []invariant.Check{outside}},
		"a new row": {func(txn *statestore.Txn) {
			txn.DeleteAllocs(a0.Allocs)
			must.NoError(t, txn.UpsertNode(&cluster.Node{ID: "n2", Name: "n2", Status: cluster.NodeReady}, now()))
		}, []invariant.Check{outside}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			must.Eq(t, c.want, newWorld().entry(t, a0, c.change))
		})
	}
}

// A row without a use is reported when the state has been still for long enough, and once.
func TestJudge_Still(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.store(t).Snapshot()
	var j collected.Judge
	j.Applied(start(), shims.Applied{Index: 1, Before: s, After: s})
	j.Still(start().Add(age), start().Add(age), age, s)
	j.Still(now(), start(), age, s) // the leader's clock has not reached the times of the rows
	must.SliceEmpty(t, j.Violations())
	j.Still(now(), now(), age, s)
	j.Still(now(), now(), age, s)
	kept := collected.Kept
	must.Eq(t, []invariant.Check{kept, kept, kept}, checks(t, &j)) // a0, the older evaluation of web, and sum
}

// A finished batch job is deleted with its work. A job that still runs, or whose work ended lately,
// stays.
func TestJudge_finishedBatch(t *testing.T) {
	t.Parallel()
	w := newWorld()
	sum := collect.Rows{Jobs: []cluster.JobKey{w.sum.Key()}}
	must.Nil(t, w.delete(t, sum))
	must.Eq(t, []invariant.Check{collected.StillOfUse}, w.delete(t, collect.Rows{Jobs: []cluster.JobKey{w.web.Key()}}))
	w.at = now()
	must.Eq(t, []invariant.Check{collected.TooYoung}, w.delete(t, sum))
	w.at, w.allocs[2].ClientStatus = start(), cluster.ClientRunning
	must.Eq(t, []invariant.Check{collected.StillOfUse}, w.delete(t, sum))
}
