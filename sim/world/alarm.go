package world

import "time"

// clockCheck is how often a waiting server checks its clock.
const clockCheck = 30 * time.Second

// alarm decides when to step a server's drainer or scheduler: after a wake-up, or at a time on
// the server's clock. Like a real timer, it counts the world's time even if the clock jumps,
// and it reads the clock only when it fires.
type alarm struct {
	woken chan struct{} // capacity 1
	// wokenAt is the arrival time of a wake-up that was sent; zero is none.
	wokenAt time.Time
	// merging: the wake-up waits for the next one. Both then arrive together.
	merging bool
	// spurious: the wake-up that was sent has no reason.
	spurious bool
	// stepped is the time of the last step. until is the time at which the timer is due.
	// Both are times of the server's clock; zero is none.
	stepped, until time.Time
	// fires is when the timer fires, in the world's time; zero is never.
	fires time.Time
}

func newAlarm() alarm { return alarm{woken: make(chan struct{}, 1)} }

// wake requests a step. It never blocks.
func (a *alarm) wake() { send(a.woken) }

// wakeSpuriously requests a step without a reason.
func (a *alarm) wakeSpuriously() {
	a.spurious = a.spurious || len(a.woken) == 0
	a.wake()
}

// send sends to a channel of capacity 1 without blocking.
func send(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // the channel already holds a wake-up
	}
}

// receive sets the arrival time of a wake-up that was sent. travel returns its delay, and
// whether it waits for the next wake-up.
func (a *alarm) receive(now time.Time, travel func() (delay time.Duration, merges bool)) {
	if len(a.woken) == 0 || !a.wokenAt.IsZero() && !a.merging {
		return
	}
	if a.merging {
		a.wokenAt, a.merging = now, false
		return
	}
	delay, merges := travel()
	a.wokenAt, a.merging = now.Add(delay), merges
	if merges {
		<-a.woken // so that the next one can be sent
	}
}

// pending reports whether a wake-up was sent and no step has followed.
func (a *alarm) pending() bool { return len(a.woken) > 0 || !a.wokenAt.IsZero() }

// deliverBy limits the arrival time of a wake-up that was sent.
func (a *alarm) deliverBy(by time.Time) {
	if !a.wokenAt.IsZero() {
		a.wokenAt, a.merging = sooner(a.wokenAt, by), false
	}
}

// startStep clears the wake-up, at a time of the server's clock.
func (a *alarm) startStep(clock time.Time) {
	a.stepped = clock
	a.wokenAt, a.merging, a.spurious = time.Time{}, false, false
	select {
	case <-a.woken:
	default:
	}
}

// set sets the timer to a time of the server's clock, which is ahead of the world's time.
// A zero time stops the timer.
func (a *alarm) set(until time.Time, ahead time.Duration) {
	a.until, a.fires = until, time.Time{}
	if !until.IsZero() {
		a.fires = until.Add(-ahead)
	}
}

// clockSet makes a running timer read the clock at the next check, because the clock was set.
func (a *alarm) clockSet(now time.Time) {
	if check := now.Add(clockCheck); check.Before(a.fires) {
		a.fires = check
	}
}

// next is the time of the next step or clock check; zero is never.
func (a *alarm) next() time.Time {
	if a.wokenAt.IsZero() || !a.fires.IsZero() && a.fires.Before(a.wokenAt) {
		return a.fires
	}
	return a.wokenAt
}

// ready reports whether a step is due. If the timer fires before the clock shows the time, the
// alarm waits for the remaining time. But if the clock was set back to before the last step,
// the step is due at once, because the remaining time is unknown.
func (a *alarm) ready(now time.Time, ahead time.Duration) bool {
	if !a.wokenAt.IsZero() && !now.Before(a.wokenAt) {
		return true
	}
	if a.fires.IsZero() || now.Before(a.fires) {
		return false
	}
	if clock := now.Add(ahead); clock.Before(a.until) && !clock.Before(a.stepped) {
		a.set(a.until, ahead)
		return false
	}
	return true
}
