package plan_test

import (
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/plan"
)

// silentJobs is a job watcher that offers nothing.
type silentJobs struct{ drainer.DrainingJobWatcher }

func (silentJobs) Drain() <-chan *drainer.DrainRequest { return nil }

// blindNodes is a node watcher that finds no drain.
type blindNodes struct{}

func (blindNodes) Step(drainer.Reading) time.Time { return time.Time{} }

// silentDeadlines is a deadline notifier that never wakes the drainer.
type silentDeadlines struct{ drainer.DrainDeadlineNotifier }

func (silentDeadlines) NextBatch() <-chan []cluster.NodeID { return nil }
func (silentDeadlines) Step(drainer.Reading) time.Time     { return time.Time{} }

// A plan is made by the code that drains (F1). Each of these drainers is broken in its own way, and its plan
// shows what this does.
func TestAnswer_brokenDrainers(t *testing.T) {
	t.Parallel()
	const right = "3 allocations leave in 35s; 1 is taken by the deadline; nothing falls below its limit"
	for name, c := range map[string]struct {
		edit func(*drainer.NodeDrainerConfig)
		want string
	}{
		"right": {func(*drainer.NodeDrainerConfig) {}, right},
		"it moves nothing at a pace": {func(c *drainer.NodeDrainerConfig) {
			c.JobWatcher = func(e drainer.Env) drainer.DrainingJobWatcher { return silentJobs{drainer.NewJobWatcher(e)} }
		}, "3 allocations leave in 35s; 3 are taken by the deadline; web falls to 1 healthy of 2 required"},
		"it finds no drain": {func(c *drainer.NodeDrainerConfig) {
			c.NodeWatcher = func(drainer.Env, drainer.NodeTracker) drainer.DrainingNodeWatcher { return blindNodes{} }
		}, "no allocation leaves, and the drain does not end: 3 allocations wait; nothing falls below its limit"},
		"it misses the deadline": {func(c *drainer.NodeDrainerConfig) {
			c.DeadlineNotifier = func(e drainer.Env) drainer.DrainDeadlineNotifier {
				return silentDeadlines{drainer.NewDeadlineHeap(e)}
			}
		}, "2 allocations leave, and the drain does not end: 1 allocation waits; nothing falls below its limit"},
		"it writes once a minute": {func(c *drainer.NodeDrainerConfig) {
			c.MinWriteInterval = time.Minute
		}, "3 allocations leave in 2m; 2 are taken by the deadline; nothing falls below its limit"},
		"it does not wait for the end of allocations": {func(c *drainer.NodeDrainerConfig) {
			c.Policy.Completion = rules.CompletionMarked
		}, "3 allocations leave in 30s; 1 is taken by the deadline; nothing falls below its limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, 3)
			f.run(clustertest.Job("web", cluster.JobService, 3), node(0), node(0), node(1))
			f.run(clustertest.Job("calc", cluster.JobBatch, 1), node(0))
			var s plan.Settings
			c.edit(&s.Drainer)
			must.Eq(t, c.want, f.answer(1, cluster.DrainSpec{Deadline: 30 * time.Second}, s).Sentence)
		})
	}
}

// Plans are made while the store is written to. They read one state, and the writes do not wait for them.
func TestAnswer_besideWrites(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 4)
	f.run(clustertest.Job("web", cluster.JobService, 6), node(0), node(0), node(1), node(1), node(2), node(3))
	store := f.FSM.Store()
	want := f.answer(2, cluster.DrainSpec{}, plan.Settings{}).Sentence
	var plans sync.WaitGroup
	q := plan.Question{Nodes: []cluster.NodeID{node(0), node(1)}, At: f.now}
	for range 4 {
		plans.Go(func() {
			for range 10 {
				a, err := plan.Answer(t.Context(), store, q, plan.Settings{}, 0, nil)
				if err != nil || a.Sentence != want {
					t.Error(a, err)
				}
			}
		})
	}
	for i := range 200 {
		f.now = f.now.Add(time.Second)
		f.Nodes(cluster.NodeID("other" + string(node(i))))
	}
	plans.Wait()
}
