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

// attempts counts failures in a row.
type attempts struct {
	count int
	// until is when the next attempt may be made; zero is at once.
	until time.Time
}

func (a *attempts) failed(b backoff, now time.Time) {
	a.count++
	a.until = now.Add(b.after(a.count))
}
