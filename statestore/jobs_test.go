package statestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
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

// Bug: a request to scale a job that was decided before a stop started the job again.
func TestJob_changeDecidedBeforeAStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfStopIndex) })
	before := w.job(serviceJob("web", 3))
	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(before.Key(), false)) })
	must.ErrorIs(t, w.snap().Job(before.Key()).CheckModifyIndex(before.JobModifyIndex), cluster.ErrModifyIndex)
}

// A version with other services goes to the allocations whose tasks run on, and to no others.
func TestAVersionGivesServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := serviceJob("web", 3)
	first := w.job(web)
	w.place(first, "n1", nil, "a1", "a2")
	w.plan(&cluster.Plan{Stops: []cluster.PlanStop{{Alloc: "a2", Description: cluster.DescNotNeeded}}})
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfServices - 1) })
	web.TaskGroups[0].Services = []cluster.Service{{Name: "older"}}
	w.job(web)
	must.Eq(t, 0, w.snap().Alloc("a1").Job.Version, must.Sprint("below the version of services"))
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfServices) })
	web.TaskGroups[0].Services = []cluster.Service{{Name: "front"}}
	w.job(web)
	row := w.snap().Alloc("a1")
	must.Eq(t, 2, row.Job.Version)
	must.Eq(t, row.Job.JobModifyIndex, row.AllocModifyIndex, must.Sprint("its client reads it"))
	must.Eq(t, row.AllocModifyIndex, row.ModifyIndex)
	must.Eq(t, 0, w.snap().Alloc("a2").Job.Version)

	web.TaskGroups[0].Count = 4
	w.job(web)
	must.Eq(t, 2, w.snap().Alloc("a1").Job.Version, must.Sprint("the services are the same"))
	web.TaskGroups[0].Services[0].Name, web.TaskGroups[0].ShutdownDelay = "back", time.Minute
	w.job(web)
	must.Eq(t, 2, w.snap().Alloc("a1").Job.Version, must.Sprint("its tasks cannot run on"))
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

// Below the version of confirmation a purge deletes all rows, and drains count those that ran.
func TestAPurgeDeletesAllocationsAndEvaluations(t *testing.T) {
	t.Parallel()
	w := purgeWorld(t, cluster.VersionOfConfirmation-1)
	w.write(func(x *statestore.Txn) {
		must.NoError(t, statestore.PurgeJob(x, serviceJob("web", 5).Key(), time.Time{}))
	})
	must.Nil(t, w.snap().Job(serviceJob("web", 5).Key()))
	must.Eq(t, []cluster.AllocID{"other job"}, allocIDs(w.snap().Allocs()))
	must.Eq(t, []cluster.EvalID{"other"}, evalIDs(w.snap().Evals()))
	must.Eq(t, 1, w.snap().Usage("n1").Live)
	must.Eq(t, 0, w.snap().Usage("n2").Live)
	must.Eq(t, 2, w.snap().Node("n1").Drain.PurgedRunning)
	must.Eq(t, 3, w.snap().Node("n2").CreateIndex)
	must.Eq(t, 3, w.snap().Node("n2").ModifyIndex, must.Sprint("it does not drain"))
	for _, table := range []string{statestore.TableJobs, statestore.TableAllocs, statestore.TableEvals, statestore.TableNodes} {
		must.Eq(t, w.index, w.snap().TableIndex(table))
	}

	w.complete("n1", cluster.OutcomeComplete, 0)
	must.Eq(t, 2, w.snap().DrainRecord("d1").PurgedRunning)
}

// purgeWorld has a job web with allocations of every state: ended, running, stopping, lost, elsewhere.
// The node n1 drains.
func purgeWorld(t *testing.T, v cluster.Version) *world {
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(v) })
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
	return w
}

// Bug: a purge deleted the rows of allocations that ran. A drain of their node after the purge was
// complete at once, while the tasks ran.
func TestAPurgeStopsWhatRuns(t *testing.T) {
	t.Parallel()
	w := purgeWorld(t, cluster.VersionOfConfirmation)
	web := serviceJob("web", 5).Key()
	stopping := w.snap().Alloc("stopping")
	at := w.now.Add(time.Minute)
	purge := func(at time.Time) {
		w.write(func(x *statestore.Txn) { must.NoError(t, statestore.PurgeJob(x, web, at)) })
	}
	purge(at)
	must.Nil(t, w.snap().Job(web))
	must.Eq(t, []cluster.EvalID{"other"}, evalIDs(w.snap().Evals()))
	must.Eq(t, []cluster.AllocID{"elsewhere", "running", "stopping"}, allocIDs(w.snap().AllocsByJob(web)))
	for _, id := range []cluster.AllocID{"elsewhere", "running"} {
		a := w.snap().Alloc(id)
		must.Eq(t, cluster.DesiredStop, a.DesiredStatus)
		must.Eq(t, cluster.DescPurged, a.DesiredDescription)
		must.Eq(t, at.UTC(), a.StoppedAt)
		must.Eq(t, at.UTC(), a.ModifyTime)
		must.Eq(t, w.index, a.AllocModifyIndex, must.Sprint("its client must read it"))
		must.Eq(t, web.ID, a.Job.ID)
	}
	must.Eq(t, stopping, w.snap().Alloc("stopping"), must.Sprint("it stops already"))
	must.Zero(t, w.snap().Node("n1").Drain.PurgedRunning)
	must.Zero(t, w.snap().RemovedAt(), must.Sprint("no client misses a row"))
	must.Eq(t, 3, rules.CountLeft(w.snap().DrainView(), w.snap().Node("n1")))

	w.report(cluster.ClientComplete, "running", "stopping")
	must.Eq(t, 1, rules.CountLeft(w.snap().DrainView(), w.snap().Node("n1")), must.Sprint("of another job"))
	purge(at) // again: the ended ones go
	must.Eq(t, []cluster.AllocID{"elsewhere"}, allocIDs(w.snap().AllocsByJob(web)))
	must.Zero(t, w.job(serviceJob("web", 5)).Version, must.Sprint("the id is free"))
}

// A proposer that has read an older cluster version sends no time.
func TestAPurgeWithoutATime(t *testing.T) {
	t.Parallel()
	w := purgeWorld(t, cluster.VersionOfConfirmation)
	before := w.snap().Alloc("running").ModifyTime
	w.write(func(x *statestore.Txn) {
		must.NoError(t, statestore.PurgeJob(x, serviceJob("web", 5).Key(), time.Time{}))
	})
	must.Eq(t, before, w.snap().Alloc("running").StoppedAt)
	must.Eq(t, before, w.snap().Alloc("running").ModifyTime)
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

// A purge of a job with thousands of allocations is one entry.
func TestAPurgeOfALargeJob(t *testing.T) {
	t.Parallel()
	const count = 5000
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfConfirmation) })
	w.nodes("n1")
	web := w.job(serviceJob("web", count))
	names, ids := make([]string, count), make([]cluster.AllocID, count)
	for i := range ids {
		names[i] = fmt.Sprintf("a%04d", i)
		ids[i] = cluster.AllocID(names[i])
	}
	w.place(web, "n1", nil, names...)
	w.report(cluster.ClientComplete, ids[:count/2]...)
	w.write(func(x *statestore.Txn) { must.NoError(t, statestore.PurgeJob(x, web.Key(), w.now)) })
	must.Eq(t, ids[count/2:], allocIDs(w.snap().AllocsByJob(web.Key())))
	must.Eq(t, count/2, w.snap().Usage("n1").Live)
	w.report(cluster.ClientComplete, ids[count/2:]...)
	must.Eq(t, 0, w.snap().Usage("n1").Live)
}
