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

// secondReader reads the states of the leader's drainer, with its own feed.
type secondReader struct {
	drainer.StateReader
	drainer.Feed
	wake chan struct{}
}

func (w *fixture) secondReader() *secondReader {
	o := &secondReader{StateReader: w.Servers.LeaderReader(), wake: make(chan struct{}, 1)}
	o.Feed = o.StateReader.Subscribe(o.wake)
	return o
}

// woken reports whether the feed has woken its reader since the last call.
func (o *secondReader) woken() bool {
	select {
	case <-o.wake:
		return true
	default:
		return false
	}
}

// A stale reader reports no change that it hides. Afterwards it reports all of them.
func TestReader_stale(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		const from, until = drains, drains + 10*time.Second
		for _, c := range []struct {
			follows, edited bool
			all             bool
		}{{false, false, false}, {false, true, false}, {true, false, false}, {true, true, true}} {
			w := newFixture(t, o)
			var o *secondReader
			w.at(from, func() {
				o = w.secondReader()
				must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.ViewStale, Delay: exactly(until - from)}))
				w.Servers.WakeDrainer()
			})
			w.at(from+time.Second, func() {
				if c.edited { // before the job is followed
					w.editJob(web, func(j *cluster.Job) { j.Priority++ })
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
				w.at(from+3*time.Second, func() { w.drainNode("n4", 0) })
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

// A stale reader reports at once that its store was replaced, and hides the other changes.
func TestReader_staleAndRestored(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{})
	var o *secondReader
	w.at(drains, func() {
		o = w.secondReader()
		must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.ViewStale, Delay: exactly(time.Minute)}))
		w.Servers.WakeDrainer()
	})
	w.at(drains+time.Second, func() {
		w.drainNode("n4", 0)
	})
	w.at(drains+2*time.Second, func() {
		must.True(t, o.Take().Empty())
		must.NoError(t, w.Servers.Restore())
		must.Eq(t, drainer.Changes{Abandoned: true}, o.Take())
	})
	w.run(t, drains+2*time.Second)
}

// When a leader that was behind has caught up, its feed reports that anything may have changed.
// The feed of a leader that was not behind reports no change.
func TestReader_behind(t *testing.T) {
	t.Parallel()
	found := map[bool]int{}
	for seed := range uint64(30) {
		w := newFixture(t, world.Options{Servers: 3, Views: true, Seed: seed + 1})
		var o *secondReader
		behind := false
		w.at(armed, func() {
			must.NoError(t, w.Servers.Elect(true))
			o = w.secondReader()
			behind = w.Truth().Index() > o.Snapshot().Index()
			found[behind]++
			must.True(t, o.Take().Empty())
		})
		w.at(armed+time.Second, func() {
			must.Eq(t, behind, o.woken())
			must.Eq(t, drainer.Changes{All: behind}, o.Take())
			must.Eq(t, w.Truth().Index(), o.Snapshot().Index())
		})
		w.run(t, lasts)
	}
	must.Positive(t, found[true])
	must.Positive(t, found[false])
}
