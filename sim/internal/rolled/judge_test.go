//race:skip one goroutine
package rolled_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/rolled"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// history is a log with three healthy allocations of web, web0 to web2, on as many nodes. A judge judges
// the plans of replace.
type history struct {
	*clustertest.Replica
	job   *cluster.Job
	judge rolled.Judge
	// full: the nodes have no room for what replaces an allocation.
	full bool
}

func newHistory(t *testing.T, kind cluster.JobType, parallel int) *history {
	h := new(history)
	h.Replica = clustertest.NewReplica(t, shims.FSMConfig{})
	h.Now = func() time.Time { return start }
	h.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	h.Nodes("n0", "n1", "n2", "n3")
	job := clustertest.Job("web", kind, 3)
	job.TaskGroups[0].Update = &cluster.UpdateStrategy{MaxParallel: parallel, MinHealthyTime: time.Second, HealthyDeadline: time.Minute}
	h.job = h.Job(job)
	h.place("web", 3)
	h.Report(cluster.ClientRunning, "web0", "web1", "web2")
	return h
}

// place places allocations of the present version, one on each node.
func (h *history) place(prefix string, count int) {
	var places []*cluster.Allocation
	for i := range count {
		places = append(places, h.alloc(prefix, i))
	}
	h.Plan(h.job, nil, places...)
}

func (h *history) alloc(prefix string, i int) *cluster.Allocation {
	a := clustertest.Alloc(h.job, cluster.AllocID(fmt.Sprint(prefix, i)), cluster.NodeID(fmt.Sprint("n", i)), start)
	a.Name = fmt.Sprintf("web.web[%d]", i)
	return a
}

// edit registers a version with other tasks.
func (h *history) edit() {
	job := h.job.Copy()
	job.TaskGroups[0].Tasks[0].Env = map[string]string{"VERSION": "2"}
	h.job = h.Job(job)
}

// vacate edits the job, and is a plan that stops web0. There is no room for its replacement yet.
func (h *history) vacate() {
	h.edit()
	h.full = true
	h.replace(0)
	h.full = false
	h.Report(cluster.ClientComplete, "web0")
}

// replace is a plan that stops allocations of an older version, and places one of the present version for each.
func (h *history) replace(indexes ...int) { h.replaceAs(h.job, indexes...) }

// replaceAs is a plan under the present version, judged as if a later version had been the present one. The FSM
// refuses what the judge must find, so the plan is applied under an update block that permits everything.
func (h *history) replaceAs(judged *cluster.Job, indexes ...int) {
	before := h.State()
	permits := h.job.Copy()
	permits.TaskGroups[0].Update.MaxParallel = 0
	h.job = h.Job(permits)
	e := h.Eval(h.job)
	h.Must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{e.Copy()}})
	e.Status = cluster.EvalComplete
	p := cluster.Plan{At: start, Eval: e, SnapshotIndex: h.Index}
	for _, i := range indexes {
		id := cluster.AllocID(fmt.Sprint("web", i))
		p.Stops = append(p.Stops, cluster.PlanStop{Alloc: id, Description: cluster.DescNewerVersion})
		if h.full {
			continue
		}
		a := h.alloc("new", i)
		a.PreviousAllocation = id
		p.Places = append(p.Places, a)
	}
	m := &shims.ApplyPlan{Plan: p}
	must.SliceEmpty(h, h.Must(m).(shims.PlanApplied).Refused)
	index := h.Index
	h.job = h.Job(judged.Copy())
	h.judge.Applied(start, shims.Applied{Index: index, Message: m, Before: before, After: h.State()})
}

// still answers all evaluations with plans that change nothing, and lets the judge see the state.
func (h *history) still() {
	for h.open() {
		h.Plan(h.job, nil)
	}
	h.judge.Still(start, h.State())
}

func (h *history) open() bool {
	for range h.State().WorkView().OpenEvals(h.job.Key()) {
		return true
	}
	return false
}

// unhealthy reports an allocation as running and unhealthy.
func (h *history) unhealthy(id cluster.AllocID) {
	r := clustertest.Report(h.State().Alloc(id), cluster.ClientRunning, start)
	r.Healthy = new(false)
	h.Must(&shims.AllocClientUpdate{At: start, Reports: []cluster.AllocReport{r}})
}

