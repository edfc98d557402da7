package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// MonitorPatience is how long a monitor continues without an answer from any address. It is longer
// than the restart of a machine.
const MonitorPatience = 10 * time.Minute

// Contact is the time at which a server last answered a monitor. It is safe for concurrent use.
type Contact struct {
	// Patience is how long the reads may go on without an answer from any address.
	Patience time.Duration

	mu   sync.Mutex
	last time.Time // guarded by mu
}

// Answered records an answer.
func (c *Contact) Answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
}

// Silent is the time since the last answer.
func (c *Contact) Silent() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.last)
}

// Over reports whether the last answer is too old.
func (c *Contact) Over() bool { return c.Silent() > c.Patience }

// Waits returns what a monitor waits for that has no answer for long, with the time until it gives up, or empty.
func (c *Contact) Waits(api *client.Client) string {
	silent := c.Silent()
	if silent < settling {
		return ""
	}
	return fmt.Sprintf("%s, at most %s more", AnAnswer(api), Rough(c.Patience-silent))
}

// Retry repeats a read until it succeeds, the server refuses it, or no read has succeeded for the
// patience of the contact.
func Retry[T any](ctx context.Context, c *Contact, read func() (T, client.Answer, error)) (T, client.Answer, error) {
	for {
		out, answer, err := read()
		switch {
		case err == nil:
			c.Answered()
			return out, answer, nil
		case client.Refused(err) || ctx.Err() != nil || c.Over() || !Pause(ctx, client.Pause):
			return out, answer, err
		}
	}
}

// Following returns a read that waits for a state after an index, which is that of the last answer
// or zero. Any server answers. A server that has just started may be behind the last answer. Then
// the leader decides, as it does without an index: deleted rows also lower the index.
func Following[T any](index uint64, wait time.Duration, read func(client.Query) (T, client.Answer, error)) func() (T, client.Answer, error) {
	return func() (T, client.Answer, error) {
		if index == 0 {
			return read(client.Query{})
		}
		out, answer, err := read(client.Query{Index: index, Wait: wait, Stale: true})
		if client.NotFound(err) || err == nil && answer.Index < index {
			return read(client.Query{})
		}
		return out, answer, err
	}
}

// Outage holds what a monitor has printed about lost connections and answers that cannot be decoded. Each
// outage prints each address once. It ends when answers come for the settling time without a lost
// connection: servers without a leader answer some requests, and others fail again and again.
type Outage struct {
	// began and movedAt are the times of the first and of the last move, and answeredAt that of the last answer.
	began, movedAt, answeredAt time.Time
	// tried are the addresses that the outage has printed, and unanswered those tried since the last answer.
	// undecoded are those whose answers could not be decoded, as it has printed.
	tried, unanswered, undecoded []string
	// silent means that the outage has printed that no server answers, and partial that some requests are
	// not answered.
	silent, partial bool
	// why is the last printed reason of a server without a leader, or empty.
	why string
	// leaderless is since when no server had a leader for a request that needs one, or zero.
	leaderless time.Time
}

// settling is how long no connection is lost at the end of an outage, and how long no server answers before
// the monitor prints it.
const settling = 5 * time.Second

// Moved returns the line for a move, or empty.
func (o *Outage) Moved(m client.Move, patience time.Duration) string {
	o.movedAt = time.Now()
	if o.began.IsZero() {
		o.began = o.movedAt
	}
	all := slices.Contains(o.unanswered, m.To)
	if !all {
		o.unanswered = append(o.unanswered, m.To)
	}
	_, undecoded := errors.AsType[*client.UndecodedError](m.Err)
	switch {
	case undecoded && !slices.Contains(o.undecoded, m.From):
		o.undecoded = append(o.undecoded, m.From)
		return movedText(m)
	case !undecoded && !slices.Contains(o.tried, m.To):
		o.tried = append(o.tried, m.To)
		return movedText(m)
	case o.silent:
		return ""
	case all && time.Since(o.answeredAt) >= settling:
		o.silent = true
		return fmt.Sprintf("no server answers, retrying for %s", patience)
	case o.answeredAt.After(o.began) && !undecoded:
		return o.partly("", patience)
	}
	return ""
}

// partly returns the line that some requests are not answered, once in an outage for each reason.
func (o *Outage) partly(why string, patience time.Duration) string {
	if o.partial && (why == "" || why == o.why) {
		return ""
	}
	o.partial, o.why = true, why
	return fmt.Sprintf("some requests are not answered: %s; retrying for %s", cmp.Or(why, "the servers may have no leader"), patience)
}

// Leaderless notes that no server had a leader for a request that needs one. Other requests are answered, and no
// connection is lost. The outage lasts until Led. why is the reason that the server has, or empty. It returns a
// line, or empty.
func (o *Outage) Leaderless(why string, patience time.Duration) string {
	if o.leaderless.IsZero() {
		o.leaderless = time.Now()
	}
	return o.partly(SingleLine(why), patience)
}

// Led notes that a leader has answered.
func (o *Outage) Led() { o.leaderless = time.Time{} }

// Waits returns what is waited for if the servers have no leader, and since when. Otherwise it is empty.
func (o *Outage) Waits() (what string, since time.Time) {
	if o.leaderless.IsZero() {
		return "", time.Time{}
	}
	what = "a leader of the servers"
	if o.why != "" {
		what += ": " + o.why
	}
	return what, o.leaderless
}

// Answered notes an answer, which may end the outage. It returns a line, or empty.
func (o *Outage) Answered() (line string) {
	o.answeredAt, o.unanswered = time.Now(), nil
	switch {
	case o.silent:
		o.silent = false
		return "a server answers again"
	case time.Since(o.movedAt) < settling || !o.leaderless.IsZero():
		return ""
	case o.partial:
		line = "all requests are answered again"
	}
	*o = Outage{answeredAt: o.answeredAt}
	return line
}

// Pause waits. It reports false if the context ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
