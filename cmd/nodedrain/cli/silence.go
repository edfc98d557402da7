package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

const (
	// firstSilence is how long nothing is printed before a line has what is waited for. Each later line comes
	// after twice the time, but not later than lastSilence after the one before.
	firstSilence = 10 * time.Second
	lastSilence  = 5 * time.Minute
)

// Silence is the time since the last line that had something new. Call Broken first.
type Silence struct{ broken, due time.Time }

// Broken notes a line that has something new.
func (s *Silence) Broken(now time.Time) { s.broken, s.due = now, now.Add(firstSilence) }

// Over reports whether a line with what is waited for is due, and expects it to be printed.
func (s *Silence) Over(now time.Time) bool {
	if now.Before(s.due) {
		return false
	}
	s.due = now.Add(min(max(now.Sub(s.broken), firstSilence), lastSilence))
	return true
}

// StillWaiting is the line for something that has been waited for that long.
func StillWaiting(what string, since time.Duration) string {
	return SingleLine(fmt.Sprintf("Still waiting for %s (%s)", what, Rough(since)))
}

// Waiting prints what is waited for while no other line comes. It owns a goroutine until End. It is safe for
// concurrent use.
type Waiting struct {
	mu      sync.Mutex
	silence Silence // guarded by mu
	stop    chan struct{}
	printer sync.WaitGroup
}

// StartWaiting begins to wait. Both functions are called by the goroutine of the result: print with each line, and
// what for the text of what is waited for, or empty for no line.
func StartWaiting(print func(line string), what func() string) *Waiting {
	w := &Waiting{stop: make(chan struct{})}
	w.Printed()
	began := time.Now()
	w.printer.Go(func() {
		for {
			select {
			case <-time.After(w.next()):
			case <-w.stop:
				return
			}
			if !w.over() {
				continue // another line came
			}
			if text := what(); text != "" {
				print(StillWaiting(text, time.Since(began)))
			}
		}
	})
	return w
}

// Printed notes another line.
func (w *Waiting) Printed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silence.Broken(time.Now())
}

// next returns the time until a line may be due.
func (w *Waiting) next() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Until(w.silence.due)
}

func (w *Waiting) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silence.Over(time.Now())
}

// End ends the lines. None is printed after it returns.
func (w *Waiting) End() {
	close(w.stop)
	w.printer.Wait()
}

// StartWaiting prints to the standard error what the command waits for. The goroutine of the result writes to it, too.
func (c *Base) StartWaiting(what func() string) *Waiting {
	return StartWaiting(func(line string) { fmt.Fprintln(c.Errs, line) }, what)
}

// Await prints what the command waits for until the caller calls end. The requests meanwhile print nothing about
// themselves.
func (c *Call) Await(what func() string) (end func()) {
	before := client.OnRequest(c.API, nil)
	waiting := c.StartWaiting(what)
	return func() {
		waiting.End()
		client.OnRequest(c.API, before)
	}
}

// AnAnswer is the answer of the server in use, as something that is waited for.
func AnAnswer(api *client.Client) string { return "an answer from " + hostOf(api.Address()) }
