package statestore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// reports applies reports of n1's client.
func (w *world) reports(reports ...cluster.AllocReport) {
	for i := range reports {
		if reports[i].Node == "" {
			reports[i].Node = "n1"
		}
	}
	w.write(func(x *statestore.Txn) { x.UpdateAllocsFromClient(reports, w.now) })
}

func TestAClientsReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 1))
	w.plan(&cluster.Plan{Places: []*cluster.Allocation{place(web, "a1", "n1")}})
	placed, node := w.snap().Alloc("a1"), w.snap().Node("n1")

	reported := w.now.Add(time.Minute)
	w.reports(cluster.AllocReport{Alloc: "a1", ClientStatus: cluster.ClientRunning, ClientDescription: "Tasks are running", At: reported})
	want := placed.Copy()
	want.ClientStatus, want.ClientDescription = cluster.ClientRunning, "Tasks are running"
	want.ModifyTime, want.ModifyIndex = reported.UTC(), w.index
	must.Eq(t, want, w.snap().Alloc("a1"))
	must.Eq(t, node, w.snap().Node("n1"), must.Sprint("a report does not change the node"))
	must.Eq(t, 1, w.snap().TableIndex(statestore.TableNodes))

	judged := reported.Add(time.Second)
	w.reports(cluster.AllocReport{
		Alloc: "a1", ClientStatus: cluster.ClientRunning, ClientDescription: "Tasks are running",
		Healthy: pointer(true), HealthyAt: judged, At: judged,
	})
	must.Eq(t, &cluster.DeploymentStatus{Healthy: pointer(true), Timestamp: judged.UTC(), ModifyIndex: w.index}, w.snap().Alloc("a1").DeploymentStatus)
}

// A client may send a description of any length. Servers below version 4 keep all of it, and a
// replay of their entries must give the same state.
func TestAClientsDescriptionIsCutFromVersionFourOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.plan(&cluster.Plan{Places: []*cluster.Allocation{place(w.job(serviceJob("web", 1)), "a1", "n1")}})
	long := strings.Repeat("x", 10*cluster.MaxTaskEventBytes)
	report := cluster.AllocReport{Alloc: "a1", ClientStatus: cluster.ClientRunning, ClientDescription: long}
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfDrivers - 1) })
	w.reports(report)
	must.Eq(t, long, w.snap().Alloc("a1").ClientDescription)

	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfDrivers) })
	w.reports(report)
	cut := w.snap().Alloc("a1")
	must.Eq(t, long[:cluster.MaxTaskEventBytes], cut.ClientDescription)
	w.reports(report)
	must.Eq(t, cut, w.snap().Alloc("a1"), must.Sprint("the same report again changes nothing"))
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 1))
	canary := func(a *cluster.Allocation) { a.DeploymentStatus = &cluster.DeploymentStatus{Canary: true} }
	w.place(web, "n1", canary, "a1")
	running := cluster.AllocReport{Alloc: "a1", ClientStatus: cluster.ClientRunning}
	judge := func(healthy bool, at int64) cluster.AllocReport {
		r := running
		r.Healthy, r.HealthyAt = &healthy, time.Unix(at, 0)
		return r
	}
	w.reports(judge(true, 10))
	first := w.snap().Alloc("a1").DeploymentStatus
	must.True(t, first.Canary, must.Sprint("a client cannot change this field"))
	must.True(t, *first.Healthy)

	w.reports(judge(true, 20))
	must.Eq(t, first, w.snap().Alloc("a1").DeploymentStatus, must.Sprint("the same verdict again"))
	w.reports(running)
	must.Eq(t, first, w.snap().Alloc("a1").DeploymentStatus, must.Sprint("a report cannot remove a verdict"))

	w.reports(judge(false, 30))
	must.Eq(t, &cluster.DeploymentStatus{
		Healthy: pointer(false), Timestamp: time.Unix(30, 0).UTC(), Canary: true, ModifyIndex: w.index,
	}, w.snap().Alloc("a1").DeploymentStatus)
	must.True(t, *first.Healthy, must.Sprint("a row already read must not change"))
}

// Servers below version 8 write no time of a verdict, and a replay of their entries must give the same
// state. From version 8 on it is the time of the entry, and not the time that the client reports.
func TestVerdictsHaveTheTimeOfTheirEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.place(w.job(serviceJob("web", 1)), "n1", nil, "a1")
	report := func(healthy bool) time.Time {
		w.now = w.now.Add(time.Minute)
		w.reports(cluster.AllocReport{Alloc: "a1", ClientStatus: cluster.ClientRunning, Healthy: &healthy, HealthyAt: time.Unix(9, 0), At: time.Unix(9, 0)})
		return w.snap().Alloc("a1").DeploymentStatus.UnhealthySince
	}
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfConfirmation - 1) })
	report(true)
	must.Eq(t, time.Time{}, report(false))

	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfConfirmation) })
	must.Eq(t, time.Time{}, report(false), must.Sprint("the verdict is from before the version"))
	must.Eq(t, time.Time{}, report(true))
	since := report(false)
	must.Eq(t, w.now.UTC(), since)
	must.Eq(t, since, report(false))
	w.report(cluster.ClientFailed, "a1")
	must.Eq(t, since, w.snap().Alloc("a1").DeploymentStatus.UnhealthySince)
}

