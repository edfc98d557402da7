package conformance

import (
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Trace notes the calls of one test, so that the author of a plugin sees what was done. Its zero value
// has no call. It is safe for concurrent use.
type Trace struct {
	mu    sync.Mutex
	began time.Time // guarded by mu
	calls []noted   // guarded by mu
	text  string    // guarded by mu; the end of the plugin's log
}

// Start makes now the time zero of the calls.
func (t *Trace) Start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = time.Now()
}

// Logger is a node of a suite that records what the plugin has written to its log.
type Logger interface {
	// Log returns the last lines of the log.
	Log() string
}

// Keep notes the end of the plugin's log.
func (t *Trace) Keep(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = text
}

// logged returns the end of the plugin's log.
func (t *Trace) logged() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text
}

// noted is a call with its answer.
type noted struct {
	at, took     time.Duration
	call, answer string
}

// mostCalls bounds the calls that a trace keeps.
const mostCalls = 100

// Begin notes a call. The function that it returns notes the answer.
func (t *Trace) Begin(call string, args ...any) func(answer string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.calls)
	if n == mostCalls {
		return func(string) {}
	}
	t.calls = append(t.calls, noted{at: time.Since(t.began), call: fmt.Sprintf(call, args...), answer: "no answer yet"})
	return func(answer string) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.calls[n].answer, t.calls[n].took = answer, time.Since(t.began)-t.calls[n].at
	}
}

// lines describes the calls in their order.
func (t *Trace) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, n := range t.calls {
		line := fmt.Sprintf("at %v: %s: %s", Rounded(n.at), n.call, n.answer)
		if took := Rounded(n.took); took > 0 {
			line += fmt.Sprintf(", after %v", took)
		}
		lines = append(lines, line)
	}
	return lines
}

// ErrorText describes the error of a call; nil is "ok".
func ErrorText(err error) string {
	if err == nil {
		return "ok"
	}
	return fmt.Sprintf("error of class %q: %v", driver.ClassOf(err), err)
}

// Rounded is a duration for people.
func Rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
