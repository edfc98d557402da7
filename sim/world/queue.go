package world

import (
	"container/heap"
	"time"
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
	// slot is the slot of the actor to step, or nil. generation is the slot's generation
	// when the event was queued.
	slot       *slot
	generation uint64
	// do is the function to run, if slot is nil.
	do func() error
}

// queue holds events, ordered by time, tie and sequence.
type queue struct {
	events eventHeap
	pushed uint64
}

func (q *queue) push(e *event) {
	q.pushed++
	e.sequence = q.pushed
	heap.Push(&q.events, e)
}

// next returns the first valid event, or nil. The event stays in the queue.
func (q *queue) next() *event {
	for len(q.events) > 0 {
		e := q.events[0]
		if e.slot == nil || e.generation == e.slot.generation {
			return e
		}
		heap.Pop(&q.events)
	}
	return nil
}

func (q *queue) pop() { heap.Pop(&q.events) }

// eventHeap is a heap.Interface.
type eventHeap []*event

var _ heap.Interface = (*eventHeap)(nil)

func (h eventHeap) Len() int      { return len(h) }
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h eventHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if c := a.at.Compare(b.at); c != 0 {
		return c < 0
	}
	if a.tie != b.tie {
		return a.tie < b.tie
	}
	return a.sequence < b.sequence
}

func (h *eventHeap) Push(x any) { *h = append(*h, x.(*event)) }

func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