func TestJudge(t *testing.T) {
	t.Parallel()
	const none = 0
	for name, test := range map[string]struct {
		kind     cluster.JobType
		parallel int
		play     func(h *history)
		want     []invariant.Check
	}{
		"one after the other": {cluster.JobService, 1, func(h *history) {
			h.edit()
			for i := range 3 {
				h.replace(i)
				h.Report(cluster.ClientRunning, cluster.AllocID(fmt.Sprint("new", i)))
			}
			h.still()
		}, nil},
		"an allocation of the present version is stopped": {cluster.JobService, 1, func(h *history) {
			original := h.job
			h.edit()
			h.replaceAs(original, 0)
		}, []invariant.Check{rolled.NotOutdated}},
		"two at a time": {cluster.JobService, 1, func(h *history) {
			h.edit()
			h.replace(0, 1)
		}, []invariant.Check{rolled.TooMany, rolled.BelowLimit}},
		"two at a time, as its update permits": {cluster.JobService, 2, func(h *history) {
			h.edit()
			h.replace(0, 1)
		}, nil},
		"all at once, as its update permits": {cluster.JobService, none, func(h *history) {
			h.edit()
			h.replace(0, 1, 2)
		}, nil},
		"a second one before the first is healthy": {cluster.JobService, 1, func(h *history) {
			h.edit()
			h.replace(0)
			h.replace(1)
		}, []invariant.Check{rolled.TooMany, rolled.BelowLimit}},
		"an unhealthy one does not count for the limit": {cluster.JobService, 2, func(h *history) {
			h.unhealthy("web1")
			h.unhealthy("web2")
			h.edit()
			h.replace(0)
		}, []invariant.Check{rolled.BelowLimit}},
		"unhealthy ones first": {cluster.JobService, 2, func(h *history) {
			h.unhealthy("web1")
			h.unhealthy("web2")
			h.edit()
			h.replace(1, 2)
		}, nil},
		"after a failure": {cluster.JobService, 2, func(h *history) {
			h.edit()
			h.replace(0)
			h.unhealthy("new0")
			h.replace(1)
		}, []invariant.Check{rolled.AfterFailure}},
		"a system job, two nodes at a time": {cluster.JobSystem, 1, func(h *history) {
			h.edit()
			h.replace(0, 1)
		}, []invariant.Check{rolled.TooMany}},
		"a system job, one node at a time": {cluster.JobSystem, 1, func(h *history) {
			h.edit()
			h.replace(0)
		}, nil},
		"a system job, and the first node has no room for the replacement": {cluster.JobSystem, 1, func(h *history) {
			h.vacate()
			h.replace(1)
		}, []invariant.Check{rolled.TooMany}},
		"a system job, as its update permits beside a node without room": {cluster.JobSystem, 2, func(h *history) {
			h.vacate()
			h.replace(1)
		}, nil},
		"a system job, and the first node takes no allocations any more": {cluster.JobSystem, 1, func(h *history) {
			h.vacate()
			h.Must(&shims.NodeUpdateEligibility{At: start, Node: "n0", Eligibility: cluster.NodeIneligible})
			h.replace(1)
		}, nil},
		"a system job, and the first node has room later": {cluster.JobSystem, 1, func(h *history) {
			h.vacate()
			h.Plan(h.job, nil, h.alloc("later", 0))
			h.Report(cluster.ClientRunning, "later0")
			h.replace(1)
		}, nil},
		"a system job, and nothing replaces the rest": {cluster.JobSystem, 1, func(h *history) {
			h.edit()
			h.still()
		}, []invariant.Check{rolled.LeftOutdated, rolled.LeftOutdated, rolled.LeftOutdated}},
		"a system job, and no node has the cores": {cluster.JobSystem, 1, func(h *history) {
			h.job.TaskGroups[0].Tasks[0].Cores = 1
			h.edit()
			h.still()
		}, nil},
		"batch work": {cluster.JobBatch, 1, func(h *history) {
			h.edit()
			h.replace(0, 1, 2)
		}, nil},
		"nothing replaces the rest": {cluster.JobService, 1, func(h *history) {
			h.edit()
			h.replace(0)
			h.Report(cluster.ClientRunning, "new0")
			h.still()
		}, []invariant.Check{rolled.LeftOutdated, rolled.LeftOutdated}},
		"the rest waits for a failed one": {cluster.JobService, 1, func(h *history) {
			h.edit()
			h.replace(0)
			h.unhealthy("new0")
			h.still()
		}, nil},
		"a plan is due": {cluster.JobService, 1, func(h *history) {
			h.edit()
			h.Must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{h.Eval(h.job)}})
			h.judge.Still(start, h.State())
		}, nil},
		"a stopped job": {cluster.JobService, 1, func(h *history) {
			h.edit()
			h.Must(&shims.JobDeregister{Job: h.job.Key()})
			h.still()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, test.kind, test.parallel)
			test.play(h)
			var found []invariant.Check
			for _, v := range h.judge.Violations() {
				found = append(found, invariant.Check(v.Guarantee+" "+v.Check))
			}
			must.Eq(t, test.want, found)
		})
	}
}
