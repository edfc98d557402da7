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
	// looks counts the looks at all that the state shows of the node.
	looks uint64

	// mute says that the client was out of touch when the node was last looked at.
	mute bool
	// doubts says that something it said was not applied, as far as anybody knows, and may
	// be yet: nobody will say when. What it says later is applied later.
	doubts bool
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

// step takes in what the state may show that is new, and does what is due. A client that
// is out of touch learns nothing and says nothing.
func (c *client) step(o *Options, state State, v visit, now time.Time) (result stepped) {
	if v.look {
		c.look(o, state, now)
	} else {
		for _, id := range v.settled {
			c.check(state, id, now)
		}
	}
	if c.mute {
		return stepped{}
	}
	for _, t := range c.order {
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

// look takes in all that the state shows of the node.
func (c *client) look(o *Options, state State, now time.Time) {
	c.mute = !state.Node(c.node).Reachable()
	c.looks++
	live, next := 0, 0
	var t *task
	for a := range state.LiveAllocsByNode(c.node) {
		t, next = c.shown(a, next)
		switch {
		case t == nil && c.mute:
			continue
		case t == nil:
			b := o.Behave(a, o.stream(a.ID))
			t = newTask(a, b, o.verdict(a, b), now)
			c.begin(t)
		case !c.mute:
			t.hear(a, now)
		}
		t.seen = c.looks
		live++
	}
	if live == len(c.tasks) {
		return
	}
	c.order = slices.DeleteFunc(c.order, func(t *task) bool {
		if t.seen == c.looks {
			return false
		}
		delete(c.tasks, t.alloc.ID)
		return true
	})
}

// shown returns the task of an allocation that the state shows, or nil, and how far its
// rows have been followed in the order of tasks. The state shows most of a node's
// allocations in that order, and most rows are the ones last seen: such a one is found
// where the one before it was. What is further off is looked up by its id, so that a row
// costs the same however many there are.
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

// check takes in what the state shows of an allocation that the client has told of.
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
	case !c.mute:
		t.hear(a, now)
	}
}

// begin adds a task.
func (c *client) begin(t *task) {
	at, _ := c.find(t.alloc.ID)
	c.order = slices.Insert(c.order, at, t)
	c.tasks[t.alloc.ID] = t
}

// find returns where the task of an allocation stands in the order, or would.
func (c *client) find(id cluster.AllocID) (at int, found bool) {
	return slices.BinarySearchFunc(c.order, id, func(t *task, id cluster.AllocID) int { return cmp.Compare(t.alloc.ID, id) })
}
