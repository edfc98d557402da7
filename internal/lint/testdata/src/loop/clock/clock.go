// Package clock is a fixture: steps that read clocks.
package clock

import "time"

// T decides.
type T struct {
	timer *time.Timer
	local *time.Location
}

// Step is where the walk begins.
func (t *T) Step(now time.Time) (wakeAt time.Time) {
	_ = time.Now()         // want "time.Now reads the clock: .*clock.T.Step\)"
	_ = time.Since(now)    // want "time.Since reads the clock"
	_ = time.Until(now)    // want "time.Until reads the clock"
	time.Sleep(1)          // want "time.Sleep waits"
	time.AfterFunc(1, t.f) // want "time.AfterFunc starts a timer"
	_ = time.NewTimer(1)   // want "time.NewTimer starts a timer"
	_ = time.NewTicker(1)  // want "time.NewTicker starts a timer"
	_ = time.After(1)      // want "time.After starts a timer"
	_ = time.Tick(1)       // want "time.Tick starts a timer"
	t.timer.Reset(1)       // want "Timer\).Reset starts a timer"
	t.local = time.Local   // want "time.Local depends on the machine"
	deep(now)
	later := time.Now // want "time.Now reads the clock"
	_ = later
	return now.Add(time.Second).Truncate(time.Minute)
}

func (t *T) f() {}

func deep(now time.Time) { deeper(now) }

func deeper(now time.Time) {
	_ = time.Since(now) // want "time.Since .*in clock.T.Step → clock.deep → clock.deeper"
}

// Shell is reached by no step.
func Shell() time.Time { return time.Now() }

// Other has a Step that takes no time: not ours.
type Other struct{}

// Step may read the clock.
func (Other) Step() time.Time { return time.Now() }
