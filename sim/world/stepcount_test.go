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

// busyWatcher is a watcher that always requests another step at once.
type busyWatcher struct{ drainer.DrainingJobWatcher }

func (r busyWatcher) Step(reading drainer.Reading) time.Time {
	r.DrainingJobWatcher.Step(reading)
	return reading.Now
}

// A run that reaches the limit of steps is livelocked if its drainer wakes itself. It is not
// livelocked if the run is only long, or if faults cause many steps.
func TestLoop_Livelocked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		watcher    drainer.DrainingJobWatcherFactory
		faults     []scenario.Fault
		livelocked bool
	}{
		"a long run": {},
		"leader/flap": {faults: []scenario.Fault{
			{Name: scenario.LeaderFlap, For: time.Hour},
		}},
		"watch/spurious and leader/flap": {faults: []scenario.Fault{
			{Name: scenario.WatchSpurious, For: time.Hour}, {Name: scenario.LeaderFlap, For: time.Hour, Delay: exactly(50 * time.Millisecond)},
		}},
		"a drainer that wakes itself": {livelocked: true, watcher: func(e drainer.Env) drainer.DrainingJobWatcher {
			return busyWatcher{drainer.NewJobWatcher(e)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := world.Options{MaxSteps: 3000, Drainer: drainer.NodeDrainerConfig{JobWatcher: c.watcher}}
			if c.faults == nil && !c.livelocked {
				o.MaxSteps = 20
			}
			w := newFixture(t, o)
			w.drain()
			for _, f := range c.faults {
				w.at(armed, func() { must.NoError(t, w.Faults.Arm(f)) })
			}
			_, err := w.Run(world.Epoch.Add(time.Hour))
			must.True(t, errors.Is(err, world.ErrTooManySteps), must.Sprint(err))
			must.Eq(t, c.livelocked, w.Livelocked(), must.Sprint(err))
		})
	}
}