// Below version 9 the rows have no time of the end, and a replay must give the same state. From version 9 on it
// is the time of the entry, for an allocation that the servers let run.
func TestEndsHaveTheTimeOfTheirEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	w.place(w.job(serviceJob("web", 9)), "n1", nil, "old", "failed", "complete", "stopped", "running")
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfRescheduling - 1) })
	w.report(cluster.ClientFailed, "old")
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfRescheduling) })
	w.plan(&cluster.Plan{Stops: []cluster.PlanStop{{Alloc: "stopped"}}})
	w.now = w.now.Add(time.Minute)
	w.reports(
		cluster.AllocReport{Alloc: "failed", ClientStatus: cluster.ClientFailed, At: time.Unix(9, 0)},
		cluster.AllocReport{Alloc: "complete", ClientStatus: cluster.ClientComplete},
		cluster.AllocReport{Alloc: "stopped", ClientStatus: cluster.ClientComplete},
		cluster.AllocReport{Alloc: "running", ClientStatus: cluster.ClientRunning},
	)
	end := w.now.UTC()
	w.now = w.now.Add(time.Minute)
	w.reports(cluster.AllocReport{Alloc: "failed", ClientStatus: cluster.ClientFailed, ClientDescription: "again", At: time.Unix(9, 0)})
	for id, want := range map[cluster.AllocID]time.Time{"old": {}, "failed": end, "complete": end, "stopped": {}, "running": {}} {
		must.Eq(t, want, w.snap().Alloc(id).EndedAt, must.Sprint(id))
	}
}

func TestReportsThatChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 9))
	w.place(web, "n1", nil, "complete", "failed", "lost", "running")
	w.plan(&cluster.Plan{Stops: []cluster.PlanStop{{Alloc: "lost", Lost: true}}})
	w.report(cluster.ClientComplete, "complete")
	w.report(cluster.ClientFailed, "failed")
	before := w.snap()
	for name, r := range map[string]cluster.AllocReport{
		"unknown allocation":     {Alloc: "nope", ClientStatus: cluster.ClientRunning},
		"another node's":         {Alloc: "running", Node: "n2", ClientStatus: cluster.ClientFailed},
		"no status":              {Alloc: "running"},
		"only servers set lost":  {Alloc: "running", ClientStatus: cluster.ClientLost},
		"or unknown":             {Alloc: "running", ClientStatus: cluster.ClientUnknown},
		"nothing new":            {Alloc: "running", ClientStatus: cluster.ClientRunning, At: w.now},
		"complete does not run":  {Alloc: "complete", ClientStatus: cluster.ClientRunning},
		"failed does not run":    {Alloc: "failed", ClientStatus: cluster.ClientPending},
		"lost does not return":   {Alloc: "lost", ClientStatus: cluster.ClientRunning, Healthy: pointer(false)},
		"complete stays so":      {Alloc: "complete", ClientStatus: cluster.ClientFailed},
		"failed stays so":        {Alloc: "failed", ClientStatus: cluster.ClientComplete, ClientDescription: "fine after all"},
		"failed gets no verdict": {Alloc: "failed", ClientStatus: cluster.ClientFailed, Healthy: pointer(false)},
	} {
		w.reports(r)
		must.Eq(t, before.TableIndex(statestore.TableAllocs), w.snap().TableIndex(statestore.TableAllocs), must.Sprint(name))
	}
	w.reports(
		cluster.AllocReport{Alloc: "nope", ClientStatus: cluster.ClientComplete},
		cluster.AllocReport{Alloc: "lost", ClientStatus: cluster.ClientComplete},
		cluster.AllocReport{Alloc: "running", ClientStatus: cluster.ClientPending},
		cluster.AllocReport{Alloc: "running", ClientStatus: cluster.ClientFailed},
	)
	must.Eq(t, cluster.ClientComplete, w.snap().Alloc("lost").ClientStatus, must.Sprint("the client reports how it ended"))
	must.Eq(t, cluster.ClientFailed, w.snap().Alloc("running").ClientStatus, must.Sprint("the last report of a batch wins"))
	must.Eq(t, 0, w.snap().Usage("n1").Live)
}

func TestAReconnectedAllocationKeepsRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 1))
	w.place(web, "n1", nil, "a1")
	w.plan(&cluster.Plan{Stops: []cluster.PlanStop{{Alloc: "a1", Unknown: true}}})
	must.Eq(t, cluster.ClientUnknown, w.snap().Alloc("a1").ClientStatus)
	must.Eq(t, 1, w.snap().Usage("n1").Live)
	w.report(cluster.ClientRunning, "a1")
	must.Eq(t, cluster.ClientRunning, w.snap().Alloc("a1").ClientStatus)
}

