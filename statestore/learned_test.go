package statestore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/learned"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// webGroup is the group of serviceJob("web", 1).
var webGroup = cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: "web"}, Name: "g"}

// learning is a world in which the job web has an allocation on n1 that is placed, and has not started.
func learning(t must.T, v cluster.Version) *world {
	w := newWorld(t)
	w.write(func(txn *statestore.Txn) { txn.RaiseClusterVersion(v) })
	w.nodes("n1", "n2")
	w.job(serviceJob("web", 1))
	placePending(w, "n1", "a")
	return w
}

// placePending places an allocation of web that has not started.
func placePending(w *world, n cluster.NodeID, id string) {
	w.place(w.snap().Job(webGroup.Job), n, func(a *cluster.Allocation) {
		a.ClientStatus, a.DeploymentStatus = cluster.ClientPending, nil
	}, id)
}

// after lets the next entry be a time after the last one.
func (w *world) after(d time.Duration) *world {
	w.now = w.now.Add(d - time.Second)
	return w
}

// goesAway applies a plan for an allocation whose node is away.
func goesAway(w *world, id cluster.AllocID) {
	w.plan(&cluster.Plan{Stops: []cluster.PlanStop{{Alloc: id, Unknown: true}}})
}

// counted has counted a time, or none if it is zero.
func counted(d time.Duration) (h learned.Histogram) {
	if d > 0 {
		h.Add(d)
	}
	return h
}

// What a group learns from the story of one allocation. Each case has what counts, and leaves out what does not.
func TestLearnedTimes(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, test := range map[string]struct {
		story                func(w *world)
		start, verdict, stop time.Duration // zero does not count
	}{
		"a good life with a drain": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientRunning, false, "a")
			w.after(30*second).reportNow(cluster.ClientRunning, true, "a")
			w.drain("n1", "d1", cluster.DrainSpec{})
			w.mark(cluster.MarkPaced, "a")
			w.after(20 * second).stop("a")
			w.after(40*second).reportNow(cluster.ClientComplete, false, "a")
		}, 10 * second, 30 * second, 60 * second},
		"a stop without a mark": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientRunning, false, "a")
			w.stop("a")
			w.after(40*second).reportNow(cluster.ClientFailed, false, "a")
		}, 10 * second, 0, 40 * second},
		"a stop by an operator": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientRunning, false, "a")
			w.write(func(txn *statestore.Txn) { must.NoError(w.t, txn.MigrateAlloc("a", w.now)) })
			w.after(20 * second).stop("a")
			w.after(40*second).reportNow(cluster.ClientComplete, false, "a")
		}, 10 * second, 0, 40 * second},
		"a mark that was withdrawn": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientRunning, false, "a")
			w.drain("n1", "d1", cluster.DrainSpec{})
			w.mark(cluster.MarkFree, "a")
			w.request(cluster.DrainUpdate{Node: "n1"})
			w.after(time.Hour).stop("a")
			w.after(40*second).reportNow(cluster.ClientComplete, false, "a")
		}, 10 * second, 0, 40 * second},
		"it ends by itself": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientRunning, false, "a")
			w.after(40*second).reportNow(cluster.ClientFailed, false, "a")
		}, 10 * second, 0, 0},
		"it never runs": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientPending, true, "a")
			w.stop("a")
			w.after(40*second).reportNow(cluster.ClientComplete, false, "a")
		}, 0, 0, 0},
		"a bad verdict, and a good one after it": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientRunning, false, "a")
			w.write(func(txn *statestore.Txn) {
				txn.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: "a", Node: "n1", ClientStatus: cluster.ClientRunning, Healthy: new(false)}}, w.now)
			})
			w.reportNow(cluster.ClientRunning, true, "a")
		}, 10 * second, 0, 0},
		// Bug: a repeated report would count each time.
		"reports are repeated, and the client loses its record": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientRunning, false, "a")
			w.reportNow(cluster.ClientRunning, false, "a")
			w.reportNow(cluster.ClientPending, false, "a")
			w.reportNow(cluster.ClientRunning, false, "a")
			w.after(27*second).reportNow(cluster.ClientRunning, true, "a")
			w.reportNow(cluster.ClientPending, true, "a")
			w.reportNow(cluster.ClientRunning, true, "a")
			w.stop("a")
			w.after(40*second).reportNow(cluster.ClientComplete, true, "a")
			w.reportNow(cluster.ClientComplete, true, "a")
		}, 10 * second, 30 * second, 40 * second},
		"its node is away when it starts": {func(w *world) {
			goesAway(w, "a")
			w.after(time.Hour).reportNow(cluster.ClientRunning, false, "a")
			w.reportNow(cluster.ClientRunning, true, "a")
		}, 0, 0, 0},
		"its node is away when it is judged and ends": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientRunning, false, "a")
			goesAway(w, "a")
			w.after(time.Hour).reportNow(cluster.ClientRunning, true, "a")
			goesAway(w, "a")
			w.stop("a")
			w.after(time.Hour).reportNow(cluster.ClientComplete, true, "a")
		}, 10 * second, 0, 0},
		"it is lost, and its end is reported late": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientRunning, false, "a")
			w.drain("n1", "d1", cluster.DrainSpec{})
			w.mark(cluster.MarkFree, "a")
			w.lost("a")
			w.after(time.Hour).reportNow(cluster.ClientComplete, false, "a")
		}, 10 * second, 0, 0},
		"its node reports everything at once": {func(w *world) {
			w.after(10*second).reportNow(cluster.ClientRunning, true, "a")
		}, 10 * second, 1, 0},
		"the next leader's clock is behind": {func(w *world) {
			w.after(-time.Hour).reportNow(cluster.ClientRunning, false, "a")
			w.after(-time.Hour).reportNow(cluster.ClientRunning, true, "a")
			w.stop("a")
			w.after(-time.Hour).reportNow(cluster.ClientComplete, true, "a")
		}, 1, 1, 1},
		"an entry without a time": {func(w *world) {
			w.report(cluster.ClientRunning, "a")
			w.stop("a")
			w.report(cluster.ClientComplete, "a")
		}, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := learning(t, cluster.VersionOfLearnedTimes)
			test.story(w)
			want := learned.Times{Start: counted(test.start), Verdict: counted(test.verdict), Stop: counted(test.stop)}
			got := statestore.LearnedTimes(w.snap().State, webGroup)
			if want == (learned.Times{}) {
				must.Nil(t, got)
				return
			}
			must.Eq(t, &want, got)
			must.Eq(t, dump(t, w.snap()), dump(t, restored(t, w.snap()).Snapshot()))
		})
	}
}

