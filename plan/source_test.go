package plan_test

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rowview"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/plan"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// source is the state of a fixture as an embedder would give it.
type source struct{ *statestore.Snapshot }

func (s source) DrainPause() *cluster.DrainPause { return s.Snapshot.DrainView().DrainPause() }

func (s source) Claims() iter.Seq[*cluster.VolumeClaim] { return s.WorkView().Claims() }

var (
	_ plan.VolumeSource = source{}
	_ plan.Source       = (*rowview.View)(nil)
)

// sentenceOf is the answer to a question about the first node over a store.
func sentenceOf(t *testing.T, store *statestore.Store, s plan.Settings) string {
	t.Helper()
	q := plan.Question{Nodes: []cluster.NodeID{node(0)}, Spec: cluster.DrainSpec{Deadline: time.Hour}, At: epoch().Add(time.Hour)}
	return result.Of(plan.Answer(t.Context(), store, q, s, 0, nil)).OK(t).Sentence
}

// A play over a copy of the rows is the same as one over the store, in the middle of drains too.
func TestLoad_playsTheSame(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 5)
	web := f.run(clustertest.Job("web", cluster.JobService, 6), node(0), node(0), node(1), node(1), node(2), node(3))
	f.run(clustertest.Job("log", cluster.JobSystem, 1), node(0), node(1), node(2), node(3), node(4))
	f.run(clustertest.Job("calc", cluster.JobBatch, 1), node(0))
	f.Drain(node(1), &cluster.DrainSpec{})
	f.Mark(cluster.MarkPaced, "web-2")
	f.Plan(web, []cluster.AllocID{"web-2"})
	for _, paused := range []bool{false, true} {
		f.pause("", paused)
		want := sentenceOf(t, f.FSM.Store(), plan.Settings{})
		must.Eq(t, paused, strings.HasSuffix(want, "all drains are paused now"))

		copied := result.Of(plan.Load(source{f.State()})).OK(t)
		must.Eq(t, want, sentenceOf(t, copied, plan.Settings{}))

		s := f.State()
		view := rowview.New(s.Index(), slices.Collect(s.Nodes()), slices.Collect(s.Jobs()), slices.Collect(s.Allocs()), slices.Collect(s.Evals()))
		must.Eq(t, want, sentenceOf(t, result.Of(plan.Load(view.WithPause(s.DrainView().DrainPause()))).OK(t), plan.Settings{}))
	}
}

// Without a scheduler every replacement finds a place, and the answer states that placement was not judged.
func TestLoadElsewhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2)
	f.run(large("huge", 1), node(0))
	f.run(large("other", 1), node(1))
	must.StrContains(t, sentenceOf(t, f.FSM.Store(), plan.Settings{}), "1 allocation of huge fits nowhere; huge stays down")

	store := result.Of(plan.LoadElsewhere(source{f.State()})).OK(t)
	must.Eq(t, "1 allocation leaves in 5s; huge is down for 12s", sentenceOf(t, store, plan.Settings{Elsewhere: true}))
	q := plan.Question{Nodes: []cluster.NodeID{node(0)}, At: f.now}
	a := result.Of(plan.Answer(t.Context(), store, q, plan.Settings{Elsewhere: true}, 0, nil)).OK(t)
	must.SliceContains(t, a.Limits, "placement was not judged: in the plan every replacement finds a place")
}

// lazy is a scheduler that works every tenth second only.
type lazy struct{ plan.Scheduler }

func (l lazy) Step(now time.Time) time.Time {
	if next := now.Truncate(10 * time.Second); !next.Equal(now) {
		return next.Add(10 * time.Second)
	}
	l.Scheduler.Step(now)
	return now.Add(10 * time.Second)
}

// An embedder's own scheduler moves the allocations of a play.
func TestSettings_scheduler(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3)
	f.run(clustertest.Job("web", cluster.JobService, 3), node(0), node(0), node(1))
	must.Eq(t, "2 allocations leave in 17s; nothing falls below its limit", sentenceOf(t, f.FSM.Store(), plan.Settings{}))
	own := func(view func() scheduler.View, applier scheduler.Applier, ids scheduler.IDs) (plan.Scheduler, error) {
		s, err := scheduler.New(scheduler.Config{Snapshot: view, Applier: applier, IDs: ids})
		return lazy{s}, err
	}
	must.Eq(t, "2 allocations leave in 25s; nothing falls below its limit", sentenceOf(t, f.FSM.Store(), plan.Settings{Scheduler: own}))
}

// hurried is a scheduler whose next step is always due.
type hurried struct{ plan.Scheduler }

func (h hurried) Step(now time.Time) time.Time {
	h.Scheduler.Step(now)
	return now.Add(-time.Second)
}

// Bug: a play with a scheduler that requests a step at a past time again and again ended only with its context.
func TestSettings_hurriedScheduler(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3)
	f.run(clustertest.Job("web", cluster.JobService, 3), node(0), node(0), node(1))
	own := func(view func() scheduler.View, applier scheduler.Applier, ids scheduler.IDs) (plan.Scheduler, error) {
		s, err := scheduler.New(scheduler.Config{Snapshot: view, Applier: applier, IDs: ids})
		return hurried{s}, err
	}
	q := plan.Question{Nodes: []cluster.NodeID{node(0)}, At: f.now}
	_, err := plan.Play(t.Context(), f.FSM.Store(), q, plan.Settings{Scheduler: own})
	must.ErrorIs(t, err, plan.ErrStandstill)
	must.StrContains(t, err.Error(), "play stands still: 10000 steps at 2026-01-01T00:00:00Z wrote nothing, and another one is due")
}

func TestLoad_mistakes(t *testing.T) {
	t.Parallel()
	_, err := plan.Load(new(rowview.View))
	must.ErrorContains(t, err, "index is zero")
	orphan := clustertest.Alloc(clustertest.Job("web", cluster.JobService, 1), "a", node(0), epoch())
	orphan.Job = nil
	_, err = plan.Load(rowview.New(1, nil, nil, []*cluster.Allocation{orphan}, nil))
	must.ErrorIs(t, err, statestore.ErrJobNotFound)
}
