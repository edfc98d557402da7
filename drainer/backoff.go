package drainer

import "time"

// backoff is how what failed is spaced: base after the first failure, twice that
// after the next, and so on up to max.
type backoff struct {
	base, max time.Duration
}

// after is the wait after the nth failure in a row, n >= 1.
func (b backoff) after(n int) time.Duration {
	wait := b.base
	for range n - 1 {
		if wait >= b.max/2 {
			return b.max
		}
		wait *= 2
	}
	return min(wait, b.max)
}

// attempts counts failures in a row. Nil is none, as is the zero value.
type attempts struct {
	count int
	// since is when the last failed, until when the next may be made; zero is at
	// once.
	since, until time.Time
}

func (a *attempts) failed(b backoff, now time.Time) {
	a.count++
	a.since, a.until = now, now.Add(b.after(a.count))
}

// again notes one more failure, and makes the count if there was none.
func (a *attempts) again(b backoff, now time.Time) *attempts {
	if a == nil {
		a = &attempts{}
	}
	a.failed(b, now)
	return a
}

// made is how many have failed.
func (a *attempts) made() int {
	if a == nil {
		return 0
	}
	return a.count
}

// wait is until when the next attempt has to wait, or zero if it may be made now.
// A clock that was set back to before the last failure ends the wait: otherwise
// it would last as much longer.
func (a *attempts) wait(now time.Time) time.Time {
	if a == nil || now.Before(a.since) || !now.Before(a.until) {
		return time.Time{}
	}
	return a.until
}
