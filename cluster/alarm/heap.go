package alarm

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// Heap keeps at most one time for each key. The zero value is empty. A change costs the logarithm
// of the number of keys. It is not safe for concurrent use.
type Heap[K Key[K]] struct {
	queue queue[K]
	index map[K]*alarm[K]
}

// Key identifies a time. Compare breaks ties.
type Key[K any] interface {
	comparable
	Compare(K) int
}

// alarm is one key's time. queue[a.position] == a.
type alarm[K any] struct {
	key      K
	at       time.Time
	position int
}

// Set sets the key's time and replaces an earlier one.
func (h *Heap[K]) Set(key K, at time.Time) {
	if a := h.index[key]; a != nil {
		a.at = at
		heap.Fix(&h.queue, a.position)
		return
	}
	if h.index == nil {
		h.index = map[K]*alarm[K]{}
	}
	a := &alarm[K]{key: key, at: at}
	h.index[key] = a
	heap.Push(&h.queue, a)
}

// Wake sets the key's time, or removes it if the time is zero.
func (h *Heap[K]) Wake(key K, at time.Time) {
	if at.IsZero() {
		h.Remove(key)
		return
	}
	h.Set(key, at)
}

// Remove forgets the key's time.
func (h *Heap[K]) Remove(key K) {
	if a := h.index[key]; a != nil {
		heap.Remove(&h.queue, a.position)
		delete(h.index, key)
	}
}

// At is the key's time, or zero if it has none.
func (h *Heap[K]) At(key K) time.Time {
	if a := h.index[key]; a != nil {
		return a.at
	}
	return time.Time{}
}

// Shift moves all times by the same duration.
func (h *Heap[K]) Shift(by time.Duration) {
	for _, a := range h.queue {
		a.at = a.at.Add(by)
	}
}

// Len is how many keys have a time.
func (h *Heap[K]) Len() int { return len(h.queue) }

// First is the earliest time, or zero if there is none.
func (h *Heap[K]) First() time.Time {
	if len(h.queue) == 0 {
		return time.Time{}
	}
	return h.queue[0].at
}

// FirstKey is the key with the earliest time, or the zero key if there is none. Of several equal times it
// is the lowest key.
func (h *Heap[K]) FirstKey() (key K) {
	if len(h.queue) > 0 {
		key = h.queue[0].key
	}
	return key
}

// Pop removes and returns every key whose time has come, in key order.
func (h *Heap[K]) Pop(now time.Time) []K {
	var keys []K
	for key, due := h.PopFirst(now); due; key, due = h.PopFirst(now) {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b K) int { return a.Compare(b) })
	return keys
}

// PopFirst removes and returns the key with the earliest time if that time has come. Of several
// equal times it takes the lowest key.
func (h *Heap[K]) PopFirst(now time.Time) (key K, due bool) {
	if len(h.queue) == 0 || now.Before(h.queue[0].at) {
		return key, false
	}
	a := heap.Pop(&h.queue).(*alarm[K])
	delete(h.index, a.key)
	return a.key, true
}

// LastBefore is the latest time before the closing time, or the first time if none is before it.
// It reads only those times and their children: in a heap no child is earlier than its parent.
func (h *Heap[K]) LastBefore(closing time.Time) time.Time {
	last := h.First()
	open := []int{0}
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if i >= len(h.queue) || !h.queue[i].at.Before(closing) {
			continue
		}
		if h.queue[i].at.After(last) {
			last = h.queue[i].at
		}
		open = append(open, 2*i+1, 2*i+2)
	}
	return last
}

// queue is a heap.Interface: queue[0] is the earliest, no element is earlier than
// queue[(i-1)/2], and queue[i].position == i for every i.
type queue[K Key[K]] []*alarm[K]

// Len is for container/heap.
func (q queue[K]) Len() int { return len(q) }

// Less is for container/heap.
func (q queue[K]) Less(i, j int) bool {
	return cmp.Or(q[i].at.Compare(q[j].at), q[i].key.Compare(q[j].key)) < 0
}

// Swap is for container/heap.
func (q queue[K]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].position, q[j].position = i, j
}

// Push is for container/heap.
func (q *queue[K]) Push(x any) {
	a := x.(*alarm[K])
	a.position = len(*q)
	*q = append(*q, a)
}

// Pop is for container/heap.
func (q *queue[K]) Pop() any {
	old := *q
	last := len(old) - 1
	a := old[last]
	old[last] = nil // the slice outlives the alarm
	*q = old[:last]
	return a
}

// Earliest returns the earlier of two times, where zero means none.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
