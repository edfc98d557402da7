//race:skip one goroutine
package heartbeat_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/heartbeat"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock steps timers in virtual time.
type clock struct {
	*heartbeat.Timers
	now     time.Time
	changes []heartbeat.Change // returned by Step since the last take
}

func newClock(o heartbeat.Options) *clock {
	return &clock{Timers: heartbeat.New(o, rand.New(rand.NewPCG(1, 2))), now: epoch}
}

// pass advances the time, and steps the timers at the times that they return.
func (c *clock) pass(d time.Duration) {
	for end := c.now.Add(d); ; {
		changes, wakeAt := c.Step(c.now)
		c.changes = append(c.changes, changes...)
		if wakeAt.IsZero() || wakeAt.After(end) {
			c.now = end
			return
		}
		c.now = wakeAt
	}
}

// take returns the changes and clears them.
func (c *clock) take() []heartbeat.Change {
	changes := c.changes
	c.changes = nil
	return changes
}

func down(id cluster.NodeID) heartbeat.Change {
	return heartbeat.Change{Node: id, Status: cluster.NodeDown}
}

func back(id cluster.NodeID) heartbeat.Change {
	return heartbeat.Change{Node: id, Status: cluster.NodeReady}
}

func TestTimers_missed(t *testing.T) {
	t.Parallel()
	c := newClock(heartbeat.Options{})
	ttl := c.Heartbeat("n1", c.now)
	must.Between(t, heartbeat.DefaultMinTTL, ttl, 2*heartbeat.DefaultMinTTL)
	c.pass(ttl + heartbeat.DefaultGrace - 1)
	must.SliceEmpty(t, c.take())
	c.pass(1)
	must.Eq(t, []heartbeat.Change{down("n1")}, c.take())
	c.pass(time.Hour)
	must.SliceEmpty(t, c.take()) // Step returns the change once
	c.WriteDone(down("n1"), true, c.now)
	must.Eq(t, 0, c.Len())
	c.pass(time.Hour)
	must.SliceEmpty(t, c.take())
}

func TestTimers_aFailedWriteIsRetried(t *testing.T) {
	t.Parallel()
	c := newClock(heartbeat.Options{})
	c.Heartbeat("n1", c.now)
	c.pass(time.Minute)
	must.Eq(t, []heartbeat.Change{down("n1")}, c.take())
	for range 3 {
		c.WriteDone(down("n1"), false, c.now)
		c.pass(heartbeat.DefaultRetryAfter - 1)
		must.SliceEmpty(t, c.take())
		c.pass(1)
		must.Eq(t, []heartbeat.Change{down("n1")}, c.take())
	}
	c.WriteDone(down("n1"), false, c.now)
	c.Heartbeat("n1", c.now) // before the next attempt
	c.pass(heartbeat.DefaultMinTTL)
	must.SliceEmpty(t, c.take())
}

// A node that sends a heartbeat while its change to down is written is then changed to ready.
func TestTimers_heartbeatDuringTheWriteOfDown(t *testing.T) {
	t.Parallel()
	c := newClock(heartbeat.Options{})
	c.Heartbeat("n1", c.now)
	c.pass(time.Minute)
	must.Eq(t, []heartbeat.Change{down("n1")}, c.take())
	c.Heartbeat("n1", c.now)
	c.WriteDone(down("n1"), true, c.now)
	c.Heartbeat("n1", c.now) // the change to ready still waits
	c.pass(0)
	must.Eq(t, []heartbeat.Change{back("n1")}, c.take())
	c.WriteDone(back("n1"), false, c.now)
	c.pass(heartbeat.DefaultRetryAfter)
	must.Eq(t, []heartbeat.Change{back("n1")}, c.take())
	c.WriteDone(back("n1"), true, c.now)
	c.pass(time.Hour)
	must.Eq(t, []heartbeat.Change{down("n1")}, c.take())

	// If the write of down failed, no change to ready is needed.
	c.Heartbeat("n1", c.now)
	c.WriteDone(down("n1"), false, c.now)
	c.pass(heartbeat.DefaultMinTTL)
	must.SliceEmpty(t, c.take())
}

