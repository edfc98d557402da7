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

// inFlight is when the marks of a drain are on their way, and nothing else is.
const inFlight = drains + commits + commits/2

// servers are the two ways in which servers are there.
func servers(t *testing.T, test func(*testing.T, world.Options)) {
	t.Helper()
	for _, views := range []bool{false, true} {
		t.Run(fmt.Sprintf("views=%v", views), func(t *testing.T) {
			t.Parallel()
			test(t, world.Options{Servers: 3, Views: views})
		})
	}
}

// Of several writes in flight the first may survive their leader, and the others not.
func TestElection_kept(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		o.Drainer = drainer.NodeDrainerConfig{MaxIDsPerEntry: 2, MaxInFlight: 4}
		for kept := range 4 {
			for _, lost := range []bool{false, true} {
				w := newTown(t, o)
				w.place(t, "api", "n1", "n2")
				w.place(t, "log", "n1", "n2")
				w.drain()
				w.at(inFlight, func() {
					must.NoError(t, w.Depose(world.Election{Next: -1, Lost: lost, Kept: kept}))
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

// What a leader proposed that is gone is in the log before anything of the next one's,
// or nowhere, also when its writer has been told before that nobody knows.
func TestElection_late(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"marks", "report", "plan"} {
		for _, survive := range []bool{false, true} {
			w := newTown(t, world.Options{Servers: 3, Views: true})
			w.drain()
			w.at(armed, func() {
				f := scenario.Fault{Name: scenario.ApplyAmbiguousLate, On: on, Delay: exactly(time.Minute)}
				must.NoError(t, w.Arm(f))
			})
			w.at(drains+20*time.Second, func() { must.NoError(t, w.Elect(survive)) })
			w.run(t, lasts)
			must.NoError(t, checkLog(w, map[string]int{}))
			must.Positive(t, when[completions](w))
			must.Less(t, drains+time.Minute, when[completions](w), must.Sprint("nothing is late any more"))
		}
	}
}

// What is late because of the old leader is not late with the next.
func TestElection_slow(t *testing.T) {
	t.Parallel()
	w := newTown(t, world.Options{Servers: 3, Views: true})
	w.drain()
	w.at(armed, func() {
		must.NoError(t, w.Arm(scenario.Fault{Name: scenario.ApplySlow, On: "operator", Delay: exactly(time.Hour)}))
	})
	w.at(20*time.Second, func() { must.NoError(t, w.Elect(false)) })
	w.run(t, lasts)
	must.Eq(t, 20*time.Second+2*commits, when[marks](w)) // the request, and they
}

// A deposed leader that does not know sees nothing new, whatever comes between plan
// and apply of what it left behind. It is not stepped for what it does not see, and
// nothing that it does then comes to anything.
func TestElection_believes(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		w := newTown(t, o)
		w.drain()
		w.Before(isMarks, func() error {
			w.FailAlloc(w.Truth().Alloc("a000002"))
			return nil
		})
		w.at(inFlight, func() {
			must.NoError(t, w.Depose(world.Election{Next: 1, Believes: time.Minute}))
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
			if s.Term == 1 && s.at >= inFlight && s.at != marked.at+drainer.StalledAfter { // it logs that no answer came
				t.Errorf("it is stepped at %s", s.at)
			}
			if s.Term == 1 && s.View != nil {
				must.LessEq(t, last, s.View.Index())
			}
		}
		must.Positive(t, when[completions](w))
	})
}

// Who stands still when he is deposed finds out when he runs again, at the earliest.
func TestElection_paused(t *testing.T) {
	t.Parallel()
	w := newTown(t, world.Options{Servers: 3, Views: true})
	w.at(armed, func() { w.Pause(0, time.Minute) })
	w.at(2*armed, func() { must.NoError(t, w.Elect(true)) })
	w.run(t, lasts)
	must.Eq(t, armed+time.Minute, w.ended[1])
}

// A leader that stands still writes nothing, and is the same afterwards.
func TestPause(t *testing.T) {
	t.Parallel()
	w := newTown(t, world.Options{Servers: 3, Views: true})
	w.drain()
	w.at(inFlight, func() { w.Pause(0, time.Minute) })
	w.at(inFlight, func() { w.Pause(1, time.Hour) }) // it matters to nobody
	w.run(t, lasts)
	must.Eq(t, inFlight+time.Minute, when[marks](w))
	must.Eq(t, when[marks](w), first[marks](w).told)
	must.Eq(t, 1, w.Term())
}

// An election between plan and apply of an entry takes the entry with it: it survives
// in its place, or is lost.
func TestElection_race(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, o world.Options) {
		for _, lost := range []bool{false, true} {
			w := newTown(t, o)
			w.place(t, "api", "n2", "n3")
			w.drain()
			w.at(drains, func() { w.Drain("n2", cluster.DrainSpec{}, "") })
			w.Before(isMarks, func() error {
				// While it is elected, another is between plan and apply of what survives.
				w.Before(isMarks, func() error { return w.Elect(!lost) })
				return w.Depose(world.Election{Next: -1, Lost: lost})
			})
			w.run(t, lasts)
			must.NoError(t, checkLog(w, map[string]int{}))
			must.Eq(t, 3, w.Term())
			must.Eq(t, !lost, w.logged(first[marks](w)))
			must.Positive(t, when[completions](w))
		}
	})
}

// All that is to come before an entry comes before the same one, in its order.
func TestBefore(t *testing.T) {
	t.Parallel()
	w := newTown(t, world.Options{})
	var came []int
	for i := range 3 {
		w.at(time.Duration(i)*time.Second, func() {
			w.Before(isMarks, func() error {
				came = append(came, i)
				must.Negative(t, when[marks](w))
				return nil
			})
		})
	}
	w.drain()
	w.run(t, lasts)
	must.Eq(t, []int{0, 1, 2}, came)
}

// Servers that lead again have not forgotten what they saw when they led, and a new
// leader may not have seen the last entries: until something of its term is applied.
func TestElection_behind(t *testing.T) {
	t.Parallel()
	behind := 0
	for seed := range uint64(20) {
		w := newTown(t, world.Options{Servers: 3, Views: true, Seed: seed + 1})
		w.drain()
		seen := map[int]uint64{}
		for i := range 20 {
			w.at(drains+time.Duration(i)*time.Second, func() {
				must.NoError(t, w.Elect(true))
				index := w.State().Index()
				must.LessEq(t, index, seen[w.Leader()])
				if index < w.Truth().Index() {
					behind++
				}
			})
			w.at(drains+time.Duration(i)*time.Second+500*time.Millisecond, func() {
				must.Eq(t, w.Truth().Index(), w.State().Index())
				seen[w.Leader()] = w.State().Index()
			})
		}
		w.run(t, lasts)
	}
	must.Positive(t, behind)
}
