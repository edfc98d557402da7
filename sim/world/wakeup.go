package world

import "time"

// clockCheck is how often a server that waits for a time looks at its clock.
const clockCheck = 30 * time.Second

// wakeUp is what a server's goroutine waits for: to be woken, or for a time. It
// waits by the world's time, as real timers do whatever becomes of the clock, and
// looks at the clock when the timer fires.
type wakeUp struct {
	woken chan struct{} // capacity 1
	// wokenAt is when a wake-up that was sent arrives; zero is none.
	wokenAt time.Time
	// merging says that the next one to be sent arrives at once, and takes this one
	// with it.
	merging bool
	// spurious says that the one that was sent is for nothing.
	spurious bool
	// stepped is the time of the last step, and until the time that is waited for,
	// both by the server's clock; zero is none.
	stepped, until time.Time
	// fires is when to look, by the world's time; zero is never.
	fires time.Time
}

func newWakeUp() wakeUp { return wakeUp{woken: make(chan struct{}, 1)} }

// wake asks for a step. It never blocks.
func (u *wakeUp) wake() { send(u.woken) }

// wakeForNothing asks for a step that nobody needs.
func (u *wakeUp) wakeForNothing() {
	u.spurious = u.spurious || len(u.woken) == 0
	u.wake()
}

// send sends to a channel of capacity 1 without blocking.
func send(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // a wake-up is there already
	}
}

// notice takes note of a wake-up that was sent. travel is asked how long it takes
// to arrive, and whether it waits for the next to be sent.
func (u *wakeUp) notice(now time.Time, travel func() (delay time.Duration, merges bool)) {
	if len(u.woken) == 0 || !u.wokenAt.IsZero() && !u.merging {
		return
	}
	if u.merging {
		u.wokenAt, u.merging = now, false
		return
	}
	delay, merges := travel()
	u.wokenAt, u.merging = now.Add(delay), merges
	if merges {
		<-u.woken // to see the next
	}
}

// pending reports whether a wake-up is on its way.
func (u *wakeUp) pending() bool { return len(u.woken) > 0 || !u.wokenAt.IsZero() }

// hasten has a wake-up that is on its way arrive by a time.
func (u *wakeUp) hasten(by time.Time) {
	if !u.wokenAt.IsZero() {
		u.wokenAt, u.merging = sooner(u.wokenAt, by), false
	}
}

// begin is called when a step begins, at the time of the server's clock: it answers
// the wake-up.
func (u *wakeUp) begin(clock time.Time) {
	u.stepped = clock
	u.wokenAt, u.merging, u.spurious = time.Time{}, false, false
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

// jumped is called when the clock was set. Who waits for a time finds out at the next
// look.
func (u *wakeUp) jumped(now time.Time) {
	if look := now.Add(clockCheck); look.Before(u.fires) {
		u.fires = look
	}
}

// wants is when to step next, or to look at the clock; zero is never.
func (u *wakeUp) wants() time.Time {
	if u.wokenAt.IsZero() || !u.fires.IsZero() && u.fires.Before(u.wokenAt) {
		return u.fires
	}
	return u.wokenAt
}

// ready reports whether it is time for a step. A timer that fires before the clock
// is there waits for the rest, unless the clock was set back beyond the last step:
// then who waits for a time cannot know how long that is.
func (u *wakeUp) ready(now time.Time, ahead time.Duration) bool {
	if !u.wokenAt.IsZero() && !now.Before(u.wokenAt) {
		return true
	}
	if u.fires.IsZero() || now.Before(u.fires) {
		return false
	}
	if clock := now.Add(ahead); clock.Before(u.until) && !clock.Before(u.stepped) {
		u.set(u.until, ahead)
		return false
	}
	return true
}