// The timers wait for the longest TTL that an earlier leader may have sent.
func TestTimers_expect(t *testing.T) {
	t.Parallel()
	earlier := newClock(heartbeat.Options{})
	var nodes []cluster.NodeID
	for i := range 2000 {
		nodes = append(nodes, cluster.NodeID(fmt.Sprintf("n%d", i)))
		earlier.Heartbeat(nodes[i], earlier.now)
	}
	var longest time.Duration
	for _, id := range nodes {
		longest = max(longest, earlier.Heartbeat(id, earlier.now))
	}
	c := newClock(heartbeat.Options{})
	c.Expect(nodes, c.now)
	c.pass(longest)
	must.SliceEmpty(t, c.take())
	c.Forget("n7")
	must.Eq(t, 1999, c.Len())
	c.pass(time.Hour)
	must.SliceLen(t, heartbeat.DefaultMaxWrites, c.take())
}

// A pause of the process does not count as missed heartbeats.
func TestTimers_clockSteps(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{-time.Hour, -time.Millisecond, heartbeat.MaxPause + 1, time.Hour} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			c := newClock(heartbeat.Options{})
			ttl := c.Heartbeat("n1", c.now)
			c.pass(ttl / 2)
			c.now = c.now.Add(step)
			second := c.Heartbeat("n2", c.now)
			c.pass(ttl - ttl/2 + heartbeat.DefaultGrace - 1)
			must.SliceEmpty(t, c.take())
			c.pass(time.Second) // longestWait
			must.Eq(t, []heartbeat.Change{down("n1")}, c.take())
			c.pass(second)
			must.Eq(t, []heartbeat.Change{down("n2")}, c.take())
		})
	}
}

// A pause or a clock that is set back during a write moves the timers of all nodes: also those that
// wait for the outcome of the write or for its next attempt. Each node has sent a heartbeat in time.
func TestTimers_clockStepsDuringAWrite(t *testing.T) {
	t.Parallel()
	downTwice := []heartbeat.Change{down("n1"), down("n1")}
	for _, step := range []time.Duration{-time.Hour, heartbeat.MaxPause + 1, time.Hour} {
		for name, c := range map[string]struct {
			before, after func(c *clock)
			want          []heartbeat.Change
		}{
			"down is written": {
				func(c *clock) { c.Heartbeat("n1", c.now) },
				func(c *clock) { c.WriteDone(down("n1"), true, c.now) }, []heartbeat.Change{down("n1"), back("n1")},
			},
			"down is refused": {
				func(c *clock) { c.Heartbeat("n1", c.now) },
				func(c *clock) { c.WriteDone(down("n1"), false, c.now) }, []heartbeat.Change{down("n1")},
			},
			"ready waits": {
				func(c *clock) {
					c.Heartbeat("n1", c.now)
					c.WriteDone(down("n1"), true, c.now)
				}, func(*clock) {}, []heartbeat.Change{down("n1"), back("n1")},
			},
			"ready is written": {
				func(c *clock) {
					c.Heartbeat("n1", c.now)
					c.WriteDone(down("n1"), true, c.now)
					c.pass(0)
				}, func(*clock) {}, []heartbeat.Change{down("n1"), back("n1")},
			},
			"silent": {
				func(*clock) {}, func(c *clock) { c.WriteDone(down("n1"), false, c.now) }, downTwice,
			},
		} {
			clock := newClock(heartbeat.Options{})
			clock.Heartbeat("n1", clock.now)
			clock.Heartbeat("n2", clock.now)
			for range 60 {
				clock.pass(time.Second)
				clock.Heartbeat("n2", clock.now)
			}
			c.before(clock)
			clock.now = clock.now.Add(step)
			c.after(clock)
			clock.pass(0)
			for _, change := range clock.changes {
				if change.Status == cluster.NodeReady {
					clock.WriteDone(change, true, clock.now)
				}
			}
			clock.pass(heartbeat.DefaultMinTTL)
			must.Eq(t, c.want, clock.take(), must.Sprintf("%s, %s", name, step))
		}
	}
}

