package scripted

import (
	"sync"
	"time"
)

// Loop is a [Clock] in real time, or in the time of testing/synctest. It runs functions of one time
// in the order in which they were added. All use of the doubles over a loop must be inside
// [Loop.Do], which makes it safe for concurrent use.
type Loop struct {
	mu      sync.Mutex
	pending agenda
}

var _ Clock = (*Loop)(nil)

// NewLoop returns a loop. It has no goroutine of its own between two times.
func NewLoop() *Loop { return &Loop{} }

// Do runs do alone: no other function of the loop runs at the same time. do must not block.
func (l *Loop) Do(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

// Now is [Clock.Now].
func (*Loop) Now() time.Time { return time.Now() }

// After is [Clock.After]. Call it, and the function that it returns, inside [Loop.Do] only.
func (l *Loop) After(d time.Duration, do func()) (cancel func()) {
	d = max(d, 0)
	canceled := false
	l.pending.add(time.Now().Add(d), func() {
		if !canceled {
			do()
		}
	})
	time.AfterFunc(d, l.run)
	return func() { canceled = true }
}

// run runs what is due.
func (l *Loop) run() {
	l.Do(func() {
		for do := l.pending.due(time.Now()); do != nil; do = l.pending.due(time.Now()) {
			do()
		}
	})
}
