package scripted

import (
	"cmp"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
)

// Loop is a [Clock] in real time, or in the time of testing/synctest. It runs functions of one time
// in the order in which they were added. All use of the doubles over a loop must be inside
// [Loop.Do], which makes it safe for concurrent use.
type Loop struct {
	mu      sync.Mutex
	pending alarm.Heap[*pendingCall]
	added   uint64
}

// pendingCall is a function that runs later.
type pendingCall struct {
	sequence uint64
	do       func()
}

// Compare orders the functions of one time.
func (p *pendingCall) Compare(o *pendingCall) int { return cmp.Compare(p.sequence, o.sequence) }

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
	l.added++
	p := &pendingCall{l.added, do}
	l.pending.Set(p, time.Now().Add(d))
	time.AfterFunc(d, l.run)
	return func() { l.pending.Remove(p) }
}

// run runs what is due.
func (l *Loop) run() {
	l.Do(func() {
		for p, due := l.pending.PopFirst(time.Now()); due; p, due = l.pending.PopFirst(time.Now()) {
			p.do()
		}
	})
}
