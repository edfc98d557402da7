package world

import "time"

// clockCheck is how often a server that waits for a time looks at its clock.
const clockCheck = 30 * time.Second

// wakeUp is what a server's goroutine waits for: to be woken, or for a time. It
// waits by the world's time, as real timers do whatever becomes of the clock, and
// looks at the clock when the timer fires.
type wakeUp struct {
	woken chan struct{} // capacity 1
	// until is the time that is waited for, by the server's clock; zero is none.
	until time.Time
	// fires is when to look, by the world's time; zero is never.
	fires time.Time
}

func newWakeUp() wakeUp { return wakeUp{woken: make(chan struct{}, 1)} }

// wake asks for a step. It never blocks.
func (u *wakeUp) wake() {
	select {
	case u.woken <- struct{}{}:
	default: // a wake-up is there already
	}
}

// begin is called when a step begins: it answers the wake-up.
func (u *wakeUp) begin() {
	select {
	case <-u.woken:
	default:
	}
}

// set waits for a time of a clock that is ahead of the world's; zero is for none.
func (u *wakeUp) set(until time.Time, ahead time.Duration) {
	u.until, u.fires = until, time.Time{}
	if !until.IsZero() {
		u.fires = until.Add(-ahead)
	}
}

// jumped is called when the clock was set. Who waits finds out at the next look.
func (u *wakeUp) jumped(now time.Time) {
	if look := now.Add(clockCheck); look.Before(u.fires) {
		u.fires = look
	}
}

// ready reports whether it is time for a step. A timer that fires before the
// clock is there waits for the rest.
func (u *wakeUp) ready(now time.Time, ahead time.Duration) bool {
	if len(u.woken) > 0 {
		return true
	}
	if u.fires.IsZero() || now.Before(u.fires) {
		return false
	}
	if now.Add(ahead).Before(u.until) {
		u.set(u.until, ahead)
		return false
	}
	return true
}
