package drainer

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// deadlineHeap is the built-in [DrainDeadlineNotifier].
//
// A batch is due at the latest deadline that is less than the coalescing window
// after the earliest: never early, and late by less than the window.
type deadlineHeap struct {
	window time.Duration
	batch  chan []cluster.NodeID // capacity 1

	mu    sync.Mutex
	posts []deadlinePost // guarded by mu

	// pending belongs to Step.
	pending alarms[cluster.NodeID]
}

// deadlinePost is a Watch or a Remove that has not taken effect.
type deadlinePost struct {
	node     cluster.NodeID
	deadline Deadline
	remove   bool
}

// NewDeadlineHeap is the [DrainDeadlineNotifierFactory] of the built-in notifier.
func NewDeadlineHeap(env Env) DrainDeadlineNotifier {
	return &deadlineHeap{window: env.DeadlineCoalesce, batch: make(chan []cluster.NodeID, 1)}
}

func (h *deadlineHeap) Watch(n cluster.NodeID, d Deadline) {
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
			h.pending.remove(p.node)
		} else {
			h.pending.set(p.node, p.deadline)
		}
	}
	if fire := h.fireAt(); h.pending.len() > 0 && fire.due(look.Now) {
		h.offer(h.pending.pop(look.Now))
	}
	return h.fireAt().At
}

// fireAt is when the next batch is to be offered; the zero Deadline if nothing
// is watched.
func (h *deadlineHeap) fireAt() Deadline {
	first := h.pending.first()
	if first.Force || h.window <= 0 || h.pending.len() == 0 {
		return first
	}
	return h.pending.lastBefore(first.At.Add(h.window))
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
