package simclient

import (
	"container/heap"
	"time"
)

// queue is a heap.Interface of clients by time, then node; queue[i].position == i
// for every i, and that of a client that is not in it is -1.
type queue []*client

// set has a client stepped at a time, in place of any it had; zero is never.
func (q *queue) set(c *client, at time.Time) {
	c.at = at
	switch {
	case at.IsZero() && c.position >= 0:
		heap.Remove(q, c.position)
	case at.IsZero():
	case c.position >= 0:
		heap.Fix(q, c.position)
	default:
		heap.Push(q, c)
	}
}

// due is when the first client is to be stepped, zero if none is.
func (q queue) due() time.Time {
	if len(q) == 0 {
		return time.Time{}
	}
	return q[0].at
}

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].node < q[j].node
	}
	return q[i].at.Before(q[j].at)
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].position, q[j].position = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	c := x.(*client)
	c.position = len(*q)
	*q = append(*q, c)
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	last := len(old) - 1
	c := old[last]
	old[last] = nil // the slice outlives the client
	c.position = -1
	*q = old[:last]
	return c
}
