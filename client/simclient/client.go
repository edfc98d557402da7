package simclient

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
)

type client struct {
	node  cluster.NodeID
	tasks map[cluster.AllocID]*task
	// order are the tasks by allocation id.
	order []*task
	// reads counts the reads of the node's rows.
	reads uint64

	// unreachable: the node was unreachable when it was last read. awaySince is since when.
	unreachable bool
	awaySince   time.Time
	// listed: the client is in the fleet's outbox.
	listed bool
}

// stepped is the result of a client's step.
type stepped struct {
	// next is when the client has something to do again; zero is not before a change.
	next time.Time
	// unreported: there is something to report.
	unreported bool
	// waitsFor are the nodes of predecessors that tasks wait for, maybe twice.
	waitsFor []cluster.NodeID
}

// step does what is due, by the rows of the last read. A client whose node is unreachable receives
// nothing and reports nothing. It stops the tasks whose groups require this.
func (c *client) step(state State, now time.Time) (result stepped) {
	if c.unreachable {
		return c.stopAway(now)
	}
	for _, t := range c.order {
		if t.waits {
			if before := state.Alloc(t.alloc.PreviousAllocation); before == nil || before.ClientTerminal() {
				t.succeed(now)
			} else {
				result.waitsFor = append(result.waitsFor, before.NodeID)
			}
		}
		t.advance(now)
		result.next = alarm.Earliest(result.next, t.next(now))
		result.unreported = result.unreported || t.unreported()
	}
	return result
}

// stopAway stops the tasks that must stop because the client has not reached the servers for so
// long.
func (c *client) stopAway(now time.Time) (result stepped) {
	for _, t := range c.order {
		g := t.alloc.Job.Group(t.alloc.TaskGroup)
		if g == nil || g.Disconnect.StopOnClientAfter <= 0 || t.stopping {
			continue
		}
		if at := c.awaySince.Add(g.Disconnect.StopOnClientAfter); passed(at, now) {
			t.stop(at, now)
		} else {
			result.next = alarm.Earliest(result.next, at)
		}
	}
	return result
}

// rewind moves all times of the client and of its tasks.
func (c *client) rewind(by time.Duration) {
	c.awaySince = moved(c.awaySince, by)
	for _, t := range c.order {
		if t.crashes != nil {
			t.crashes.base = moved(t.crashes.base, by)
		}
		for _, at := range []*time.Time{&t.runs, &t.judged, &t.ends, &t.changes} {
			*at = moved(*at, by)
		}
	}
}

// read reads the allocations of the node that are live, and those whose end the servers have no
// report of.
func (c *client) read(o *Options, state State, now time.Time) {
	was := c.unreachable
	c.unreachable = !state.Node(c.node).Reachable()
	if c.unreachable {
		if !was {
			c.awaySince = now
		}
		return // its tasks continue
	}
	c.reads++
	live := 0
	for _, rows := range [...]iter.Seq[*cluster.Allocation]{state.LiveAllocsByNode(c.node), state.Unconfirmed(c.node)} {
		for a := range rows {
			t := c.tasks[a.ID]
			if t == nil {
				b := o.Behave(a, o.stream(a.ID))
				t = newTask(a, b, o, now)
				c.begin(t)
			} else {
				t.update(a, now)
			}
			t.read = c.reads
			live++
		}
	}
	if live == len(c.tasks) {
		return
	}
	c.order = slices.DeleteFunc(c.order, func(t *task) bool {
		if t.read == c.reads {
			return false
		}
		delete(c.tasks, t.alloc.ID)
		return true
	})
}

func (c *client) begin(t *task) {
	at, _ := slices.BinarySearchFunc(c.order, t, func(a, b *task) int { return cmp.Compare(a.alloc.ID, b.alloc.ID) })
	c.order = slices.Insert(c.order, at, t)
	c.tasks[t.alloc.ID] = t
}
