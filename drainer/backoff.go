package drainer

import (
	"log/slog"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Backoff spaces retries: Base after the first failure, twice that after the second, and so on up
// to Max.
type Backoff struct {
	// Base is the first wait. Zero is [DefaultRetryBase].
	Base time.Duration
	// Max is the longest wait. Zero is [DefaultRetryMax], or Base if that is longer.
	Max time.Duration
}

// after is the wait after the nth failure in a row, n >= 1.
func (b Backoff) after(n int) time.Duration {
	wait := b.Base
	for range n - 1 {
		if wait >= b.Max/2 {
			return b.Max
		}
		wait *= 2
	}
	return min(wait, b.Max)
}

// attempts counts consecutive failures. The zero value is none.
type attempts struct {
	count int
	// since is the time of the last failure, until the time of the next attempt.
	since, until time.Time
}

func (a *attempts) failed(b Backoff, now time.Time) {
	a.count++
	a.since, a.until = now, now.Add(b.after(a.count))
}

// wait returns the time of the next attempt, or zero if it may be made now. A clock that was set
// back to before the last failure ends the wait. Otherwise the wait would be longer by that amount.
func (a attempts) wait(now time.Time) time.Time {
	if now.Before(a.since) || !now.Before(a.until) {
		return time.Time{}
	}
	return a.until
}

// retry spaces the writes of one item that was answered and is still wanted.
type retry struct {
	attempts
	drain cluster.DrainID // the drain that wanted it
	surge bool            // it is a request for a replacement, after which the mark follows
	// accepted means that the newest answer was "applied".
	accepted bool
}

// answered notes an answer to the item.
func (r *retry) answered(accepted bool, b Backoff, now time.Time) {
	r.accepted = accepted
	r.failed(b, now)
}

// is reports whether the item is the mark or request.
func (r *retry) is(m rules.Mark) bool { return r.drain == m.Drain && r.surge == m.Surge }

// wait returns the time of the next attempt, or zero if it may be made now. It logs once that the
// item is still wanted although it was answered as applied.
func (r *retry) wait(now time.Time, logger *slog.Logger) time.Time {
	if r.accepted {
		r.accepted = false
		logger.Error("a write was answered as applied, but the state does not show it")
	}
	return r.attempts.wait(now)
}

// retries spaces the marks of one node or group that were answered and are still wanted: the FSM
// refused them, or the applier answered "applied" and the state does not show them. keep removes
// marks that are no longer wanted. The zero value is empty.
type retries map[cluster.AllocID]*retry

// answered notes an answer to a mark.
func (r *retries) answered(m rules.Mark, accepted bool, b Backoff, now time.Time) {
	if *r == nil {
		*r = retries{}
	}
	if item := (*r)[m.Alloc]; item == nil || !item.is(m) {
		(*r)[m.Alloc] = &retry{drain: m.Drain, surge: m.Surge}
	}
	(*r)[m.Alloc].answered(accepted, b, now)
}

// waits reports whether a wanted mark has to wait.
func (r retries) waits(m rules.Mark, now time.Time) bool {
	item := r[m.Alloc]
	return item != nil && item.is(m) && !item.attempts.wait(now).IsZero()
}

// keep removes all marks except the wanted ones, and returns when the first waiting mark may be
// retried, or zero.
func (r *retries) keep(wanted []rules.Mark, now time.Time, logger *slog.Logger) (again time.Time) {
	if len(*r) == 0 {
		return time.Time{}
	}
	kept := retries{}
	for _, m := range wanted {
		if item := (*r)[m.Alloc]; item != nil && item.is(m) {
			kept[m.Alloc] = item
			again = earliest(again, item.wait(now, logger.With("alloc", m.Alloc, "node", m.Node, "drain", m.Drain)))
		}
	}
	*r = kept
	return again
}
