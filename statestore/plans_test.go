package statestore_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func TestAMigration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2")
	web := w.job(serviceJob("web", 1))
	w.place(web, "n1", nil, "old")
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.mark(cluster.MarkPaced, "old")
	marked := w.snap().Alloc("old")
	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.UpsertEvals([]*cluster.Evaluation{
			{ID: "e1", Namespace: "default", JobID: "web", Status: cluster.EvalPending},
			{ID: "e2", Namespace: "default", JobID: "web", Status: cluster.EvalPending},
		}))
	})
	created := w.index

	w.plan(&cluster.Plan{
		Eval:    &cluster.Evaluation{ID: "e1", Namespace: "default", JobID: "web", Status: cluster.EvalComplete, BlockedEval: "e3"},
		Stops:   []cluster.PlanStop{{Alloc: "old", Description: cluster.DescMigrating, Migrate: true}},
		Places:  []*cluster.Allocation{replacement(web, "new", "n2", "old")},
		Blocked: &cluster.Evaluation{ID: "e3", Namespace: "default", JobID: "web", Status: cluster.EvalBlocked},
		Answers: []*cluster.Evaluation{{ID: "e2", Namespace: "default", JobID: "web", Status: cluster.EvalCancelled}},
	})
	at := w.now.UTC()
	want := marked.Copy()
	want.DesiredStatus, want.DesiredDescription, want.StoppedAt = cluster.DesiredStop, "alloc is being migrated", at
	want.NextAllocation = "new"
	want.ModifyTime, want.ModifyIndex, want.AllocModifyIndex = at, w.index, w.index
	must.Eq(t, want, w.snap().Alloc("old"))

	placed := w.snap().Alloc("new")
	must.Eq(t, cluster.DesiredRun, placed.DesiredStatus)
	must.Eq(t, cluster.ClientPending, placed.ClientStatus)
	must.Eq(t, at, placed.CreateTime)
	must.Eq(t, [3]uint64{w.index, w.index, w.index}, [3]uint64{placed.CreateIndex, placed.ModifyIndex, placed.AllocModifyIndex})
	must.True(t, placed.Job == w.snap().Job(web.Key()), must.Sprint("the version is shared"))

	must.Eq(t, cluster.EvalComplete, w.snap().Eval("e1").Status)
	must.Eq(t, created, w.snap().Eval("e1").CreateIndex)
	must.Eq(t, cluster.EvalCancelled, w.snap().Eval("e2").Status)
	must.Eq(t, []cluster.EvalID{"e3"}, evalIDs(w.snap().WorkView().BlockedEvals()))
	must.SliceEmpty(t, evalIDs(w.snap().WorkView().PendingEvals()))
}

func TestLinkingAReplacementDoesNotConcernTheClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 1))
	w.place(web, "n1", nil, "old")
	w.report(cluster.ClientFailed, "old")
	before := w.snap().Alloc("old")
	w.plan(&cluster.Plan{Places: []*cluster.Allocation{replacement(web, "new", "n1", "old"), replacement(web, "newer", "n1", "new")}})
	old := w.snap().Alloc("old")
	must.Eq(t, "new", old.NextAllocation)
	must.Eq(t, w.index, old.ModifyIndex)
	must.Eq(t, before.AllocModifyIndex, old.AllocModifyIndex)
	must.Eq(t, "newer", w.snap().Alloc("new").NextAllocation)
}

func TestStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 9))
	w.place(web, "n1", nil, "complete", "lost", "lost while stopping", "stopped", "stopped twice", "unknown")
	w.stop("lost while stopping", "stopped twice")
	stoppedAt := w.now.UTC()
	w.report(cluster.ClientComplete, "complete")
	twice := w.snap().Alloc("stopped twice")

	w.plan(&cluster.Plan{Stops: []cluster.PlanStop{
		{Alloc: "complete", Lost: true, Description: "x"},
		{Alloc: "lost", Lost: true, Description: cluster.DescLost},
		{Alloc: "lost while stopping", Lost: true, Description: cluster.DescLost},
		{Alloc: "nope"},
		{Alloc: "stopped", Description: cluster.DescNotNeeded},
		{Alloc: "stopped twice", Description: "x"},
		{Alloc: "unknown", Unknown: true, Description: cluster.DescUnknown},
	}})
	type outcome struct {
		desired cluster.DesiredStatus
		client  cluster.ClientStatus
		why     string
	}
	for id, want := range map[cluster.AllocID]outcome{
		"complete":            {cluster.DesiredStop, cluster.ClientComplete, "x"},
		"lost":                {cluster.DesiredStop, cluster.ClientLost, cluster.DescLost},
		"lost while stopping": {cluster.DesiredStop, cluster.ClientLost, cluster.DescLost},
		"stopped":             {cluster.DesiredStop, cluster.ClientRunning, cluster.DescNotNeeded},
		"stopped twice":       {cluster.DesiredStop, cluster.ClientRunning, cluster.DescMigrating},
		"unknown":             {cluster.DesiredRun, cluster.ClientUnknown, ""},
	} {
		a := w.snap().Alloc(id)
		must.Eq(t, want, outcome{a.DesiredStatus, a.ClientStatus, a.DesiredDescription}, must.Sprint(id))
	}
	must.Eq(t, w.now.UTC(), w.snap().Alloc("lost").StoppedAt)
	must.Eq(t, stoppedAt, w.snap().Alloc("lost while stopping").StoppedAt)
	must.Eq(t, twice, w.snap().Alloc("stopped twice"))
	must.Eq(t, cluster.DescUnknown, w.snap().Alloc("unknown").ClientDescription)
	must.True(t, w.snap().Alloc("unknown").StoppedAt.IsZero())

	unknown := w.snap().Alloc("unknown")
	w.plan(&cluster.Plan{Stops: []cluster.PlanStop{{Alloc: "unknown", Unknown: true}, {Alloc: "lost", Unknown: true}}})
	must.Eq(t, unknown, w.snap().Alloc("unknown"))
	must.Eq(t, cluster.ClientLost, w.snap().Alloc("lost").ClientStatus)
}

