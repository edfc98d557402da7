package main

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// figureHistory: what a job has run costs neither memory nor time to place. Each is compared with
// a job that has run 10,000 allocations, which is what the leader keeps.
func figureHistory(b *testing.B) {
	const few = 10_000
	base := newHistory(b, few)
	for _, ended := range []int{50_000, 200_000} {
		b.Run(fmt.Sprintf("memory/ended=%d", ended), func(b *testing.B) {
			with := newHistory(b, ended)
			share := float64(with.held) / float64(base.held)
			measure.Ratio{Median: share, Low: share, High: share}.ReportAs(b, "held-"+measure.UnitRatio)
			measure.Count(b, with.held, "bytes")
			runtime.KeepAlive(with)
		})
		b.Run(fmt.Sprintf("place/ended=%d", ended), func(b *testing.B) {
			with := newHistory(b, ended)
			measure.Compare(10, base.place, with.place).Report(b)
		})
		// Without collection, so that the index of what is concluded alone keeps the time.
		b.Run(fmt.Sprintf("place-uncollected/ended=%d", ended), func(b *testing.B) {
			with := newHistory(b, 0)
			with.run(ended)
			measure.Compare(10, base.place, with.place).Report(b)
		})
	}
}

// history is a cluster with one service, which has run many allocations that have ended.
type history struct {
	*testCluster
	job *cluster.Job
	// made counts the ended allocations.
	made int
	// held is the memory that the cluster holds.
	held int64
}

// newHistory has a service run allocations, and collects after each 10,000 as the leader does.
func newHistory(b *testing.B, ended int) *history {
	b.Helper()
	before := heapInUse()
	h := &history{testCluster: newCluster(b, clusterPlan{nodes: 100, perNode: 10, jobSize: 1000, job: cluster.JobService, maxParallel: 1})}
	h.edit(func(txn *statestore.Txn) { txn.RaiseClusterVersion(cluster.MaxVersion) })
	for h.made < ended {
		h.run(10_000)
		h.collect()
	}
	wanted := h.state().Job(cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "job-00000"}).Copy()
	wanted.TaskGroups[0].Count += 100
	h.apply(&shims.JobRegister{Job: wanted, Evals: []*cluster.Evaluation{
		scheduler.JobEval(wanted, cluster.TriggerJobRegister, epoch, "place"),
	}})
	h.job = h.state().Job(wanted.Key())
	h.held = heapInUse() - before
	return h
}

func (h *history) state() *statestore.Snapshot { return h.fsm.Store().Snapshot() }

// run writes allocations that have ended.
func (h *history) run(n int) {
	job := h.state().Job(cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "job-00000"})
	plan := clusterPlan{job: cluster.JobService}
	h.inParts(n, clusterRows, func(txn *statestore.Txn, _ int) {
		h.made++
		a := plan.newAlloc(job, 1, h.made)
		a.NodeID, a.NextAllocation = h.nodes[h.made%len(h.nodes)], "gone"
		a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientComplete
		dropped, err := txn.ApplyPlan(&cluster.Plan{At: epoch.Add(time.Duration(h.made)), Places: []*cluster.Allocation{a}})
		must.NoError(h.tb, err)
		must.Len(h.tb, 0, dropped)
	})
}

// collect has the leader collect ended work before it is old.
func (h *history) collect() {
	round, err := collect.NewRound(collect.Options{}, epoch.Add(time.Minute))
	must.NoError(h.tb, err)
	for request := round.Next(h.state().WorkView()); request != nil; request = round.Next(h.state().WorkView()) {
		h.apply(&shims.Collect{At: epoch.Add(time.Minute), Request: *request})
	}
}

// place plans and applies the placement of 100 allocations, again and again.
func (h *history) place() func(*measure.Meter) {
	state, made := h.state(), 0
	ids := scheduler.IDs{
		Alloc: func() cluster.AllocID { made++; return allocOf(2, made) },
		Eval:  func() cluster.EvalID { return "next" },
	}
	return func(*measure.Meter) {
		for range 20 {
			plan := scheduler.Schedule(state.WorkView(), state.Eval("place"), epoch, ids)
			txn := h.fsm.Store().Begin(h.index + 1)
			accepted, refused := scheduler.Check(txn.State().WorkView(), plan)
			if len(accepted.Places) != 100 || len(refused) > 0 {
				h.tb.Fatalf("placed %d, refused %v", len(accepted.Places), refused)
			}
			txn.Abort()
		}
	}
}
