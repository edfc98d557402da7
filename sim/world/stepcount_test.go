package world_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// restless is a watcher that always needs another step at once.
type restless struct{ drainer.DrainingJobWatcher }

func (r restless) Step(look drainer.Look) time.Time {
	r.DrainingJobWatcher.Step(look)
	return look.Now
}

// A run at the limit of steps goes in circles if its drainer wakes itself, and not because the
// run is long or because faults cause many steps.
func TestLoop_InCircles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		watcher drainer.DrainingJobWatcherFactory
		faults  []scenario.Fault
		circles bool
	}{
		"a long run": {},
		"leader/flap": {faults: []scenario.Fault{
			{Name: scenario.LeaderFlap, For: time.Hour},
		}},
		"watch/spurious and leader/flap": {faults: []scenario.Fault{
			{Name: scenario.WatchSpurious, For: time.Hour}, {Name: scenario.LeaderFlap, For: time.Hour, Delay: exactly(50 * time.Millisecond)},
		}},
		"a restless drainer": {circles: true, watcher: func(e drainer.Env) drainer.DrainingJobWatcher {
			return restless{drainer.NewJobWatcher(e)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := world.Options{MaxSteps: 3000, Drainer: drainer.NodeDrainerConfig{JobWatcher: c.watcher}}
			if c.faults == nil && !c.circles {
				o.MaxSteps = 20
			}
			w := newFixture(t, o)
			w.drain()
			for _, f := range c.faults {
				w.at(armed, func() { must.NoError(t, w.Faults.Arm(f)) })
			}
			_, err := w.Run(world.Epoch.Add(time.Hour))
			must.True(t, errors.Is(err, world.ErrTooManySteps), must.Sprint(err))
			must.Eq(t, c.circles, w.InCircles(), must.Sprint(err))
		})
	}
}
