//race:skip one goroutine
package ended_test

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/ended"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// history is a log with the allocation a1 of a service, and s1 of a system job, on n1. A judge
// judges each entry.
type history struct {
	*clustertest.Replica
	now   time.Time
	lives []cluster.AllocID
	judge *ended.Judge
}

func newHistory(t *testing.T, marked bool) *history {
	h := &history{now: start}
	h.judge = ended.New(ended.Options{Marked: marked, Lives: func(id cluster.NodeID) iter.Seq[cluster.AllocID] {
		must.Eq(t, "n1", id)
		return slices.Values(h.lives)
	}})
	h.Replica = clustertest.NewReplica(t, shims.FSMConfig{OnApply: func(a shims.Applied) { h.judge.Applied(h.now, a) }})
	h.Replica.Now = func() time.Time { return h.now }
	h.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	h.Nodes("n1")
	web := clustertest.Job("web", cluster.JobService, 1)
	web.TaskGroups[0].Disconnect.StopOnClientAfter = time.Minute
	web, logs := h.Job(web), h.Job(clustertest.Job("logs", cluster.JobSystem, 1))
	h.Plan(web, nil, clustertest.Alloc(web, "a1", "n1", start))
	h.Plan(logs, nil, clustertest.Alloc(logs, "s1", "n1", start))
	h.Report(cluster.ClientRunning, "a1", "s1")
	h.lives = []cluster.AllocID{"a1", "s1"}
	return h
}

// ended ends the allocations in the state.
func (h *history) ended(ids ...cluster.AllocID) { h.Report(cluster.ClientComplete, ids...) }

// purged deletes the jobs.
func (h *history) purged() {
	for _, id := range []cluster.JobID{"web", "logs"} {
		h.Must(&shims.JobDeregister{Job: cluster.JobKey{Namespace: "default", ID: id}, Purge: true})
	}
}

// lost gives a1 up as lost.
func (h *history) lost() {
	h.Must(&shims.NodeUpdateStatus{At: h.now, Node: "n1", Status: cluster.NodeDown})
	e := h.Eval(h.State().Alloc("a1").Job)
	h.Must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{e.Copy()}})
	e.Status = cluster.EvalComplete
	h.Must(&shims.ApplyPlan{Plan: cluster.Plan{At: h.now, Eval: e, SnapshotIndex: h.Index, Stops: []cluster.PlanStop{{Alloc: "a1", Lost: true}}}})
}

