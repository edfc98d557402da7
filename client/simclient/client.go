package simclient

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// client is the client of one node.
type client struct {
	node  cluster.NodeID
	tasks map[cluster.AllocID]*task
	// order are the tasks by allocation id.
	order []*task
	// reads counts how often all of the node's rows were read.
	reads uint64

	// unreachable says that the node was unreachable when it was last read.
	unreachable bool
	// mayChangeLate says that a failed report may still be applied later, without an answer. A
	// later report is applied after it, so an applied later report ends this.
	mayChangeLate bool
	// listed says that the client is in the fleet's outbox.
	listed bool
}

// stepped is the result of a client's step.
type stepped struct {
	// next is when the client has something to do again; zero is not before a change.
	next time.Time
	// unreported says that there is something to report.
	unreported bool
	// waitsFor are the nodes of predecessors that tasks wait for, maybe twice.
	waitsFor []cluster.NodeID
}

// step reads the changes and does what is due. A client whose node is unreachable learns
// nothing and reports nothing.
func (c *client) step(o *Options, state State, v visit, now time.Time) (result stepped) {
	if v.readAll {
		c.readAll(o, state, now)
	} else {
		for _, id := range v.settled {
			c.check(state, id, now)
		}
	}
	if c.unreachable {
		return stepped{}
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
		result.next = earliest(result.next, t.next(now))
		result.unreported = result.unreported || t.unreported()
	}
	return result
}

// rewind moves all times of the client's tasks.
func (c *client) rewind(by time.Duration) {
	for _, t := range c.tasks { //lint:order each task by itself
		t.runs, t.judged = moved(t.runs, by), moved(t.judged, by)
		t.ends, t.changes = moved(t.ends, by), moved(t.changes, by)
	}
}

// readAll reads all live allocations of the node.
func (c *client) readAll(o *Options, state State, now time.Time) {
	c.unreachable = !state.Node(c.node).Reachable()
	c.reads++
	live, next := 0, 0
	var t *task
	for a := range state.LiveAllocsByNode(c.node) {
		t, next = c.shown(a, next)
		switch {
		case t == nil && c.unreachable:
			continue
		case t == nil:
			b := o.Behave(a, o.stream(a.ID))
			t = newTask(a, b, o.verdict(a, b), o.waits(a), now)
			c.begin(t)
		case !c.unreachable:
			t.update(a, now)
		}
		t.seen = c.reads
		live++
	}
	if live == len(c.tasks) {
		return
	}
	c.order = slices.DeleteFunc(c.order, func(t *task) bool {
		if t.seen == c.reads {
			return false
		}
		delete(c.tasks, t.alloc.ID)
		return true
	})
}

// shown returns the task of an allocation in the state, or nil, and the position in the order
// of tasks from which to search for the next. The state yields most allocations in that order
// and most rows are unchanged, so a task is usually next to the one before it. Otherwise it
// is found by its id, so that the cost of a row does not grow with their number.
func (c *client) shown(a *cluster.Allocation, from int) (t *task, next int) {
	for at := from; at < min(from+3, len(c.order)); at++ {
		if t := c.order[at]; t.alloc == a {
			return t, at + 1
		}
	}
	t = c.tasks[a.ID]
	if from < len(c.order) && c.order[from] == t {
		from++
	}
	return t, from
}

// check reads one allocation after a report of it was answered.
func (c *client) check(state State, id cluster.AllocID, now time.Time) {
	t := c.tasks[id]
	if t == nil {
		return
	}
	switch a := state.Alloc(id); {
	case a == nil || a.ClientTerminal():
		at, _ := c.find(id)
		c.order = slices.Delete(c.order, at, at+1)
		delete(c.tasks, id)
	case !c.unreachable:
		t.update(a, now)
	}
}

// begin adds a task.
func (c *client) begin(t *task) {
	at, _ := c.find(t.alloc.ID)
	c.order = slices.Insert(c.order, at, t)
	c.tasks[t.alloc.ID] = t
}

// find returns the position of an allocation's task in the order, or where it belongs.
func (c *client) find(id cluster.AllocID) (at int, found bool) {
	return slices.BinarySearchFunc(c.order, id, func(t *task, id cluster.AllocID) int { return cmp.Compare(t.alloc.ID, id) })
}
