package presence

import (
	"math/rand/v2"
	"time"
)

// FirstRetry is the longest wait after the first failure of a request.
const FirstRetry = 500 * time.Millisecond

// Backoff spaces the retries of one request. The zero value has no failure. It belongs to one
// goroutine.
type Backoff struct{ failures int }

// Next counts a failure and returns the wait before the retry. The wait doubles with each failure in
// a row, from [FirstRetry] to most, or is FirstRetry if most is shorter. It is then shortened by a
// random part of up to one half, so that clients that failed together do not retry together.
func (b *Backoff) Next(most time.Duration, random *rand.Rand) time.Duration {
	wait := FirstRetry
	for range b.failures {
		if wait >= most {
			break
		}
		wait *= 2
	}
	b.failures++
	wait = max(FirstRetry, min(wait, most))
	return wait - time.Duration(random.Int64N(int64(wait/2)+1))
}

// Reset ends the series of failures.
func (b *Backoff) Reset() { b.failures = 0 }
