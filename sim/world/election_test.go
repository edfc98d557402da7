package world_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// inFlight is a time at which the marks of a drain are in flight, and no other write.
const inFlight = drains + commits + commits/2

// servers runs a test with views and with replicas.
func servers(t *testing.T, test func(*testing.T, world.Options)) {
	t.Helper()
	for _, views := range []bool{false, true} {
		t.Run(fmt.Sprintf("views=%v", views), func(t *testing.T) {
			t.Parallel()
			test(t, world.Options{Servers: 3, Views: views})
		})
	}
}

// The first writes in flight may survive their leader while the others are lost.
func TestElection_kept(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		o.Drainer = drainer.NodeDrainerConfig{MaxIDsPerEntry: 2, MaxInFlight: 4}
		for kept := range 4 {
			for _, lost := range []bool{false, true} {
				w := newFixture(t, o)
				w.place(t, "api", "n1", "n2")
				w.place(t, "log", "n1", "n2")
				w.drain()
				w.at(inFlight, func() {
					must.NoError(t, w.Servers.Depose(world.Election{Next: -1, Lost: lost, Kept: kept}))
				})
				w.run(t, lasts)
				for n := range 3 {
					marked := nth[marks](w, n)
					must.Eq(t, 1, marked.Term)
					must.Eq(t, raftwrite.Unknown, marked.answer.Outcome)
					must.Eq(t, !lost || n < kept, w.logged(marked))
				}
				must.Positive(t, when[completions](w))
			}
		}
	})
}

// The log commits the writes of an old leader before the entries of the next leader, or never.
// That also holds for writes whose writer already has the answer "unknown".
func TestElection_late(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"marks", "report", "plan"} {
		for _, survive := range []bool{false, true} {
			w := newFixture(t, world.Options{Servers: 3, Views: true})
			w.drain()
			w.at(armed, func() {
				f := scenario.Fault{Name: scenario.ApplyAmbiguousLate, On: on, Delay: exactly(time.Minute)}
				must.NoError(t, w.Faults.Arm(f))
			})
			w.at(drains+20*time.Second, func() { must.NoError(t, w.Servers.Elect(survive)) })
			w.run(t, lasts)
			must.NoError(t, checkLog(w, map[string]int{}))
			must.Positive(t, when[completions](w))
			must.Less(t, drains+time.Minute, when[completions](w), must.Sprint("the next leader waits for a late write of the old one"))
		}
	}
}

// A fault that delays a request at the old leader does not delay it at the next leader.
func TestElection_slow(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Servers: 3, Views: true})
	w.drain()
	w.at(armed, func() {
		must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.ApplySlow, On: "operator", Delay: exactly(time.Hour)}))
	})
	w.at(20*time.Second, func() { must.NoError(t, w.Servers.Elect(false)) })
	w.run(t, lasts)
	must.Eq(t, 20*time.Second+2*commits, when[marks](w)) // one commit for the request, one for the marks
}

// A deposed leader that is unaware of it reads no new state, even if a hook writes
// right before the apply of its own entries. Changes that it cannot see do not wake its drainer,
// and its writes have no effect.
func TestElection_deposedLeaderStillWrites(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		w := newFixture(t, o)
		w.drain()
		w.Log.Before(isMarks, func() error {
			w.Operator.Propose(w.Operator.Requests.Exit(w.Truth().Alloc("a000002"), cluster.ClientFailed), nil)
			return nil
		})
		w.at(inFlight, func() {
			must.NoError(t, w.Servers.Depose(world.Election{Next: 1, Unaware: time.Minute}))
		})
		w.run(t, lasts)
		must.Eq(t, inFlight+time.Minute, w.ended[1])
		marked, last := first[marks](w), uint64(0)
		for _, e := range w.entries {
			if e.at < inFlight {
				last = e.Index
			}
		}
		for _, s := range w.steps {
			if s.Term == 1 && s.at >= inFlight && s.at != marked.at+drainer.StalledAfter { // then it logs the missing answer
				t.Errorf("the deposed drainer took a step at %s", s.at)
			}
			if s.Term == 1 && s.View != nil {
				must.LessEq(t, last, s.View.Index())
			}
		}
		must.Positive(t, when[completions](w))
	})
}

// A paused leader steps down when its pause ends.
func TestElection_paused(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Servers: 3, Views: true})
	w.at(armed, func() { w.Servers.Pause(0, time.Minute) })
	w.at(2*armed, func() { must.NoError(t, w.Servers.Elect(true)) })
	w.run(t, lasts)
	must.Eq(t, armed+time.Minute, w.ended[1])
}

// A paused leader writes nothing. Afterwards it still leads.
func TestServers_Pause(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Servers: 3, Views: true})
	w.drain()
	w.at(inFlight, func() { w.Servers.Pause(0, time.Minute) })
	w.at(inFlight, func() { w.Servers.Pause(1, time.Hour) }) // a paused follower changes nothing
	w.run(t, lasts)
	must.Eq(t, inFlight+time.Minute, when[marks](w))
	must.Eq(t, when[marks](w), first[marks](w).answeredAt)
	must.Eq(t, 1, w.Term())
}

// An election between the plan and the apply of an entry also decides about that entry: the
// entry keeps its place in the log, or is lost.
func TestElection_beforeApply(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		for _, lost := range []bool{false, true} {
			w := newFixture(t, o)
			w.place(t, "api", "n2", "n3")
			w.drain()
			w.at(drains, func() { w.drainNode("n2", 0) })
			w.Log.Before(isMarks, func() error {
				// The first election commits the surviving entries. A second election comes right
				// before one of them.
				w.Log.Before(isMarks, func() error { return w.Servers.Elect(!lost) })
				return w.Servers.Depose(world.Election{Next: -1, Lost: lost})
			})
			w.run(t, lasts)
			must.NoError(t, checkLog(w, map[string]int{}))
			must.Eq(t, 3, w.Term())
			must.Eq(t, !lost, w.logged(first[marks](w)))
			must.Positive(t, when[completions](w))
		}
	})
}

// All hooks that match an entry run before that entry, in the order of their calls of Before.
func TestRaftLog_Before(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{})
	var ran []int
	for i := range 3 {
		w.at(time.Duration(i)*time.Second, func() {
			w.Log.Before(isMarks, func() error {
				ran = append(ran, i)
				must.Negative(t, when[marks](w))
				return nil
			})
		})
	}
	w.drain()
	w.run(t, lasts)
	must.Eq(t, []int{0, 1, 2}, ran)
}

// A new leader may be behind until an entry of its term is applied. It is never behind a state
// that it has read as a leader before.
func TestElection_behind(t *testing.T) {
	t.Parallel()
	behind := 0
	for seed := range uint64(20) {
		w := newFixture(t, world.Options{Servers: 3, Views: true, Seed: seed + 1})
		w.drain()
		found := map[int]uint64{}
		for i := range 20 {
			w.at(drains+time.Duration(i)*time.Second, func() {
				must.NoError(t, w.Servers.Elect(true))
				index := w.State().Index()
				must.LessEq(t, index, found[w.Leader()])
				if index < w.Truth().Index() {
					behind++
				}
			})
			w.at(drains+time.Duration(i)*time.Second+500*time.Millisecond, func() {
				must.Eq(t, w.Truth().Index(), w.State().Index())
				found[w.Leader()] = w.State().Index()
			})
		}
		w.run(t, lasts)
	}
	must.Positive(t, behind)
}
