package simclient

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// client is the client of one node.
type client struct {
	node  cluster.NodeID
	tasks map[cluster.AllocID]*task
	// order are the tasks by allocation id, or nil if it is to be found anew.
	order []*task
	// steps counts the steps.
	steps uint64

	// mute says that the client was out of touch when last stepped.
	mute bool
	// listed says that the client is in the fleet's outbox.
	listed bool
}

// stepped is what a step of a client comes to.
type stepped struct {
	// next is when the client has something to do again, zero if it has not
	// unless something changes.
	next time.Time
	// unsaid says that there is something to report.
	unsaid bool
	// waitsFor are the nodes of predecessors that tasks wait for, maybe twice.
	waitsFor []cluster.NodeID
}

// step takes in the state and does what is due. A client that is out of touch
// learns nothing and says nothing.
func (c *client) step(o *Options, state State, now time.Time) (result stepped) {
	c.mute = !state.Node(c.node).Reachable()
	c.steps++
	live := 0
	for a := range state.LiveAllocsByNode(c.node) {
		t := c.tasks[a.ID]
		switch {
		case t == nil && c.mute:
			continue
		case t == nil:
			b := o.Behave(a, o.stream(a.ID))
			t = newTask(a, b, o.verdict(a, b), now)
			c.tasks[a.ID] = t
			c.order = nil
		case !c.mute:
			t.hear(a, now)
		}
		t.seen = c.steps
		live++
	}
	if live < len(c.tasks) {
		maps.DeleteFunc(c.tasks, func(_ cluster.AllocID, t *task) bool { return t.seen != c.steps })
	}
	if len(c.order) != len(c.tasks) {
		c.order = nil
	}
	if c.mute {
		return stepped{}
	}
	for _, t := range c.inOrder() {
		if t.waits {
			if before := state.Alloc(t.alloc.PreviousAllocation); before == nil || before.ClientTerminal() {
				t.inherit(now)
			} else {
				result.waitsFor = append(result.waitsFor, before.NodeID)
			}
		}
		t.advance(now)
		result.next = earliest(result.next, t.next(now))
		result.unsaid = result.unsaid || t.unsaid()
	}
	return result
}

// rewind moves all times of the client's tasks.
func (c *client) rewind(by time.Duration) {
	for _, t := range c.tasks { //lint:order each task by itself
		t.runs, t.judged, t.ends = moved(t.runs, by), moved(t.judged, by), moved(t.ends, by)
	}
}

// inOrder returns the tasks by id.
func (c *client) inOrder() []*task {
	if c.order == nil {
		for _, id := range slices.Sorted(maps.Keys(c.tasks)) {
			c.order = append(c.order, c.tasks[id])
		}
	}
	return c.order
}
