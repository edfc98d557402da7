package statestore_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func TestVersionsOfAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := serviceJob("web", 3)
	first := w.job(web)
	must.Eq(t, 0, first.Version)
	must.Eq(t, 1, first.CreateIndex)

	web.TaskGroups[0].Count = 7
	must.Eq(t, 3, first.TaskGroups[0].Count, must.Sprint("the store has its own copy"))
	second := w.job(web)
	must.Eq(t, 1, second.Version)
	must.Eq(t, 1, second.CreateIndex)
	must.Eq(t, 2, second.ModifyIndex)
	must.Eq(t, 2, second.JobModifyIndex)

	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(web.Key(), false)) })
	stopped := w.snap().Job(web.Key())
	must.True(t, stopped.Stop)
	must.Eq(t, 1, stopped.Version, must.Sprint("a stop does not change the version"))
	must.Eq(t, 2, stopped.JobModifyIndex)
	must.Eq(t, 3, stopped.ModifyIndex)
}

func TestEqualJobIDsInTwoNamespacesAreTwoJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	here, there := serviceJob("web", 1), serviceJob("web", 1)
	there.Namespace = "other"
	w.job(here)
	w.job(there)
	w.place(here, "n1", nil, "a1")
	w.place(there, "n1", nil, "a2")
	must.Eq(t, []cluster.AllocID{"a1"}, allocIDs(w.snap().AllocsByJob(here.Key())))
	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(here.Key(), true)) })
	must.Eq(t, []cluster.AllocID{"a2"}, allocIDs(w.snap().Allocs()))
}

func TestBadJobsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hollow := serviceJob("hollow", 1)
	hollow.TaskGroups[0].Tasks = append(hollow.TaskGroups[0].Tasks, nil)
	for _, j := range []*cluster.Job{nil, {}, {ID: "web", TaskGroups: []*cluster.TaskGroup{nil}}, hollow} {
		w.write(func(x *statestore.Txn) { must.Error(t, x.UpsertJob(j)) })
	}
	must.Eq(t, 0, w.snap().TableIndex(statestore.TableJobs))
	w.write(func(x *statestore.Txn) {
		missing := cluster.JobKey{Namespace: "default", ID: "nope"}
		must.ErrorIs(t, x.DeleteJob(missing, false), statestore.ErrJobNotFound)
		must.ErrorIs(t, x.DeleteJob(missing, true), statestore.ErrJobNotFound)
	})
}

func TestAPurgeDeletesAllocationsAndEvaluations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2")
	web, db := w.job(serviceJob("web", 5)), w.job(serviceJob("db", 1))
	w.place(web, "n1", nil, "ended", "running", "stopping")
	w.place(web, "n2", nil, "elsewhere")
	w.place(db, "n1", nil, "other job")
	w.write(func(x *statestore.Txn) {
		must.NoError(t, x.UpsertEvals([]*cluster.Evaluation{
			{ID: "open", Namespace: "default", JobID: "web", Status: cluster.EvalPending},
			{ID: "done", Namespace: "default", JobID: "web", Status: cluster.EvalComplete},
			{ID: "other", Namespace: "default", JobID: "db", Status: cluster.EvalPending},
		}))
	})
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.mark(cluster.MarkPaced, "stopping")
	w.stop("stopping")
	w.report(cluster.ClientComplete, "ended")

	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(web.Key(), true)) })
	must.Nil(t, w.snap().Job(web.Key()))
	must.Eq(t, []cluster.AllocID{"other job"}, allocIDs(w.snap().Allocs()))
	must.Eq(t, []cluster.EvalID{"other"}, evalIDs(w.snap().Evals()))
	must.Eq(t, 1, w.snap().Usage("n1").Live)
	must.Eq(t, 0, w.snap().Usage("n2").Live)
	must.Eq(t, 2, w.snap().Node("n1").Drain.PurgedRunning)
	must.Eq(t, 2, w.snap().Node("n2").CreateIndex)
	must.Eq(t, 2, w.snap().Node("n2").ModifyIndex, must.Sprint("it does not drain"))
	for _, table := range []string{statestore.TableJobs, statestore.TableAllocs, statestore.TableEvals, statestore.TableNodes} {
		must.Eq(t, w.index, w.snap().TableIndex(table))
	}

	w.complete("n1", cluster.OutcomeComplete, 0)
	must.Eq(t, 2, w.snap().DrainRecord("d1").PurgedRunning)
}

func TestAPurgeOfEndedAllocationsDoesNotWriteNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 1))
	w.place(web, "n1", nil, "a1")
	w.report(cluster.ClientFailed, "a1")
	w.drain("n1", "d1", cluster.DrainSpec{})
	before := w.snap().Node("n1")
	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(web.Key(), true)) })
	must.Eq(t, before, w.snap().Node("n1"))
}
