package drainer

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// alarms is a heap of times by key: each key has one or none. The zero value
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

// alarm is one key's time. queue[a.position] == a.
type alarm[K any] struct {
	key      K
	at       time.Time
	position int
}

// set gives the key a time, in place of any it had.
func (s *alarms[K]) set(key K, at time.Time) {
	if a := s.index[key]; a != nil {
		a.at = at
		heap.Fix(&s.queue, a.position)
		return
	}
	if s.index == nil {
		s.index = map[K]*alarm[K]{}
	}
	a := &alarm[K]{key: key, at: at}
	s.index[key] = a
	heap.Push(&s.queue, a)
}

// wake sets the key's time, or removes it if the time is zero.
func (s *alarms[K]) wake(key K, at time.Time) {
	if at.IsZero() {
		s.remove(key)
		return
	}
	s.set(key, at)
}

// remove forgets the key's time.
func (s *alarms[K]) remove(key K) {
	if a := s.index[key]; a != nil {
		heap.Remove(&s.queue, a.position)
		delete(s.index, key)
	}
}

// len is how many keys have a time.
func (s *alarms[K]) len() int { return len(s.queue) }

// first is the earliest time, or zero if there is none.
func (s *alarms[K]) first() time.Time {
	if len(s.queue) == 0 {
		return time.Time{}
	}
	return s.queue[0].at
}

// pop takes out every key whose time has come, in key order.
func (s *alarms[K]) pop(now time.Time) []K {
	var keys []K
	for len(s.queue) > 0 && !now.Before(s.queue[0].at) {
		a := heap.Pop(&s.queue).(*alarm[K])
		delete(s.index, a.key)
		keys = append(keys, a.key)
	}
	slices.SortFunc(keys, func(a, b K) int { return a.Compare(b) })
	return keys
}

// lastBefore is the latest time that is before the closing time, or the
// first if none is. It looks only at those and their children: in a heap no
// child is earlier than its parent.
func (s *alarms[K]) lastBefore(closing time.Time) time.Time {
	last := s.first()
	open := []int{0}
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if i >= len(s.queue) || !s.queue[i].at.Before(closing) {
			continue
		}
		last = latest(last, s.queue[i].at)
		open = append(open, 2*i+1, 2*i+2)
	}
	return last
}

// alarmQueue is a heap.Interface: queue[0] is the earliest, no element is
// earlier than queue[(i-1)/2], and queue[i].position == i for every i.
type alarmQueue[K alarmKey[K]] []*alarm[K]

func (q alarmQueue[K]) Len() int { return len(q) }

func (q alarmQueue[K]) Less(i, j int) bool {
	return cmp.Or(q[i].at.Compare(q[j].at), q[i].key.Compare(q[j].key)) < 0
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