// A replacement that waits for the end of its predecessor starts at the report of that end. The predecessor stops in 40 s,
// and the replacement runs 10 s after that, unless the case says otherwise.
func TestLearnedTimes_replacement(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, test := range map[string]struct {
		node  cluster.NodeID
		data  *cluster.DataMove
		story func(w *world)
		start time.Duration
	}{
		"on the same node":                     {"n1", nil, nil, 10 * second},
		"on another node":                      {"n2", nil, nil, 50 * second},
		"it copies the data":                   {"n2", &cluster.DataMove{State: cluster.DataCopied, Peer: "a"}, nil, 10 * second},
		"it copies the data of an earlier one": {"n2", &cluster.DataMove{State: cluster.DataCopied, Peer: "z"}, nil, 50 * second},
		"it starts without the data":           {"n2", &cluster.DataMove{State: cluster.DataGivenUp, Peer: "a"}, nil, 50 * second},
		"the predecessor's row is gone": {"n1", nil, func(w *world) {
			w.after(40*second).reportNow(cluster.ClientComplete, false, "a")
			w.write(func(txn *statestore.Txn) { txn.DeleteAllocs([]cluster.AllocID{"a"}) })
			w.after(9*second).reportNow(cluster.ClientRunning, false, "b")
		}, 50 * second},
		"it runs before that end": {"n1", nil, func(w *world) {
			w.after(50*second).reportNow(cluster.ClientRunning, false, "b")
			w.reportNow(cluster.ClientComplete, false, "a")
		}, 50 * second},
		"one entry has the end and then the start": {"n1", nil, func(w *world) { w.after(50*second).endAndStart("a", "b") }, 1},
		"one entry has the start and then the end": {"n1", nil, func(w *world) { w.after(50*second).endAndStart("b", "a") }, 1},
		// The clock of the client is not compared with those of the servers.
		"the clock of its client is wrong": {"n1", nil, func(w *world) {
			w.after(40 * second).write(func(txn *statestore.Txn) {
				txn.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: "a", Node: "n1", ClientStatus: cluster.ClientComplete, At: w.now.AddDate(3, 0, 0)}}, w.now)
			})
			w.after(10*second).reportNow(cluster.ClientRunning, false, "b")
		}, 10 * second},
		"the next leader's clock is behind": {"n1", nil, func(w *world) {
			w.after(40*second).reportNow(cluster.ClientComplete, false, "a")
			w.after(-20*second).reportNow(cluster.ClientRunning, false, "b")
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := learning(t, cluster.VersionOfLearnedTimes)
			w.reportNow(cluster.ClientRunning, false, "a")
			before := statestore.LearnedTimes(w.snap().State, webGroup).Start
			b := place(w.snap().Job(webGroup.Job), "b", test.node)
			b.ClientStatus, b.PreviousAllocation, b.DataIn = cluster.ClientPending, "a", test.data
			w.plan(&cluster.Plan{Stops: []cluster.PlanStop{{Alloc: "a"}}, Places: []*cluster.Allocation{b}})
			if test.story == nil {
				test.story = func(w *world) {
					w.after(40*second).reportNow(cluster.ClientComplete, false, "a")
					w.after(10*second).reportNow(cluster.ClientRunning, false, "b")
				}
			}
			test.story(w)
			before.Add(test.start)
			must.Eq(t, before, statestore.LearnedTimes(w.snap().State, webGroup).Start)
		})
	}
}

