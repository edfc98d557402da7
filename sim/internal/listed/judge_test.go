package listed

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/catalogue"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// history is a log with the allocation a1 of a service, which runs. Its check decides, and its verdict is good.
type history struct {
	*clustertest.Replica
	judge *Judge
	job   *cluster.Job
	now   time.Time
}

func newHistory(t *testing.T) *history {
	h := &history{judge: New(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.Replica = clustertest.NewReplica(t, shims.FSMConfig{OnApply: func(a shims.Applied) { h.judge.Applied(h.now, a) }})
	h.Replica.Now = func() time.Time { return h.now }
	h.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	h.Nodes("n1")
	declared := scenario.Group{Name: "web", Count: 1, Service: true, Check: &scenario.Check{Interval: time.Second, Timeout: time.Second}}
	key := cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "web"}
	h.job = h.Job(setting.Job(&scenario.Scenario{}, scenario.Job{Key: key, Groups: []scenario.Group{declared}}))
	h.Plan(h.job, nil, clustertest.Alloc(h.job, "a1", "n1", h.now))
	h.healthy(true)
	return h
}

// healthy reports that a1 runs, with a verdict.
func (h *history) healthy(good bool) {
	h.now = h.now.Add(time.Second)
	r := clustertest.Report(h.State().Alloc("a1"), cluster.ClientRunning, h.now)
	r.Healthy = &good
	h.Must(&shims.AllocClientUpdate{At: h.now, Reports: []cluster.AllocReport{r}})
}

// register registers a copy of the job with another tag, and with other tasks if they differ.
func (h *history) register(tag string, tasks bool) {
	j := h.job.Copy()
	j.TaskGroups[0].Services[0].Tags = []string{tag}
	if tasks {
		j.TaskGroups[0].Tasks[0].Env = map[string]string{"VERSION": "2"}
	}
	h.Must(&shims.JobRegister{Job: j, Evals: []*cluster.Evaluation{h.Eval(j)}})
}

// stop stops a1.
func (h *history) stop() {
	e := h.Eval(h.job)
	h.Must(&shims.EvalUpdate{Evals: []*cluster.Evaluation{e.Copy()}})
	e.Status = cluster.EvalComplete
	plan := cluster.Plan{At: h.now, Eval: e, SnapshotIndex: h.Index, Stops: []cluster.PlanStop{{Alloc: "a1", Description: cluster.DescNewerVersion}}}
	must.Eq(h, nil, h.Must(&shims.ApplyPlan{Plan: plan}).(shims.PlanApplied).Refused)
}

// all are the entries of the test.
func (h *history) all() {
	h.register("v2", false)
	h.healthy(false)
	h.healthy(true)
	h.register("v3", true)
	h.stop()
	h.Report(cluster.ClientComplete, "a1")
}

// The product's catalogue is right.
func TestJudge_right(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	must.Eq(t, []string{"web of a1 on n1 at service.example:80 "}, texts(h.judge.last))
	h.register("v2", false)
	must.Eq(t, []string{"web of a1 on n1 at service.example:80 v2"}, texts(h.judge.last))
	h.healthy(false)
	must.Eq(t, nil, texts(h.judge.last))
	h.healthy(true)
	h.register("v3", true)
	must.Eq(t, []string{"web of a1 on n1 at service.example:80 v2"}, texts(h.judge.last))
	h.stop()
	must.Eq(t, nil, texts(h.judge.last))
	must.SliceEmpty(t, h.judge.Violations())
}

// A catalogue that is wrong in one way is found.
func TestJudge_wrong(t *testing.T) {
	t.Parallel()
	is := func(edit func(s *statestore.Snapshot, list []catalogue.Instance, changed uint64) ([]catalogue.Instance, uint64)) func(*statestore.Snapshot) ([]catalogue.Instance, uint64) {
		return func(s *statestore.Snapshot) ([]catalogue.Instance, uint64) {
			list, changed := instances(s)
			return edit(s, list, changed)
		}
	}
	for name, test := range map[string]struct {
		read func(*statestore.Snapshot) ([]catalogue.Instance, uint64)
		want invariant.Check
	}{
		"it lists nothing": {is(func(*statestore.Snapshot, []catalogue.Instance, uint64) ([]catalogue.Instance, uint64) {
			return nil, 1 << 40
		}), Wrong},
		"it has an old tag": {is(func(_ *statestore.Snapshot, list []catalogue.Instance, changed uint64) ([]catalogue.Instance, uint64) {
			for i := range list {
				list[i].Tags = nil
			}
			return list, changed
		}), Wrong},
		"it changes unnoticed": {is(func(_ *statestore.Snapshot, list []catalogue.Instance, _ uint64) ([]catalogue.Instance, uint64) {
			return list, 1
		}), Unnoticed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			h.judge.catalogue = test.read
			h.all()
			must.True(t, slices.ContainsFunc(h.judge.Violations(), func(v invariant.Violation) bool {
				return invariant.Check(v.Guarantee+" "+v.Check) == test.want
			}))
		})
	}
}
