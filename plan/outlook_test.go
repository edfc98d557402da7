package plan_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/plan"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// look plays the running drains, and returns the time left of the drain of a node and the reason.
func (f *fixture) look(o *plan.Outlook, n cluster.NodeID) (left time.Duration, later string, known bool) {
	f.Helper()
	must.NoError(f.TB, o.Play(f.Context(), f.FSM.Store(), f.now, plan.Settings{}))
	e, known := o.Estimates()[f.State().Node(n).Drain.ID]
	if !known {
		return 0, "", false
	}
	return e.Ends.Sub(f.now), e.Later, true
}

// The time left is unknown without observed times. With them it falls as time passes, also in the middle of a
// start and of a stop. It rises only when something happened, or did not happen when expected, and has the
// reason.
func TestOutlook(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 4)
	j := f.Job(clustertest.Job("web", cluster.JobService, 2))
	for range 5 {
		f.learn(j, node(2), 40*time.Second, 20*time.Second, 10*time.Second)
	}
	f.run(j, node(0), node(1))
	f.run(clustertest.Job("new", cluster.JobService, 2), node(3), node(2))
	f.Drain(node(0), &cluster.DrainSpec{})
	f.Drain(node(3), &cluster.DrainSpec{})
	var o plan.Outlook
	_, _, known := f.look(&o, node(3))
	must.False(t, known)
	before, later, known := f.look(&o, node(0))
	must.True(t, known)
	must.Eq(t, "", later)
	must.Between(t, 8*time.Second, before, 12*time.Second) // one stop

	f.Mark(cluster.MarkPaced, "web-0")
	f.Plan(j, []cluster.AllocID{"web-0"})
	f.now = f.now.Add(5 * time.Second)
	left, later, _ := f.look(&o, node(0))
	must.Eq(t, "", later)
	must.Between(t, before-6*time.Second, left, before-4*time.Second)

	f.now = f.now.Add(40 * time.Second) // the stop takes longer than ever
	left, later, _ = f.look(&o, node(0))
	must.Positive(t, left)
	must.Eq(t, "allocations of web take longer to stop than before", later)
}

// A later end names what has happened.
func TestOutlook_later(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		spec    cluster.DrainSpec
		happens func(*fixture)
	}{
		"the drain of node n00001 began": {cluster.DrainSpec{}, func(f *fixture) { f.Drain(node(1), &cluster.DrainSpec{}) }},
		"node n00003 is down": {cluster.DrainSpec{}, func(f *fixture) {
			f.Must(&shims.NodeUpdateStatus{At: f.now, Node: node(3), Status: cluster.NodeDown})
		}},
		"the drain was changed": {cluster.DrainSpec{Deadline: time.Second}, func(f *fixture) { f.Drain(node(0), &cluster.DrainSpec{}) }},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, 5)
			j := f.Job(clustertest.Job("web", cluster.JobService, 6))
			for range 5 {
				f.learn(j, node(2), 40*time.Second, 20*time.Second, 10*time.Second)
			}
			f.run(j, node(0), node(0), node(0), node(1), node(1), node(3))
			f.Drain(node(0), &c.spec)
			var o plan.Outlook
			before, _, known := f.look(&o, node(0))
			must.True(t, known)
			c.happens(f)
			left, later, known := f.look(&o, node(0))
			must.True(t, known)
			must.Greater(t, before+5*time.Second, left)
			must.Eq(t, want, later)
		})
	}
}

// A paused drain has no time left, and the play of the others does not wait for it. After the resume it has one again.
func TestOutlook_paused(t *testing.T) {
	t.Parallel()
	for _, of := range []cluster.NodeID{node(0), ""} {
		t.Run("pause of "+string(of), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, 4)
			j := f.Job(clustertest.Job("web", cluster.JobService, 3))
			for range 5 {
				f.learn(j, node(2), 40*time.Second, 20*time.Second, 10*time.Second)
			}
			f.run(j, node(0), node(0), node(1))
			f.Drain(node(0), &cluster.DrainSpec{Deadline: time.Hour})
			f.Drain(node(1), &cluster.DrainSpec{Deadline: -1})
			knows := func(o *plan.Outlook, want bool) {
				t.Helper()
				_, _, known := f.look(o, node(0))
				must.Eq(t, want, known)
				_, _, known = f.look(o, node(1))
				must.True(t, known)
			}
			var o plan.Outlook
			knows(&o, true)
			f.pause(of, true)
			knows(&o, false)
			r := result.Of(plan.Play(t.Context(), f.FSM.Store(), plan.Question{Running: true, At: f.now}, plan.Settings{Typical: true})).OK(t)
			must.Less(t, 2*time.Minute, r.Took)
			must.False(t, r.Cut)
			f.now = f.now.Add(2 * time.Hour) // past the deadline that it had
			f.pause(of, false)
			_, later, known := f.look(&o, node(0))
			must.True(t, known)
			must.Eq(t, "", later)
		})
	}
}

// If all running drains are paused, a play ends at once.
func TestPlay_onlyPausedDrains(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2)
	f.run(clustertest.Job("web", cluster.JobService, 2), node(0), node(1))
	f.Drain(node(0), &cluster.DrainSpec{Deadline: time.Hour})
	f.pause("", true)
	r := result.Of(plan.Play(t.Context(), f.FSM.Store(), plan.Question{Running: true, At: f.now}, plan.Settings{})).OK(t)
	must.Eq(t, &plan.Result{}, r)
}