// A predecessor that had ended before the placement, and is stopped later, delays nothing.
func TestLearnedTimes_replacementOfAnEndedOne(t *testing.T) {
	t.Parallel()
	w := learning(t, cluster.VersionOfLearnedTimes)
	w.reportNow(cluster.ClientRunning, false, "a")
	w.reportNow(cluster.ClientFailed, false, "a")
	want := statestore.LearnedTimes(w.snap().State, webGroup).Start
	b := place(w.snap().Job(webGroup.Job), "b", "n1")
	b.ClientStatus, b.PreviousAllocation = cluster.ClientPending, "a"
	w.plan(&cluster.Plan{Places: []*cluster.Allocation{b}})
	w.after(40 * time.Second).stop("a")
	w.after(10*time.Second).reportNow(cluster.ClientRunning, false, "b")
	want.Add(50 * time.Second)
	must.Eq(t, want, statestore.LearnedTimes(w.snap().State, webGroup).Start)
}

// endAndStart applies an entry in which a ends and b runs, with the reports in the order of the ids.
func (w *world) endAndStart(ids ...cluster.AllocID) {
	status := map[cluster.AllocID]cluster.ClientStatus{"a": cluster.ClientComplete, "b": cluster.ClientRunning}
	var reports []cluster.AllocReport
	for _, id := range ids {
		reports = append(reports, cluster.AllocReport{Alloc: id, Node: "n1", ClientStatus: status[id], At: w.now})
	}
	w.write(func(txn *statestore.Txn) { txn.UpdateAllocsFromClient(reports, w.now) })
}

// A cluster of an older version learns nothing. When its version is raised, what runs counts its end only: the rows
// do not have when it began to run.
func TestLearnedTimes_belowItsVersion(t *testing.T) {
	t.Parallel()
	w := learning(t, cluster.VersionOfLearnedTimes-1)
	placePending(w, "n1", "b")
	placePending(w, "n1", "c")
	w.reportNow(cluster.ClientRunning, false, "a", "b")
	w.reportNow(cluster.ClientRunning, true, "a")
	w.stop("a")
	w.reportNow(cluster.ClientComplete, true, "a")
	must.Nil(t, statestore.LearnedTimes(w.snap().State, webGroup))
	must.Zero(t, w.snap().Alloc("b").StartTook)
	must.StrNotContains(t, dump(t, w.snap()), "\ntimes\n")

	w.write(func(txn *statestore.Txn) { txn.RaiseClusterVersion(cluster.VersionOfLearnedTimes) })
	w.reportNow(cluster.ClientRunning, true, "b")
	must.Nil(t, statestore.LearnedTimes(w.snap().State, webGroup))
	w.stop("b")
	w.after(5*time.Second).reportNow(cluster.ClientComplete, true, "b")
	w.reportNow(cluster.ClientRunning, false, "c")
	want := learned.Times{Start: counted(w.now.Sub(w.snap().Alloc("c").CreateTime)), Stop: counted(5 * time.Second)}
	must.Eq(t, &want, statestore.LearnedTimes(w.snap().State, webGroup))
}