// The lists of a node with an allocation of every kind.
func TestAllocsByNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1", "n2")
	web, sys, disk := w.job(serviceJob("web", 9)), w.job(job("sys", cluster.JobSystem, 1)), w.job(pluginJob("disk", cluster.JobService))
	w.place(web, "n1", nil, "w3", "w1", "w2", "w4")
	w.place(web, "n2", nil, "elsewhere")
	w.place(sys, "n1", nil, "s1")
	w.place(disk, "n1", nil, "p1")
	w.place(web, "n1", func(a *cluster.Allocation) { a.Job, a.JobID = nil, "web" }, "jobless")
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.mark(cluster.MarkPaced, "w2")
	w.stop("w3")
	w.report(cluster.ClientComplete, "w4")

	s := w.snap()
	must.Eq(t, []cluster.AllocID{"jobless", "w1"}, allocIDs(s.DrainView().NodeAllocs("n1", cluster.StageConsumers, false)))
	must.Eq(t, []cluster.AllocID{"w2", "w3"}, allocIDs(s.DrainView().NodeAllocs("n1", cluster.StageConsumers, true)))
	must.Eq(t, []cluster.AllocID{"s1"}, allocIDs(s.DrainView().NodeAllocs("n1", cluster.StageSystem, false)))
	must.Eq(t, []cluster.AllocID{"p1"}, allocIDs(s.DrainView().NodeAllocs("n1", cluster.StagePlugins, false)))
	must.SliceEmpty(t, allocIDs(s.DrainView().NodeAllocs("n1", cluster.StagePlugins, true)))
	must.Eq(t, []cluster.AllocID{"jobless", "w1", "w2", "w3", "s1", "p1", "w4"}, allocIDs(s.AllocsByNode("n1")))
	must.Eq(t, []cluster.AllocID{"jobless", "w1", "w2", "w3", "s1", "p1"}, allocIDs(s.WorkView().LiveAllocsByNode("n1")))
	must.Eq(t, 4, s.DrainView().Consumers("n1"))
	must.Eq(t, 6, s.Usage("n1").Live)
	must.Eq(t, cluster.Resources{CPU: 600, MemoryMB: 384}, s.Usage("n1").Resources)
	must.SliceEmpty(t, allocIDs(s.AllocsByNode("n")))
	must.Eq(t, cluster.Usage{}, s.Usage("n"))
}

func TestAccountsOfGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 9))
	group := cluster.GroupKey{Job: web.Key(), Name: "g"}
	canary := func(a *cluster.Allocation) { a.DeploymentStatus.Canary = true }
	w.place(web, "n1", nil, "a1", "a2")
	w.place(web, "n1", canary, "c1", "c2", "c3", "c4")
	w.place(web, "n1", func(a *cluster.Allocation) { a.TaskGroup = "other" }, "o1")
	w.drain("n1", "d1", cluster.DrainSpec{})
	w.mark(cluster.MarkPaced, "a1")
	w.mark(cluster.MarkCanary, "c1", "c2", "c3")
	w.plan(&cluster.Plan{
		Stops:  []cluster.PlanStop{{Alloc: "c1"}, {Alloc: "c2"}, {Alloc: "c3"}, {Alloc: "c4"}},
		Places: []*cluster.Allocation{replacement(web, "c5", "n1", "c2")},
	})
	w.report(cluster.ClientComplete, "a1", "c1", "c2", "c4")
	must.Eq(t, []cluster.AllocID{"a2", "c1", "c3", "c5"}, allocIDs(w.snap().DrainView().GroupAllocs(group)),
		must.Sprint("a1 ended, c2 has a replacement, c4 was never marked; c1 waits for a replacement"))
	must.Eq(t, []cluster.AllocID{"a2", "c1", "c3", "c5", "a1", "o1", "c2", "c4"}, allocIDs(w.snap().AllocsByJob(web.Key())))

	w.plan(&cluster.Plan{Places: []*cluster.Allocation{replacement(web, "c6", "n1", "c1")}})
	must.Eq(t, []cluster.AllocID{"a2", "c3", "c5", "c6"}, allocIDs(w.snap().DrainView().GroupAllocs(group)))
}

func replacement(j *cluster.Job, id string, n cluster.NodeID, previous cluster.AllocID) *cluster.Allocation {
	a := place(j, id, n)
	a.PreviousAllocation = previous
	return a
}

// An allocation may refer to rows that do not exist. The totals of the others are right.
func TestAnAllocationOfMissingRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 9))
	w.place(web, "", nil, "nowhere")
	w.place(web, "no such node", nil, "elsewhere")
	w.place(web, "n1", func(a *cluster.Allocation) { a.TaskGroup, a.PreviousAllocation = "no such group", "no such allocation" }, "groupless")
	w.store.InsertRow(&cluster.Allocation{ID: "orphan", NodeID: "n1"})

	recount(t, w.snap())
	must.Eq(t, 2, w.snap().Usage("n1").Live)
	must.Eq(t, []cluster.AllocID{"nowhere"}, allocIDs(w.snap().DrainView().NodeAllocs("", cluster.StageConsumers, false)))
	w.report(cluster.ClientFailed, "nowhere", "elsewhere", "groupless", "orphan")
	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(cluster.JobKey{}, true)) })
	w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(web.Key(), true)) })
	must.SliceEmpty(t, allocIDs(w.snap().Allocs()))
	recount(t, w.snap())
}
