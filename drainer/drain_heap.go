package drainer

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
	"github.com/seed-f9cf0b39/nodedrain/cluster/inbox"
)

// deadlineHeap is the built-in [DrainDeadlineNotifier].
//
// A batch waits for the latest deadline that is less than the coalescing window after the earliest.
// So a batch is never early, and late by less than the window. The heap searches for this deadline
// once, when the earliest passes. So the cost of a change does not depend on how many deadlines are
// close together.
type deadlineHeap struct {
	window time.Duration
	batch  chan []cluster.NodeID // capacity 1

	posts inbox.Inbox[deadlinePost]

	// pending and fire belong to Step. fire is when the next batch is offered, or zero while no
	// deadline has passed.
	pending alarm.Heap[cluster.NodeID]
	fire    time.Time
}

// deadlinePost is a call of Watch or Remove that has not taken effect.
type deadlinePost struct {
	node     cluster.NodeID
	deadline time.Time
	remove   bool
}

// NewDeadlineHeap is the [DrainDeadlineNotifierFactory] of the built-in notifier.
func NewDeadlineHeap(env Env) DrainDeadlineNotifier {
	return &deadlineHeap{window: env.DeadlineCoalesce, batch: make(chan []cluster.NodeID, 1)}
}

func (h *deadlineHeap) Watch(n cluster.NodeID, d time.Time) {
	h.posts.Post(deadlinePost{node: n, deadline: d})
}

func (h *deadlineHeap) Remove(n cluster.NodeID) { h.posts.Post(deadlinePost{node: n, remove: true}) }

func (h *deadlineHeap) NextBatch() <-chan []cluster.NodeID { return h.batch }

// Step applies the posts and offers the nodes whose deadlines have passed.
func (h *deadlineHeap) Step(reading Reading) time.Time {
	for _, p := range h.posts.Take() {
		if p.remove {
			h.pending.Remove(p.node)
		} else {
			h.pending.Set(p.node, p.deadline)
		}
	}
	first := h.pending.First()
	if h.pending.Len() == 0 || reading.Now.Before(first) {
		h.fire = time.Time{}
		return first
	}
	if h.fire.IsZero() {
		h.fire = h.fireAt()
	}
	// A deadline that was added since may be too early for this wait.
	if reading.Now.Before(h.fire) && h.fire.Before(first.Add(h.window)) {
		return h.fire
	}
	h.fire = time.Time{}
	put(h.batch, h.pending.Pop(reading.Now), func(unread, batch []cluster.NodeID) []cluster.NodeID {
		batch = append(batch, unread...)
		slices.Sort(batch)
		return slices.Compact(batch)
	})
	return h.pending.First()
}

// fireAt finds when the next batch is offered. It reads only the deadlines within the first
// deadline's window.
func (h *deadlineHeap) fireAt() time.Time {
	first := h.pending.First()
	if h.window <= 0 {
		return first
	}
	return h.pending.LastBefore(first.Add(h.window))
}