// The times stay while their group exists: over a stop of the job and its next versions, but not over its deletion. What
// ends afterwards is not counted.
func TestLearnedTimes_dropped(t *testing.T) {
	t.Parallel()
	renamed := serviceJob("web", 1)
	renamed.TaskGroups[0].Name = "h"
	for name, test := range map[string]struct {
		change func(txn *statestore.Txn) error
		stays  bool
	}{
		"the next version":       {func(txn *statestore.Txn) error { return txn.UpsertJob(serviceJob("web", 2)) }, true},
		"a stop":                 {func(txn *statestore.Txn) error { return txn.DeleteJob(webGroup.Job, false) }, true},
		"the group is renamed":   {func(txn *statestore.Txn) error { return txn.UpsertJob(renamed) }, false},
		"a purge by an operator": {func(txn *statestore.Txn) error { return statestore.PurgeJob(txn, webGroup.Job, time.Unix(1, 0)) }, false},
		"the collection":         {func(txn *statestore.Txn) error { return txn.DeleteJob(webGroup.Job, true) }, false},
		"of another job": {func(txn *statestore.Txn) error {
			return txn.DeleteJob(cluster.JobKey{Namespace: "default", ID: "we"}, true)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := learning(t, cluster.VersionOfLearnedTimes)
			w.job(serviceJob("we", 1))
			placePending(w, "n2", "b")
			w.reportNow(cluster.ClientRunning, false, "a", "b")
			w.write(func(txn *statestore.Txn) { must.NoError(t, test.change(txn)) })
			must.Eq(t, test.stays, statestore.LearnedTimes(w.snap().State, webGroup) != nil)
			if w.snap().Alloc("b") == nil {
				return
			}
			if !w.snap().Alloc("b").ServerTerminal() {
				w.stop("b")
			}
			w.reportNow(cluster.ClientComplete, false, "b")
			got := statestore.LearnedTimes(w.snap().State, webGroup)
			must.Eq(t, test.stays, got != nil)
			if test.stays {
				must.Eq(t, 1, got.Stop.Total())
			}
			must.Eq(t, dump(t, w.snap()), dump(t, restored(t, w.snap()).Snapshot()))
		})
	}
}

// Only a reader of the times of a group waits for them, and no report without a new time wakes it. A report that the
// allocation runs moves the table of allocations, as before.
func TestLearnedTimes_wakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := learning(t, cluster.VersionOfLearnedTimes)
		job := block(t.Context(), w, w.index, func(s *statestore.Snapshot) uint64 { return s.Job(webGroup.Job).ModifyIndex })
		node := block(t.Context(), w, w.index, func(s *statestore.Snapshot) uint64 { return s.Node("n1").ModifyIndex })
		times := block(t.Context(), w, w.index, func(s *statestore.Snapshot) uint64 {
			if statestore.LearnedTimes(s.State, webGroup) == nil {
				return 0
			}
			return s.Index()
		})
		must.True(t, times.waits())
		nodes, jobs := w.snap().TableIndex(statestore.TableNodes), w.snap().TableIndex(statestore.TableJobs)
		w.reportNow(cluster.ClientRunning, false, "a")
		must.False(t, times.waits())
		must.True(t, job.waits())
		must.True(t, node.waits())
		must.Eq(t, 1, job.runs.Load())
		must.Eq(t, 1, node.runs.Load())
		must.Eq(t, nodes, w.snap().TableIndex(statestore.TableNodes))
		must.Eq(t, jobs, w.snap().TableIndex(statestore.TableJobs))

		again := block(t.Context(), w, w.index, func(s *statestore.Snapshot) uint64 {
			return uint64(statestore.LearnedTimes(s.State, webGroup).Start.Total()) - 1
		})
		w.write(func(txn *statestore.Txn) {
			txn.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: "a", Node: "n1", ClientStatus: cluster.ClientRunning, ClientDescription: "busy"}}, w.now)
		})
		must.Eq(t, 1, again.runs.Load())
		w.store.Abandon()
		synctest.Wait()
	})
}
