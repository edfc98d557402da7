package drainer

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// compare orders deadlines: forced ones first, then by time.
func (d Deadline) compare(o Deadline) int {
	switch {
	case d.Force && o.Force:
		return 0
	case d.Force:
		return -1
	case o.Force:
		return 1
	}
	return d.At.Compare(o.At)
}

// due reports whether the deadline has come.
func (d Deadline) due(now time.Time) bool { return d.Force || !now.Before(d.At) }

// alarms is a heap of deadlines by key: each key has one or none. The zero value
// is empty. It costs the logarithm of what it holds to change.
type alarms[K alarmKey[K]] struct {
	queue alarmQueue[K]
	index map[K]*alarm[K]
}

// alarmKey is what alarms are kept by; Compare breaks ties between them.
type alarmKey[K any] interface {
	comparable
	Compare(K) int
}

// alarm is one key's deadline. queue[a.position] == a.
type alarm[K any] struct {
	key      K
	deadline Deadline
	position int
}

// set gives the key a deadline, in place of any it had.
func (s *alarms[K]) set(key K, d Deadline) {
	if a := s.index[key]; a != nil {
		a.deadline = d
		heap.Fix(&s.queue, a.position)
		return
	}
	if s.index == nil {
		s.index = map[K]*alarm[K]{}
	}
	a := &alarm[K]{key: key, deadline: d}
	s.index[key] = a
	heap.Push(&s.queue, a)
}

// wake sets the key's deadline to a time, or removes it if the time is zero.
func (s *alarms[K]) wake(key K, at time.Time) {
	if at.IsZero() {
		s.remove(key)
		return
	}
	s.set(key, Deadline{At: at})
}

// remove forgets the key's deadline.
func (s *alarms[K]) remove(key K) {
	if a := s.index[key]; a != nil {
		heap.Remove(&s.queue, a.position)
		delete(s.index, key)
	}
}

// len is how many keys have a deadline.
func (s *alarms[K]) len() int { return len(s.queue) }

// first is the earliest deadline; the zero Deadline if there is none.
func (s *alarms[K]) first() Deadline {
	if len(s.queue) == 0 {
		return Deadline{}
	}
	return s.queue[0].deadline
}

// pop takes out every key whose deadline has come, in key order.
func (s *alarms[K]) pop(now time.Time) []K {
	var keys []K
	for len(s.queue) > 0 && s.queue[0].deadline.due(now) {
		a := heap.Pop(&s.queue).(*alarm[K])
		delete(s.index, a.key)
		keys = append(keys, a.key)
	}
	slices.SortFunc(keys, func(a, b K) int { return a.Compare(b) })
	return keys
}

// lastBefore is the latest deadline that is before the closing time, or the
// first if none is. It looks only at those and their children: in a heap no
// child is earlier than its parent.
func (s *alarms[K]) lastBefore(closing time.Time) Deadline {
	last := s.first()
	open := []int{0}
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if i >= len(s.queue) || !s.queue[i].deadline.At.Before(closing) {
			continue
		}
		if d := s.queue[i].deadline; last.compare(d) < 0 {
			last = d
		}
		open = append(open, 2*i+1, 2*i+2)
	}
	return last
}

// alarmQueue is a heap.Interface: queue[0] is the earliest, no element is
// earlier than queue[(i-1)/2], and queue[i].position == i for every i.
type alarmQueue[K alarmKey[K]] []*alarm[K]

func (q alarmQueue[K]) Len() int { return len(q) }

func (q alarmQueue[K]) Less(i, j int) bool {
	return cmp.Or(q[i].deadline.compare(q[j].deadline), q[i].key.Compare(q[j].key)) < 0
}

func (q alarmQueue[K]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].position, q[j].position = i, j
}

// Push implements heap.Interface.
func (q *alarmQueue[K]) Push(x any) {
	a := x.(*alarm[K])
	a.position = len(*q)
	*q = append(*q, a)
}

// Pop implements heap.Interface.
func (q *alarmQueue[K]) Pop() any {
	old := *q
	last := len(old) - 1
	a := old[last]
	old[last] = nil // the slice outlives the alarm
	*q = old[:last]
	return a
}

var _ heap.Interface = (*alarmQueue[cluster.GroupKey])(nil)
