package world

import (
	"container/heap"
	"time"
)

// event is something that is to happen at a time.
type event struct {
	at time.Time
	// tie orders what happens at one time. It is drawn from the seed when the event
	// is queued, so that every order of things that happen together is tried, and
	// the same seed tries the same.
	tie uint64
	// sequence orders what is still alike: first come, first served.
	sequence uint64
	kind     Kind
	// cause is the step in which it was asked for.
	cause int
	// slot is the actor that is to be stepped, or nil; generation is how often it
	// had changed its mind by then.
	slot       *slot
	generation uint64
	// do is what is to be done if no actor is to be stepped, or nil.
	do func() error
}

// queue holds what is to happen, by time, tie and sequence.
type queue struct {
	events eventHeap
	pushed uint64
}

func (q *queue) push(e *event) {
	q.pushed++
	e.sequence = q.pushed
	heap.Push(&q.events, e)
}

// next is the first event that still holds, or nil. It stays in the queue.
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
