package world

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// travel is how long a wake-up takes to the drainer, and whether it waits for
// another.
func (l *leadership) travel() (delay time.Duration, merges bool) {
	w := l.world
	delay = w.draw("wake", w.options.Wake)
	if len(w.faults.armed) == 0 || l.drains.spurious {
		return delay, false
	}
	if later, strikes := w.strike(scenario.WatchSpurious, target{}); strikes {
		w.unlessCalm(later, func() error { l.drains.wakeForNothing(); return nil })
	}
	if longer, strikes := w.strike(scenario.WatchDelay, target{}); strikes {
		delay += longer
	}
	if longer, strikes := w.strike(scenario.WatchCoalesce, target{}); strikes {
		return delay + longer, true
	}
	return delay, false
}

// attention is how long the scheduler takes to turn to what has come.
func (l *leadership) attention() (delay time.Duration, merges bool) {
	w := l.world
	delay = w.draw("schedule", w.options.Schedule)
	if longer, strikes := w.strike(scenario.SchedSlow, target{}); strikes {
		delay += longer
	}
	return delay, false
}
