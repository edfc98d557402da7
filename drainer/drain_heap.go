package drainer

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/alarm"
)

// deadlineHeap is the built-in [DrainDeadlineNotifier].
//
// A batch waits for the latest deadline that is less than the coalescing window after
// the earliest: it is never early, and late by less than the window. Which that is, is
// looked up once, when the earliest comes: until then a change costs the same however
// many deadlines are close together.
type deadlineHeap struct {
	window time.Duration
	batch  chan []cluster.NodeID // capacity 1

	mu    sync.Mutex
	posts []deadlinePost // guarded by mu

	// pending and fire belong to Step. fire is when the batch is to be offered whose
	// first deadline has come, zero if none has.
	pending alarm.Heap[cluster.NodeID]
	fire    time.Time
}

// deadlinePost is a Watch or a Remove that has not taken effect.
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
	h.post(deadlinePost{node: n, deadline: d})
}

func (h *deadlineHeap) Remove(n cluster.NodeID) { h.post(deadlinePost{node: n, remove: true}) }

func (h *deadlineHeap) NextBatch() <-chan []cluster.NodeID { return h.batch }

func (h *deadlineHeap) post(p deadlinePost) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.posts = append(h.posts, p)
}

// Step takes in what was posted and offers the nodes whose time has come.
func (h *deadlineHeap) Step(look Look) time.Time {
	h.mu.Lock()
	posts := h.posts
	h.posts = nil
	h.mu.Unlock()
	for _, p := range posts {
		if p.remove {
			h.pending.Remove(p.node)
		} else {
			h.pending.Set(p.node, p.deadline)
		}
	}
	first := h.pending.First()
	if h.pending.Len() == 0 || look.Now.Before(first) {
		h.fire = time.Time{}
		return first
	}
	if h.fire.IsZero() {
		h.fire = h.fireAt()
	}
	// What was watched meanwhile may not bear to wait that long.
	if look.Now.Before(h.fire) && h.fire.Before(first.Add(h.window)) {
		return h.fire
	}
	h.fire = time.Time{}
	h.offer(h.pending.Pop(look.Now))
	return h.pending.First()
}

// fireAt finds when the next batch is to be offered. It looks at the deadlines
// within the first's window, and no further.
func (h *deadlineHeap) fireAt() time.Time {
	first := h.pending.First()
	if h.window <= 0 {
		return first
	}
	return h.pending.LastBefore(first.Add(h.window))
}

// offer puts the batch where the receiver looks, together with an unread one.
func (h *deadlineHeap) offer(nodes []cluster.NodeID) {
	select {
	case unread := <-h.batch:
		nodes = append(nodes, unread...)
		slices.Sort(nodes)
		nodes = slices.Compact(nodes)
	default:
	}
	select {
	case h.batch <- nodes:
	default: // only Step sends, and it has just made room
	}
}