// forced ends a forced drain of a node that the servers do not reach.
func (h *history) forced(ids ...cluster.AllocID) {
	h.Must(&shims.NodeUpdateStatus{At: h.now, Node: "n1", Status: cluster.NodeDown})
	h.Drain("n1", &cluster.DrainSpec{Deadline: -1})
	for _, id := range ids {
		class := map[cluster.AllocID]cluster.MarkClass{"a1": cluster.MarkForced, "s1": cluster.MarkStage}[id]
		must.SliceEmpty(h, h.Mark(class, id).Refused, must.Sprint(id))
	}
	must.Len(h, 1, h.Complete("n1").Ended)
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		marked bool
		play   func(h *history)
		want   []invariant.Check
	}{
		"nothing runs": {play: func(h *history) {
			h.Drain("n1", &cluster.DrainSpec{})
			h.ended("a1", "s1")
			h.lives = nil
			h.Complete("n1")
		}},
		"both run": {play: func(h *history) {
			h.Drain("n1", &cluster.DrainSpec{})
			h.ended("a1", "s1")
			h.Complete("n1")
		}, want: []invariant.Check{ended.RunsAfterEnd, ended.RunsAfterEnd}},
		"a system job that stays": {play: func(h *history) {
			h.Drain("n1", &cluster.DrainSpec{IgnoreSystemJobs: true})
			h.ended("a1")
			h.lives = []cluster.AllocID{"s1"}
			h.Complete("n1")
		}},
		"the policy marked": {marked: true, play: func(h *history) {
			h.Drain("n1", &cluster.DrainSpec{})
			h.ended("a1", "s1")
			h.Complete("n1")
		}, want: []invariant.Check{ended.RunsUncounted}},
		"a scenario ended it": {play: func(h *history) {
			h.Drain("n1", &cluster.DrainSpec{})
			h.judge.Untrue([]cluster.AllocReport{{Alloc: "a1"}})
			h.ended("a1", "s1")
			h.lives = []cluster.AllocID{"a1"}
			h.Complete("n1")
		}},
		"an unconfirmed drain": {play: func(h *history) {
			h.lost()
			h.ended("s1")
			h.lives = []cluster.AllocID{"a1"}
			h.Drain("n1", &cluster.DrainSpec{})
			h.Complete("n1")
			must.Eq(h, cluster.OutcomeUnconfirmed, slices.Collect(h.State().Drains())[0].Outcome)
		}},
		"a forced drain of a silent node": {play: func(h *history) {
			h.forced("a1", "s1")
			h.lives = nil
			h.ended("a1", "s1")
		}},
		"a forced drain whose record counts too few": {play: func(h *history) {
			h.ended("a1")
			h.forced("s1")
		}, want: []invariant.Check{ended.RunsUncounted}},
		"a forced drain whose record counts none while a task runs": {play: func(h *history) {
			h.forced("a1", "s1")
			h.ended("a1", "s1")
		}, want: []invariant.Check{ended.RunsUncounted, ended.RunsUncounted}},
		"a forced drain that an operator confirms": {play: func(h *history) {
			h.forced("a1", "s1")
			for d := range h.State().Drains() {
				h.Must(&shims.ConfirmDrain{At: h.now, Drain: d.ID, By: "ada"})
			}
		}},
		"its row was deleted during the drain, and not counted": {play: func(h *history) {
			h.ended("a1", "s1")
			h.Drain("n1", &cluster.DrainSpec{})
			h.purged()
			h.lives = []cluster.AllocID{"a1"}
			h.Complete("n1")
		}, want: []invariant.Check{ended.RunsAfterEnd}},
		"no row of it since the drain began": {play: func(h *history) {
			h.purged()
			h.Drain("n1", &cluster.DrainSpec{})
			h.Complete("n1")
		}},
		"time confirms, and it runs": {play: func(h *history) {
			h.lost()
			h.now = h.now.Add(time.Hour)
			h.Must(&shims.ConfirmStops{At: h.now, Nodes: []cluster.NodeID{"n1"}})
		}, want: []invariant.Check{ended.RunsAfterConfirm}},
		"time confirms by a wrong clock": {play: func(h *history) {
			h.judge.ClockSet(time.Hour)
			h.lost()
			h.now = h.now.Add(time.Hour)
			h.Must(&shims.ConfirmStops{At: h.now, Nodes: []cluster.NodeID{"n1"}})
		}},
		"time confirms before the end of the drain": {play: func(h *history) {
			h.lost()
			h.ended("s1")
			h.Drain("n1", &cluster.DrainSpec{})
			h.now = h.now.Add(time.Hour)
			h.lives = []cluster.AllocID{"a1"}
			h.Must(&shims.ConfirmStops{At: h.now, Nodes: []cluster.NodeID{"n1"}})
			h.Complete("n1")
		}, want: []invariant.Check{ended.RunsAfterConfirm, ended.RunsAfterEnd}},
		"an operator confirms": {play: func(h *history) {
			h.lost()
			h.ended("s1")
			h.lives = []cluster.AllocID{"a1"}
			h.Drain("n1", &cluster.DrainSpec{})
			h.Complete("n1")
			for d := range h.State().Drains() {
				h.Must(&shims.ConfirmDrain{At: h.now, Drain: d.ID, By: "ada"})
			}
			h.Drain("n1", &cluster.DrainSpec{})
			h.Complete("n1") // complete
		}},
		"time confirms before the end of the drain by a wrong clock": {play: func(h *history) {
			h.judge.ClockSet(time.Hour)
			h.lost()
			h.ended("s1")
			h.Drain("n1", &cluster.DrainSpec{})
			h.now = h.now.Add(time.Hour)
			h.lives = []cluster.AllocID{"a1"}
			h.Must(&shims.ConfirmStops{At: h.now, Nodes: []cluster.NodeID{"n1"}})
			h.Complete("n1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, test.marked)
			test.play(h)
			var found []invariant.Check
			for _, v := range h.judge.Violations() {
				c := invariant.Check(v.Guarantee + " " + v.Check)
				must.SliceContains(t, ended.Checks(), c)
				found = append(found, c)
			}
			must.Eq(t, test.want, found)
		})
	}
}
