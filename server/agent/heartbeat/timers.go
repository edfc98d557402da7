package heartbeat

import (
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
)

// Change is a change of a node's status to write.
type Change struct {
	Node cluster.NodeID
	// Status is [cluster.NodeDown] or [cluster.NodeReady]. The owner may write disconnected for down.
	Status cluster.NodeStatus
}

// Timers are the heartbeat timers of all nodes for one term of a leader. Timers are not safe for
// concurrent use. All times that the caller passes must be of one clock.
type Timers struct {
	options Options
	random  *rand.Rand
	timers  map[cluster.NodeID]*timer
	// due holds the times of timers that are not writing: the time at which the timer expires, or
	// the time from which the change may be written.
	due alarm.Heap[cluster.NodeID]
	// writes is the number of timers that are writing.
	writes int
	// lastCall is the time of the last call, or zero.
	lastCall time.Time
}

// New returns timers without nodes. They use random to spread TTLs, and own it.
func New(o Options, random *rand.Rand) *Timers {
	return &Timers{options: o.withDefaults(), random: random, timers: make(map[cluster.NodeID]*timer)}
}

// Len returns the number of nodes with a timer or a write in flight.
func (t *Timers) Len() int { return len(t.timers) }

// Expect starts the timers of nodes that have none. Each timer waits for the longest TTL that an earlier
// leader may have sent in a cluster of this size, and the grace. A node whose change is being written
// gets its timer after the write, and is then ready.
func (t *Timers) Expect(nodes []cluster.NodeID, now time.Time) {
	t.noteCall(now)
	longest := 2*t.options.base(len(t.timers)+len(nodes)) + t.options.Grace
	for _, id := range nodes {
		switch n := t.timers[id]; {
		case n == nil:
			n = t.get(id)
			n.until = now.Add(longest)
			t.arm(n)
		case n.state == writing && !n.alive:
			n.alive, n.until = true, now.Add(longest)
		}
	}
}

// Heartbeat records a heartbeat of a node, and returns the TTL: the time until the next heartbeat is
// due. The timer waits for the TTL and the grace.
func (t *Timers) Heartbeat(id cluster.NodeID, now time.Time) (ttl time.Duration) {
	t.noteCall(now)
	n := t.get(id)
	base := t.options.base(len(t.timers))
	ttl = base + time.Duration(t.random.Int64N(int64(base)))
	n.until = now.Add(ttl + t.options.Grace)
	switch n.state {
	case writing:
		n.alive = true
	case returned: // the change to ready is written first
	default:
		t.arm(n)
	}
	return ttl
}

// Renew records a heartbeat of a node that has a timer.
func (t *Timers) Renew(id cluster.NodeID, now time.Time) {
	if t.timers[id] != nil {
		t.Heartbeat(id, now)
	}
}

// Forget deletes the timer of a deleted node, unless a write is in flight.
func (t *Timers) Forget(id cluster.NodeID) {
	if n := t.timers[id]; n != nil && n.state != writing {
		t.due.Remove(id)
		delete(t.timers, id)
	}
}

// WriteDone reports the outcome of a change that Step returned. done means that the change was written
// or that its node is deleted. Otherwise a later step returns the change again.
func (t *Timers) WriteDone(c Change, done bool, now time.Time) {
	t.noteCall(now)
	n := t.timers[c.Node]
	if n == nil || n.state != writing {
		return
	}
	t.writes--
	switch {
	case n.alive && c.Status == cluster.NodeDown && done:
		n.alive, n.state = false, returned
		t.due.Set(c.Node, now)
	case n.alive && c.Status == cluster.NodeDown, done && c.Status == cluster.NodeReady:
		n.alive = false
		t.arm(n)
	case done:
		delete(t.timers, c.Node)
	default:
		n.alive = false
		n.state = missed
		if c.Status == cluster.NodeReady {
			n.state = returned
		}
		t.due.Set(c.Node, now.Add(t.options.RetryAfter))
	}
}

// Await is WriteDone for a node that was written as disconnected: its timer expires again at the time,
// unless the node sends a heartbeat before.
func (t *Timers) Await(c Change, until, now time.Time) {
	n := t.timers[c.Node]
	if n == nil || n.state != writing || n.alive {
		t.WriteDone(c, true, now)
		return
	}
	t.noteCall(now)
	t.writes--
	n.until = until
	t.arm(n)
}

// MaxPause is the longest time between two calls for which timers run. A longer time is a pause of
// the process, which delays every timer by its length.
const MaxPause = 5 * time.Second

// longestWait bounds the time between two calls of Step while there are nodes. It is shorter than
// MaxPause, so that a longer time is a pause of the process.
const longestWait = time.Second

// Step returns the changes to write now, and the latest time of the next call. A zero time means that
// no call is necessary. The caller reports the outcome of each change with WriteDone.
func (t *Timers) Step(now time.Time) (changes []Change, wakeAt time.Time) {
	t.noteCall(now)
	for t.writes < t.options.MaxWrites {
		id, due := t.due.PopFirst(now)
		if !due {
			break
		}
		n := t.timers[id]
		status := cluster.NodeDown
		if n.state == returned {
			status = cluster.NodeReady
		}
		n.state = writing
		t.writes++
		changes = append(changes, Change{Node: id, Status: status})
	}
	if len(t.timers) == 0 {
		return changes, time.Time{}
	}
	wakeAt = now.Add(longestWait)
	if t.writes < t.options.MaxWrites && t.due.Len() > 0 && t.due.First().Before(wakeAt) {
		wakeAt = t.due.First()
	}
	return changes, wakeAt
}

// noteCall records the time of a call. It moves every timer by a pause of the process, or by the time
// by which the clock was set back.
func (t *Timers) noteCall(now time.Time) {
	passed := now.Sub(t.lastCall)
	t.lastCall = now
	if passed >= 0 && passed <= MaxPause {
		return
	}
	for _, n := range t.timers { //lint:order each timer by itself
		n.until = n.until.Add(passed)
	}
	t.due.Shift(passed)
}

// get returns the node's timer, and creates it if there is none.
func (t *Timers) get(id cluster.NodeID) *timer {
	n := t.timers[id]
	if n == nil {
		n = &timer{node: id}
		t.timers[id] = n
	}
	return n
}

// arm makes the timer wait for a heartbeat.
func (t *Timers) arm(n *timer) {
	n.state = armed
	t.due.Set(n.node, n.until)
}
