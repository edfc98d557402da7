package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// onlooker reads what the leader's drainer sees, with a feed of its own.
type onlooker struct {
	drainer.StateReader
	drainer.Feed
	wake chan struct{}
}

func (w *town) onlooker() *onlooker {
	o := &onlooker{StateReader: w.LeadersSight(), wake: make(chan struct{}, 1)}
	o.Feed = o.StateReader.Subscribe(o.wake)
	return o
}

// woken reports whether the feed has rung since it was last asked.
func (o *onlooker) woken() bool {
	select {
	case <-o.wake:
		return true
	default:
		return false
	}
}

// While a view is stale nothing is told of what it does not show; then everything is.
func TestSight_stale(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		const from, until = drains, drains + 10*time.Second
		for _, c := range []struct {
			follows, edited bool
			all             bool
		}{{false, false, false}, {false, true, false}, {true, false, false}, {true, true, true}} {
			w := newTown(t, o)
			var o *onlooker
			w.at(from, func() {
				o = w.onlooker()
				must.NoError(t, w.Arm(scenario.Fault{Name: scenario.ViewStale, Delay: exactly(until - from)}))
				w.WakeDrainer()
			})
			w.at(from+time.Second, func() {
				if c.edited { // before anybody follows it
					must.NoError(t, w.EditJob(web, func(j *cluster.Job) { j.Priority++ }))
				}
			})
			w.at(from+2*time.Second, func() {
				if c.follows {
					o.Follow(web)
				}
			})
			drained := false
			if !c.follows {
				drained = true
				w.at(from+3*time.Second, func() { w.Drain("n4", cluster.DrainSpec{}, "") })
			}
			w.at(until-1, func() {
				must.False(t, o.woken())
				must.True(t, o.Take().Empty())
				must.Nil(t, o.Snapshot().Node("n4").Drain)
			})
			w.at(until+1, func() {
				must.Eq(t, drained || c.all, o.woken())
				changes := o.Take()
				must.Eq(t, c.all, changes.All)
				must.Eq(t, drained, len(changes.Nodes) == 1)
				must.Eq(t, drained, o.Snapshot().Node("n4").Draining())
			})
			w.run(t, until+time.Second)
		}
	})
}

// A stale view does not hide that its store was replaced: that is told at once, and no
// more of the rest than before.
func TestSight_staleAndRestored(t *testing.T) {
	t.Parallel()
	w := newTown(t, world.Options{})
	var o *onlooker
	w.at(drains, func() {
		o = w.onlooker()
		must.NoError(t, w.Arm(scenario.Fault{Name: scenario.ViewStale, Delay: exactly(time.Minute)}))
		w.WakeDrainer()
	})
	w.at(drains+time.Second, func() {
		w.Drain("n4", cluster.DrainSpec{}, "")
	})
	w.at(drains+2*time.Second, func() {
		must.True(t, o.Take().Empty())
		must.NoError(t, w.Restore())
		must.Eq(t, drainer.Changes{Abandoned: true}, o.Take())
	})
	w.run(t, drains+2*time.Second)
}

// A leader that is behind is told that anything may have changed when it has caught
// up; one that is not is told of nothing.
func TestSight_behind(t *testing.T) {
	t.Parallel()
	seen := map[bool]int{}
	for seed := range uint64(30) {
		w := newTown(t, world.Options{Servers: 3, Views: true, Seed: seed + 1})
		var o *onlooker
		behind := false
		w.at(armed, func() {
			must.NoError(t, w.Elect(true))
			o = w.onlooker()
			behind = w.Truth().Index() > o.Snapshot().Index()
			seen[behind]++
			must.True(t, o.Take().Empty())
		})
		w.at(armed+time.Second, func() {
			must.Eq(t, behind, o.woken())
			must.Eq(t, drainer.Changes{All: behind}, o.Take())
			must.Eq(t, w.Truth().Index(), o.Snapshot().Index())
		})
		w.run(t, lasts)
	}
	must.Positive(t, seen[true])
	must.Positive(t, seen[false])
}
