package invariant

import "time"

// attempts counts failures in a row. The zero value has none.
type attempts struct {
	count int
	at    time.Time // of the last failure, by the drainer's clock
}

func (a *attempts) fail(clock time.Time) { a.count, a.at = a.count+1, clock }

// retryAfter is how long a drainer waits after the nth failure in a row: RetryBase after
// the first, twice as long after each further one, at most RetryMax.
func (o *Options) retryAfter(n int) time.Duration {
	wait := o.RetryBase
	for ; n > 1 && wait < o.RetryMax; n-- {
		wait *= 2
	}
	return min(wait, o.RetryMax)
}

// until is when the wait after the last failure ends, or zero if nothing has failed.
func (a attempts) until(o *Options) time.Time {
	if a.count == 0 {
		return time.Time{}
	}
	return a.at.Add(o.retryAfter(a.count))
}

// waits reports whether the next attempt has to wait. A clock that was set back to before
// the last failure ends the wait.
func (a attempts) waits(o *Options, clock time.Time) bool {
	return a.count > 0 && !clock.Before(a.at) && clock.Before(a.until(o))
}

// mayEnd reports whether the wait after the last failure may end at a time. The drainer forgets
// the failures of an item that it did not want for a while, so it may have counted fewer.
func (a attempts) mayEnd(o *Options, at time.Time) bool {
	for n := 1; n <= a.count; n++ {
		wait := o.retryAfter(n)
		if at.Equal(a.at.Add(wait)) {
			return true
		}
		if wait >= o.RetryMax {
			return false
		}
	}
	return false
}

// within reports whether a time is within the longest wait after the last failure.
func (a attempts) within(o *Options, at time.Time) bool {
	return a.count > 0 && !at.Before(a.at) && !at.After(a.at.Add(o.RetryMax))
}
