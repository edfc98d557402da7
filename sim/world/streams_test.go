package world_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// A stream is its seed's and its name's alone.
func TestStream(t *testing.T) {
	t.Parallel()
	drawn := func(seed uint64, name string) (numbers [4]uint64) {
		r := world.Stream(seed, name)
		for i := range numbers {
			numbers[i] = r.Uint64()
		}
		return numbers
	}
	seen := map[[4]uint64]string{}
	for seed := range uint64(8) {
		for _, name := range []string{"", "a", "b", "ab", "tie/log", "fault/apply/slow"} {
			numbers := drawn(seed, name)
			must.Eq(t, numbers, drawn(seed, name))
			must.Eq(t, "", seen[numbers])
			seen[numbers] = fmt.Sprintf("%q of %d", name, seed)
		}
	}
}

// busy is a town in which everything takes a time that is drawn, and that changes its
// leader.
func busy(t *testing.T, seed uint64) *town {
	t.Helper()
	span := scenario.Range{Min: time.Millisecond, Max: 50 * time.Millisecond}
	w := newTown(t, world.Options{
		Seed: seed, Servers: 3, Views: seed%2 == 0, Commit: span, Establish: span, Wake: span, Schedule: span,
	})
	w.drain()
	w.at(15*time.Second, func() { must.NoError(t, w.Elect(true)) })
	return w
}

// One more draw of one name shifts no other: each wake-up that somebody sends to the
// drainer for nothing takes a time of its own, and all that others write is written at
// the times at which it was.
func TestWorld_streams(t *testing.T) {
	t.Parallel()
	grown := func(seed uint64, rouse bool) *town {
		w := busy(t, seed)
		for i := range 5 {
			w.at(time.Duration(i)*time.Second, func() {
				if rouse {
					w.WakeDrainer()
				}
			})
			w.at(time.Duration(i)*2*time.Second, func() {
				must.NoError(t, w.EditJob(web, func(j *cluster.Job) { j.TaskGroups[0].Count++ }))
			})
		}
		w.run(t, drains)
		return w
	}
	for seed := range uint64(20) {
		quiet, roused := grown(seed+1, false), grown(seed+1, true)
		must.NotEq(t, quiet.Hash(), roused.Hash())
		must.Less(t, len(roused.steps), len(quiet.steps))
		must.GreaterEq(t, 15, len(quiet.entries)) // each edit, its plan, and its reports
		must.Eq(t, len(quiet.entries), len(roused.entries))
		for i, e := range quiet.entries {
			must.Eq(t, e.Type, roused.entries[i].Type)
			must.Eq(t, e.at, roused.entries[i].at)
		}
	}
}

// Equal seeds come to the same, whatever the number of processors; others do not.
func TestWorld_hash(t *testing.T) { // it sets the number of processors: not parallel
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	hashes := map[uint64]uint64{}
	for seed := range uint64(30) {
		runtime.GOMAXPROCS(1)
		one := troubled(t, seed)
		runtime.GOMAXPROCS(2)
		two := troubled(t, seed)
		must.Eq(t, one.Hash(), two.Hash(), must.Sprintf("seed %d", seed))
		must.Eq(t, one.entries[len(one.entries)-1].at, two.entries[len(two.entries)-1].at)
		must.MapNotContainsKey(t, hashes, one.Hash())
		hashes[one.Hash()] = seed
	}
}

// troubled is a busy town in which every fault may strike, and that has run.
func troubled(t *testing.T, seed uint64) *town {
	t.Helper()
	w := busy(t, seed)
	chance := world.Stream(seed, "troubles")
	for _, kind := range scenario.Faults() {
		f := scenario.Fault{Name: kind.Name}
		if !kind.Lasts {
			f.Probability, f.For, f.Count = 0.1, 40*time.Second, 10
		}
		if kind.Delays != scenario.NoDelay {
			f.Delay = scenario.Range{Min: time.Millisecond, Max: 5 * time.Second}
		}
		w.at(time.Duration(chance.Int64N(int64(30*time.Second))), func() { must.NoError(t, w.Arm(f)) })
	}
	w.at(time.Minute, func() { must.NoError(t, w.Calm(world.Outside{})) })
	w.run(t, 10*time.Minute)
	return w
}
