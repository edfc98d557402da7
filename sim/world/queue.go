package world

import (
	"cmp"
	"time"

	alarms "github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
)

// event is one future step.
type event struct {
	at time.Time
	// tie orders the events of one time. The loop draws it from the seed when it queues the
	// event. So different seeds give different orders, and one seed always gives the same.
	tie uint64
	// sequence keeps events of equal time and tie in the order in which they were queued.
	sequence uint64
	kind     Kind
	// cause is the step that queued the event.
	cause int
	// slot is the slot of the actor to step, or nil.
	slot *slot
	// do is the function to run, if slot is nil.
	do func() error
}

// Compare orders the events of one time.
func (e *event) Compare(o *event) int {
	return cmp.Or(cmp.Compare(e.tie, o.tie), cmp.Compare(e.sequence, o.sequence))
}

// queue holds events, ordered by time, tie and sequence.
type queue struct {
	events alarms.Heap[*event]
	pushed uint64
}

func (q *queue) push(e *event) {
	q.pushed++
	e.sequence = q.pushed
	q.events.Set(e, e.at)
}

// next returns the first event, or nil. The event stays in the queue.
func (q *queue) next() *event { return q.events.FirstKey() }

func (q *queue) remove(e *event) { q.events.Remove(e) }
