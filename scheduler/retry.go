package scheduler

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// after is the wait after the nth failure in a row, n >= 1: RetryBase, and twice
// as much each time, up to RetryMax.
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

// retries spaces the plans of each job. The zero value is not ready for use.
type retries struct {
	config Config
	jobs   map[cluster.JobKey]attempts
}

// failed has the job wait longer than the last time. A plan that was refused in
// part may go again at once the first time: the world moved, which is ordinary.
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

// waits says until when the job waits, if it does.
func (r *retries) waits(job cluster.JobKey, now time.Time) (until time.Time, waiting bool) {
	until = r.jobs[job].until
	return until, now.Before(until)
}
