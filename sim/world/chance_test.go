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

// A stream depends on its seed and its name only.
func TestStream(t *testing.T) {
	t.Parallel()
	drawn := func(seed uint64, name string) (numbers [4]uint64) {
		r := world.Stream(seed, name)
		for i := range numbers {
			numbers[i] = r.Uint64()
		}
		return numbers
	}
	found := map[[4]uint64]string{}
	for seed := range uint64(8) {
		for _, name := range []string{"", "a", "b", "ab", "tie/log", "fault/apply/slow"} {
			numbers := drawn(seed, name)
			must.Eq(t, numbers, drawn(seed, name))
			must.Eq(t, "", found[numbers])
			found[numbers] = fmt.Sprintf("%q of %d", name, seed)
		}
	}
}

// withDrawnDelays returns a fixture with an election, in which all delays are drawn.
func withDrawnDelays(t *testing.T, seed uint64) *fixture {
	t.Helper()
	span := scenario.Range{Min: time.Millisecond, Max: 50 * time.Millisecond}
	w := newFixture(t, world.Options{
		Seed: seed, Servers: 3, Views: seed%2 == 0, Commit: span, Establish: span, Wake: span, Schedule: span,
	})
	w.drain()
	w.at(15*time.Second, func() { must.NoError(t, w.Servers.Elect(true)) })
	return w
}

// An additional draw from one stream changes no other stream. Additional wake-ups of the drainer
// draw their own delays, and all other writes keep their times.
func TestWorld_streams(t *testing.T) {
	t.Parallel()
	withEdits := func(seed uint64, wake bool) *fixture {
		w := withDrawnDelays(t, seed)
		for i := range 5 {
			w.at(time.Duration(i)*time.Second, func() {
				if wake {
					w.Servers.WakeDrainer()
				}
			})
			w.at(time.Duration(i)*2*time.Second, func() {
				w.editJob(web, func(j *cluster.Job) { j.TaskGroups[0].Count++ })
			})
		}
		w.run(t, drains)
		return w
	}
	for seed := range uint64(20) {
		plain, woken := withEdits(seed+1, false), withEdits(seed+1, true)
		must.NotEq(t, plain.Hash(), woken.Hash())
		must.Less(t, len(woken.steps), len(plain.steps))
		must.GreaterEq(t, 15, len(plain.entries)) // each edit, its plan, and its reports
		must.Eq(t, len(plain.entries), len(woken.entries))
		for i, e := range plain.entries {
			must.Eq(t, e.Type, woken.entries[i].Type)
			must.Eq(t, e.at, woken.entries[i].at)
		}
	}
}

// Equal seeds give equal hashes with any number of processors. Different seeds do not.
func TestWorld_hash(t *testing.T) { // not parallel: it sets the number of processors
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	hashes := map[uint64]uint64{}
	for seed := range uint64(30) {
		runtime.GOMAXPROCS(1)
		one := withAllFaults(t, seed)
		runtime.GOMAXPROCS(2)
		two := withAllFaults(t, seed)
		must.Eq(t, one.Hash(), two.Hash(), must.Sprintf("seed %d", seed))
		must.Eq(t, one.entries[len(one.entries)-1].at, two.entries[len(two.entries)-1].at)
		must.MapNotContainsKey(t, hashes, one.Hash())
		hashes[one.Hash()] = seed
	}
}

// withAllFaults runs a fixture with drawn delays in which every fault may strike.
func withAllFaults(t *testing.T, seed uint64) *fixture {
	t.Helper()
	w := withDrawnDelays(t, seed)
	chance := world.Stream(seed, "troubles")
	for _, kind := range scenario.Faults() {
		f := scenario.Fault{Name: kind.Name}
		if !kind.Lasts {
			f.Probability, f.For, f.Count = 0.1, 40*time.Second, 10
		}
		if kind.Delays != scenario.NoDelay {
			f.Delay = scenario.Range{Min: time.Millisecond, Max: 5 * time.Second}
		}
		w.at(time.Duration(chance.Int64N(int64(30*time.Second))), func() { must.NoError(t, w.Faults.Arm(f)) })
	}
	w.at(time.Minute, func() { must.NoError(t, w.Faults.End(world.CutOff{})) })
	w.run(t, 10*time.Minute)
	return w
}
