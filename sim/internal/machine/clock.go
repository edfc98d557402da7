package machine

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/driver/scripted"
)

// clock is the clock of one node, with its future events. Events of the same time run in random
// order, or in the order in which they were added if rng is nil.
type clock struct {
	now    time.Time
	rng    *rand.Rand
	events events
	added  uint64
}

var _ scripted.Clock = (*clock)(nil)

type event struct {
	at       time.Time
	tie      uint64
	sequence uint64
	// do is nil if the event was cancelled.
	do func()
}

// Now is the time of the node.
func (c *clock) Now() time.Time { return c.now }

// After runs do later.
func (c *clock) After(d time.Duration, do func()) (cancel func()) {
	c.added++
	e := &event{at: c.now.Add(max(0, d)), sequence: c.added, do: do}
	if c.rng != nil {
		e.tie = c.rng.Uint64()
	}
	heap.Push(&c.events, e)
	return func() { e.do = nil }
}

// first returns the next event, or nil. It removes cancelled events.
func (c *clock) first() *event {
	for len(c.events) > 0 && c.events[0].do == nil {
		heap.Pop(&c.events)
	}
	if len(c.events) == 0 {
		return nil
	}
	return c.events[0]
}

// next returns the time of the next event, or zero.
func (c *clock) next() time.Time {
	if e := c.first(); e != nil {
		return e.at
	}
	return time.Time{}
}

// runOne runs the next event that is due, if there is one.
func (c *clock) runOne() bool {
	e := c.first()
	if e == nil || e.at.After(c.now) {
		return false
	}
	heap.Pop(&c.events)
	e.do()
	return true
}

// coin draws a random bool.
func (c *clock) coin() bool { return c.rng != nil && c.rng.Uint64()&1 == 0 }

type events []*event

var _ heap.Interface = (*events)(nil)

func (h events) Len() int      { return len(h) }
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h events) Less(i, j int) bool {
	a, b := h[i], h[j]
	if c := a.at.Compare(b.at); c != 0 {
		return c < 0
	}
	if a.tie != b.tie {
		return a.tie < b.tie
	}
	return a.sequence < b.sequence
}

func (h *events) Push(x any) { *h = append(*h, x.(*event)) }

func (h *events) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