// A node that becomes ready by another write while its status down is written keeps a timer: it is
// down again if it is silent.
func TestTimers_readyDuringTheWriteOfDown(t *testing.T) {
	t.Parallel()
	c := newClock(heartbeat.Options{})
	c.Heartbeat("n1", c.now)
	c.pass(time.Minute)
	must.Eq(t, []heartbeat.Change{down("n1")}, c.take())
	c.Expect([]cluster.NodeID{"n1"}, c.now)
	c.WriteDone(down("n1"), true, c.now)
	c.pass(heartbeat.DefaultMinTTL)
	must.Eq(t, []heartbeat.Change{back("n1")}, c.take())
	c.WriteDone(back("n1"), true, c.now)
	c.pass(2*heartbeat.DefaultMinTTL - 1)
	must.SliceEmpty(t, c.take())
	c.pass(time.Minute)
	must.Eq(t, []heartbeat.Change{down("n1")}, c.take())
}

// beats are the next heartbeats of nodes, the earliest first.
type beats []beat

type beat struct {
	at   time.Time
	node cluster.NodeID
}

func (b beats) Len() int           { return len(b) }
func (b beats) Less(i, j int) bool { return b[i].at.Before(b[j].at) }
func (b beats) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *beats) Push(x any)        { *b = append(*b, x.(beat)) }
func (b *beats) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}

// Ten thousand nodes send heartbeats at the permitted rate. No node that sends in time is marked
// down, and all silent nodes are, a bounded number at a time.
func TestTimers_tenThousandNodes(t *testing.T) {
	t.Parallel()
	const count = 10_000
	c := newClock(heartbeat.Options{})
	var next beats
	for i := range count {
		id := cluster.NodeID(fmt.Sprintf("n%05d", i))
		next = append(next, beat{c.now.Add(c.Heartbeat(id, c.now)), id})
	}
	heap.Init(&next)
	steady := c.now.Add(10 * time.Minute) // the first nodes had short TTLs, because the nodes were few
	received, silent := 0, make(map[cluster.NodeID]bool)
	for until := steady.Add(20 * time.Minute); next[0].at.Before(until); {
		b := heap.Pop(&next).(beat)
		c.pass(b.at.Sub(c.now))
		must.SliceEmpty(t, c.take())
		if b.at.After(steady) {
			received++
		}
		heap.Push(&next, beat{b.at.Add(c.Heartbeat(b.node, c.now)), b.node})
	}
	rate := float64(received) / (20 * time.Minute).Seconds()
	must.Between(t, heartbeat.DefaultMaxRate/2, rate, heartbeat.DefaultMaxRate)
	t.Logf("%.1f heartbeats a second", rate)

	for i := 0; i < count; i += 2 {
		silent[cluster.NodeID(fmt.Sprintf("n%05d", i))] = true
	}
	const longest = 2*count/heartbeat.DefaultMaxRate*time.Second + heartbeat.DefaultGrace
	for until := c.now.Add(longest + time.Minute); c.now.Before(until); {
		if b := next[0]; !b.at.After(c.now) {
			heap.Pop(&next)
			if !silent[b.node] {
				heap.Push(&next, beat{b.at.Add(c.Heartbeat(b.node, c.now)), b.node})
			}
			continue
		}
		c.pass(min(100*time.Millisecond, next[0].at.Sub(c.now)))
		changes := c.take()
		must.LessEq(t, heartbeat.DefaultMaxWrites, len(changes))
		for _, change := range changes {
			must.True(t, silent[change.Node])
			must.Eq(t, cluster.NodeDown, change.Status)
			delete(silent, change.Node)
			c.WriteDone(change, true, c.now)
		}
	}
	must.MapEmpty(t, silent)
	must.Eq(t, count/2, c.Len())
}

// written are the changes whose write is in flight, in a random story.
type written struct {
	*clock
	inFlight []heartbeat.Change
	// alive are the nodes that have sent a heartbeat during the write of their change to down. owed are those
	// of them that were written as down or disconnected, and are not ready yet.
	alive, owed map[cluster.NodeID]bool
}

