package machine

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// clock is the clock of one node, with its future events. Events of the same time run in random
// order, or in the order in which they were added if rng is nil.
type clock struct {
	now    time.Time
	rng    *rand.Rand
	events alarm.Heap[*event]
	added  uint64
}

var _ scripted.Clock = (*clock)(nil)

type event struct {
	tie, sequence uint64
	do            func()
}

// Compare orders the events of one time.
func (e *event) Compare(o *event) int {
	return cmp.Or(cmp.Compare(e.tie, o.tie), cmp.Compare(e.sequence, o.sequence))
}

// Now is the time of the node.
func (c *clock) Now() time.Time { return c.now }

// After runs do later.
func (c *clock) After(d time.Duration, do func()) (cancel func()) {
	c.added++
	e := &event{sequence: c.added, do: do}
	if c.rng != nil {
		e.tie = c.rng.Uint64()
	}
	c.events.Set(e, c.now.Add(max(0, d)))
	return func() { c.events.Remove(e) }
}

// next returns the time of the next event, or zero.
func (c *clock) next() time.Time { return c.events.First() }

// runOne runs the next event that is due, if there is one.
func (c *clock) runOne() bool {
	e, due := c.events.PopFirst(c.now)
	if due {
		e.do()
	}
	return due
}

// coin draws a random bool.
func (c *clock) coin() bool { return c.rng != nil && c.rng.Uint64()&1 == 0 }
