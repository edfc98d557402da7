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
	// Status is [cluster.NodeDown] or [cluster.NodeReady].
	Status cluster.NodeStatus
}

// Timers are the heartbeats of all nodes, for one term of leadership. They belong
// to one goroutine. All times are of one clock.
type Timers struct {
	options Options
	chance  *rand.Rand
	timers  map[cluster.NodeID]*timer
	// due holds the times of timers that are not writing: the deadline of the next heartbeat, or
	// the time at which the change may be written.
	due alarm.Heap[cluster.NodeID]
	// writes is the number of timers that are writing.
	writes int
	// lastCall is the time of the last call, or zero.
	lastCall time.Time
}

// New returns timers without nodes. The chance spreads TTLs, and belongs to them
// from now on.
func New(o Options, chance *rand.Rand) *Timers {
	return &Timers{options: o.withDefaults(), chance: chance, timers: make(map[cluster.NodeID]*timer)}
}

// Len is the number of nodes with a timer or a write in flight.
func (t *Timers) Len() int { return len(t.timers) }

// Expect starts the timers of nodes that were not down under an earlier leader. Each timer has the
// longest TTL that the earlier leader may have given in a cluster of this size.
func (t *Timers) Expect(nodes []cluster.NodeID, now time.Time) {
	t.noteCall(now)
	longest := 2*t.options.base(len(t.timers)+len(nodes)) + t.options.Grace
	for _, id := range nodes {
		if t.timers[id] == nil {
			n := t.get(id)
			n.until = now.Add(longest)
			t.arm(n)
		}
	}
}

// Heard records a heartbeat of a node, and returns its TTL. The timer waits for the TTL and the
// grace.
func (t *Timers) Heard(id cluster.NodeID, now time.Time) (ttl time.Duration) {
	t.noteCall(now)
	n := t.get(id)
	base := t.options.base(len(t.timers))
	ttl = base + time.Duration(t.chance.Int64N(int64(base)))
	n.until = now.Add(ttl + t.options.Grace)
	switch n.state {
	case writing:
		n.heard = true
	case returned: // its change to ready comes first
	default:
		t.arm(n)
	}
	return ttl
}

// Forget drops the timer of a deleted node.
func (t *Timers) Forget(id cluster.NodeID) {
	if n := t.timers[id]; n != nil && n.state != writing {
		t.due.Remove(id)
		delete(t.timers, id)
	}
}

// Settle takes the answer to a change that Step returned. A change that was made, or whose node is
// deleted, is done; any other is retried.
func (t *Timers) Settle(c Change, made bool, now time.Time) {
	t.noteCall(now)
	n := t.timers[c.Node]
	if n == nil || n.state != writing {
		return
	}
	t.writes--
	switch {
	case n.heard && c.Status == cluster.NodeDown && made:
		n.heard, n.state = false, returned
		t.due.Set(c.Node, now)
	case n.heard && c.Status == cluster.NodeDown, made && c.Status == cluster.NodeReady:
		n.heard = false
		t.arm(n)
	case made:
		delete(t.timers, c.Node)
	default:
		n.heard = false
		n.state = missed
		if c.Status == cluster.NodeReady {
			n.state = returned
		}
		t.due.Set(c.Node, now.Add(t.options.RetryAfter))
	}
}

// MaxPause is the longest time between two calls that counts as time. After a longer one the
// timers continue where they were at the first call.
const MaxPause = 5 * time.Second

// longestWait bounds the time between two calls of Step while there is a node: often enough to tell
// a pause of the process from an ordinary wait.
const longestWait = time.Second

// Step returns the changes to write now, each to be answered with Settle, and the latest time of
// the next call; zero is never.
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

// noteCall notes a call by the owner. It moves every timer by the time in which the process was
// paused, or by which the clock was set back.
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

// get returns the node's timer, which is new if there is none.
func (t *Timers) get(id cluster.NodeID) *timer {
	n := t.timers[id]
	if n == nil {
		n = &timer{node: id}
		t.timers[id] = n
	}
	return n
}

// arm waits for the node.
func (t *Timers) arm(n *timer) {
	n.state = armed
	t.due.Set(n.node, n.until)
}