// beat sends a heartbeat of a node.
func (w *written) beat(id cluster.NodeID) (ttl time.Duration) {
	w.alive[id] = slices.Contains(w.inFlight, down(id))
	return w.Heartbeat(id, w.now)
}

// taken begins the writes of the changes that the timers have returned.
func (w *written) taken(t *testing.T) []heartbeat.Change {
	changes := w.take()
	for _, change := range changes {
		if change.Status == cluster.NodeDown {
			must.False(t, w.owed[change.Node], must.Sprintf("%s was alive during its write, and is not written as ready", change.Node))
		}
		delete(w.owed, change.Node)
	}
	w.inFlight = append(w.inFlight, changes...)
	return changes
}

// end ends a write: it fails, or its node is written, or its node is written as disconnected.
func (w *written) end(i, outcome int) {
	change := w.inFlight[i]
	w.inFlight = slices.Delete(w.inFlight, i, i+1)
	if change.Status == cluster.NodeDown && outcome > 0 && w.alive[change.Node] {
		w.owed[change.Node] = true
	}
	delete(w.alive, change.Node)
	if change.Status == cluster.NodeDown && outcome == 2 {
		w.Await(change, w.now.Add(5*time.Second), w.now)
	} else {
		w.WriteDone(change, outcome > 0, w.now)
	}
}

// In any order of events, with pauses of the process and clocks that are set back, a node that sends
// heartbeats in time is never marked down, a silent node is marked down, and the writes in flight
// are bounded. In time means within the time in which the process could receive heartbeats. A node that
// sends a heartbeat during a write is ready next, also if it was written as disconnected. Bug: it stayed
// disconnected.
func TestTimers_random(t *testing.T) {
	t.Parallel()
	owed := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		o := heartbeat.Options{MinTTL: 2 * time.Second, Grace: time.Second, MaxWrites: 3}
		c := &written{clock: newClock(o), alive: make(map[cluster.NodeID]bool), owed: make(map[cluster.NodeID]bool)}
		inTime := make(map[cluster.NodeID]time.Time)
		for range 300 {
			id := cluster.NodeID(fmt.Sprintf("n%d", rng.IntN(8)))
			switch rng.IntN(5) {
			case 0:
				inTime[id] = c.now.Add(c.beat(id))
			case 1:
				if len(c.inFlight) > 0 {
					c.end(rng.IntN(len(c.inFlight)), rng.IntN(3))
					owed += len(c.owed)
				}
			case 2:
				step := heartbeat.MaxPause + 1 + time.Duration(rng.Int64N(int64(heartbeat.MaxPause)))
				if rng.IntN(2) == 0 {
					step = -step
				}
				c.now = c.now.Add(step)
				for id := range inTime { //lint:order each node by itself
					inTime[id] = inTime[id].Add(step)
				}
				fallthrough
			default:
				c.pass(time.Duration(rng.IntN(2000)) * time.Millisecond)
				for _, change := range c.taken(t) {
					if change.Status == cluster.NodeDown {
						must.False(t, c.now.Before(inTime[change.Node]), must.Sprintf("seed %d: %s sent its heartbeat in time", seed, change.Node))
					}
				}
				must.LessEq(t, o.MaxWrites, len(c.inFlight))
			}
		}
		for len(c.inFlight) > 0 || c.Len() > 0 {
			for len(c.inFlight) > 0 {
				c.end(0, 1)
			}
			c.pass(2 * time.Second)
			c.taken(t)
			must.Less(t, time.Hour, c.now.Sub(epoch), must.Sprintf("seed %d: silent nodes are not marked down", seed))
		}
		must.MapEmpty(t, c.owed)
	}
	must.Positive(t, owed)
}

func TestOptions_validate(t *testing.T) {
	t.Parallel()
	must.NoError(t, heartbeat.Options{}.Validate())
	for name, o := range map[string]heartbeat.Options{
		"MinTTL": {MinTTL: -1}, "MaxRate": {MaxRate: -1}, "Grace": {Grace: -1}, "MaxWrites": {MaxWrites: -1}, "RetryAfter": {RetryAfter: -1},
	} {
		must.ErrorContains(t, o.Validate(), name)
	}
}
