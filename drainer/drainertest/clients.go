package drainertest

import (
	"container/heap"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// clients steps the clients of all nodes: in order of time, then of node.
type clients struct {
	world  *World
	byNode map[cluster.NodeID]*client
	queue  clientQueue
}

// applied wakes the clients that an entry may have something for.
func (c *clients) applied(a shims.Applied) {
	switch m := a.Message.(type) {
	case *shims.ApplyPlan:
		for _, stop := range m.Stops {
			if alloc := a.After.Alloc(stop.Alloc); alloc != nil {
				c.wake(alloc.NodeID)
			}
		}
		for _, place := range m.Places {
			c.wake(place.NodeID)
		}
	case *shims.NodeRegister:
		c.wake(m.Node.ID)
	case *shims.NodeUpdateStatus:
		c.wake(m.Node)
	case *shims.JobDeregister:
		for alloc := range a.Before.AllocsByJob(m.Job) {
			c.wake(alloc.NodeID)
		}
	}
}

// wake has the node's client stepped now.
func (c *clients) wake(id cluster.NodeID) {
	one := c.byNode[id]
	if one == nil {
		if c.byNode == nil {
			c.byNode = map[cluster.NodeID]*client{}
		}
		one = newClient(c.world, id)
		c.byNode[id] = one
	}
	c.set(one, c.world.now)
}

// set has a client stepped at a time, in place of any it had; zero is never.
func (c *clients) set(one *client, at time.Time) {
	one.at = at
	switch {
	case at.IsZero() && one.position >= 0:
		heap.Remove(&c.queue, one.position)
	case at.IsZero():
	case one.position >= 0:
		heap.Fix(&c.queue, one.position)
	default:
		heap.Push(&c.queue, one)
	}
}

func (c *clients) ready() bool { return len(c.queue) > 0 && !c.world.now.Before(c.queue[0].at) }

func (c *clients) due() time.Time {
	if len(c.queue) == 0 {
		return time.Time{}
	}
	return c.queue[0].at
}

// step steps the first client of the queue.
func (c *clients) step() error {
	one := c.queue[0]
	c.set(one, time.Time{})
	if at := one.step(); !at.IsZero() && (one.at.IsZero() || at.Before(one.at)) {
		c.set(one, at)
	}
	return nil
}

// clientQueue is a heap.Interface of clients by time, then node; queue[i].position
// == i for every i, and that of a client that is not in it is -1.
type clientQueue []*client

func (q clientQueue) Len() int { return len(q) }

func (q clientQueue) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].node < q[j].node
	}
	return q[i].at.Before(q[j].at)
}

func (q clientQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].position, q[j].position = i, j
}

// Push implements heap.Interface.
func (q *clientQueue) Push(x any) {
	c := x.(*client)
	c.position = len(*q)
	*q = append(*q, c)
}

// Pop implements heap.Interface.
func (q *clientQueue) Pop() any {
	old := *q
	last := len(old) - 1
	c := old[last]
	old[last] = nil // the slice outlives the client
	c.position = -1
	*q = old[:last]
	return c
}