func TestDroppedPlacements(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web, stopped, purged := w.job(serviceJob("web", 9)), w.job(serviceJob("stopped", 9)), w.job(serviceJob("purged", 9))
	w.place(web, "n1", nil, "taken")
	w.place(purged, "n1", nil, "x")
	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.DeleteJob(stopped.Key(), false))
		must.NoError(t, x.DeleteJob(purged.Key(), true))
	})
	w.write(func(x *statestore.Txn) {
		dropped, err := x.ApplyPlan(&cluster.Plan{
			At:      w.now,
			Eval:    &cluster.Evaluation{ID: "e1", Namespace: "default", JobID: "purged"},
			Blocked: &cluster.Evaluation{ID: "e2", Namespace: "default", JobID: "purged", Status: cluster.EvalBlocked},
			Places: []*cluster.Allocation{
				place(web, "good", "n1"), place(stopped, "a", "n1"), place(purged, "b", "n1"), nil,
				place(web, "", "n1"), place(web, "taken", "n1"), place(web, "good", "n2"),
			},
		})
		must.NoError(t, err)
		must.Eq(t, []cluster.AllocID{"a", "b", "", "", "taken", "good"}, dropped)
	})
	must.Eq(t, []cluster.AllocID{"good", "taken"}, allocIDs(w.snap().Allocs()))
	must.Eq(t, "n1", w.snap().Alloc("good").NodeID)
	must.SliceEmpty(t, evalIDs(w.snap().Evals()), must.Sprint("no plan would answer them"))
}

func TestAMissingPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.job(serviceJob("web", 1))
	w.write(func(x *statestore.Txn) {
		_, err := x.ApplyPlan(nil)
		must.Error(t, err)
		_, err = x.ApplyPlan(&cluster.Plan{Eval: &cluster.Evaluation{Namespace: web.Namespace, JobID: web.ID}})
		must.Error(t, err)
	})
}

// Raft entries carry their own copies of jobs. The state holds each version once for all its
// allocations.
func TestAllocationsShareTheVersionOfTheirJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	first := w.job(serviceJob("web", 9))
	w.place(first, "n1", func(a *cluster.Allocation) { a.Job = first.Copy() }, "a1", "a2")
	must.True(t, w.snap().Alloc("a1").Job == first)

	second := w.job(serviceJob("web", 5))
	old := replacement(first, "a3", "n1", "a1")
	old.Job = first.Copy()
	w.plan(&cluster.Plan{Places: []*cluster.Allocation{old}})
	must.True(t, w.snap().Alloc("a3").Job == first, must.Sprint("the version of its previous allocation"))
	w.place(second, "n1", nil, "a4")
	must.True(t, w.snap().Alloc("a4").Job == second)

	w.place(first, "n1", func(a *cluster.Allocation) { a.Job = first.Copy() }, "a5", "a6")
	must.True(t, w.snap().Alloc("a5").Job == w.snap().Alloc("a6").Job, must.Sprint("shared within one plan"))
	must.True(t, w.snap().Alloc("a5").Job != second)
}

// Placed and restored allocations share the strings of their job's and group's names, not the
// copies of their entry or row. Restored allocations also share their node's id.
func TestAllocationsShareTheirNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 1))
	a := replacement(web, "a", "n1", "")
	a.Job = nil // the current version
	a.Namespace = cluster.Namespace(strings.Clone(string(a.Namespace)))
	a.JobID, a.TaskGroup = cluster.JobID(strings.Clone(string(a.JobID))), strings.Clone(a.TaskGroup)
	w.plan(&cluster.Plan{Places: []*cluster.Allocation{a}})
	mustShareNames(t, w.snap())

	again := restored(t, w.snap()).Snapshot()
	mustShareNames(t, again)
	must.True(t, oneCopy(string(again.Alloc("a").NodeID), string(again.Node("n1").ID)))
}

func mustShareNames(t *testing.T, s *statestore.Snapshot) {
	t.Helper()
	a := s.Alloc("a")
	must.True(t, oneCopy(string(a.Namespace), string(a.Job.Namespace)))
	must.True(t, oneCopy(string(a.JobID), string(a.Job.ID)))
	must.True(t, oneCopy(a.TaskGroup, a.Job.TaskGroups[0].Name))
}

// oneCopy reports whether two strings are equal and share their memory.
func oneCopy(a, b string) bool { return a == b && unsafe.StringData(a) == unsafe.StringData(b) }
