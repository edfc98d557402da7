package scheduler

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// after is the wait after the nth failure in a row, n >= 1: RetryBase, then twice the
// previous wait, up to RetryMax.
func (c Config) after(n int) time.Duration {
	wait := c.RetryBase
	for range n - 1 {
		if wait >= c.RetryMax/2 {
			return c.RetryMax
		}
		wait *= 2
	}
	return min(wait, c.RetryMax)
}

// attempts counts failures in a row.
type attempts struct {
	count int
	// until is when the next attempt may be made; zero is at once.
	until time.Time
}

// retries delays the plans of each job after failures. The zero value is not ready for use.
type retries struct {
	config Config
	jobs   map[cluster.JobKey]attempts
}

// failed makes the job wait, longer with each failure in a row. After the first partial
// refusal the job does not wait: it is common that the state changed since the plan.
func (r *retries) failed(job cluster.JobKey, refused bool, now time.Time) {
	a := r.jobs[job]
	a.count++
	a.until = now
	if !refused || a.count > 1 {
		a.until = now.Add(r.config.after(a.count))
	}
	r.jobs[job] = a
}

func (r *retries) succeeded(job cluster.JobKey) { delete(r.jobs, job) }

// waits returns whether the job must wait, and until when.
func (r *retries) waits(job cluster.JobKey, now time.Time) (until time.Time, waiting bool) {
	a, failed := r.jobs[job]
	if failed {
		a.until = noLater(a.until, now.Add(r.config.after(a.count)))
		r.jobs[job] = a
	}
	return a.until, now.Before(a.until)
}

// noLater bounds the time at which a wait ends by the time at which a wait that begins now would end. A
// clock that was set back would otherwise make the wait longer.
func noLater(at, latest time.Time) time.Time {
	if at.After(latest) {
		return latest
	}
	return at
}
