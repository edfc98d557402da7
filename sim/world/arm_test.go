//race:skip a world steps its parts in the goroutine of its test; the test of real raft has its own mark
package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// edited runs a fixture with a fault. The operator edits a job once a second. Each edit is one
// write of the operator, and causes one write of the scheduler.
func edited(t *testing.T, seed uint64, edits int, f scenario.Fault) *fixture {
	t.Helper()
	w := newFixture(t, world.Options{Seed: seed, Servers: 3, Views: true})
	w.at(time.Second/2, func() { must.NoError(t, w.Faults.Arm(f)) })
	for i := range edits {
		w.at(time.Duration(i+1)*time.Second, func() {
			w.editJob(web, func(j *cluster.Job) { j.Priority = 10 + i })
		})
	}
	w.run(t, time.Hour)
	return w
}

// A fault strikes at most as often as its count, only in its window, and with its probability.
func TestArm(t *testing.T) {
	t.Parallel()
	slow := scenario.Fault{Name: scenario.ApplySlow, On: "operator", Delay: exactly(time.Millisecond)}
	with := func(edit func(*scenario.Fault)) scenario.Fault {
		f := slow
		edit(&f)
		return f
	}
	const edits = 40
	for name, c := range map[string]struct {
		fault       scenario.Fault
		least, most int
	}{
		"once":                            {slow, 1, 1},
		"a count":                         {with(func(f *scenario.Fault) { f.Count = 7 }), 7, 7},
		"a count above the opportunities": {with(func(f *scenario.Fault) { f.Count = 70 }), edits, edits},
		"a window":                        {with(func(f *scenario.Fault) { f.For = 10 * time.Second }), 10, 10},
		"both":                            {with(func(f *scenario.Fault) { f.For, f.Count = 10*time.Second, 3 }), 3, 3},
		"a window with a probability":     {with(func(f *scenario.Fault) { f.For, f.Probability = 20*time.Second, 0.5 }), 2, 18},
		"a count with a probability":      {with(func(f *scenario.Fault) { f.Count, f.Probability = 5, 0.5 }), 5, 5},
		"on no write":                     {with(func(f *scenario.Fault) { f.On = "completion" }), 0, 0},
	} {
		w := edited(t, 3, edits, c.fault)
		must.Between(t, c.least, len(w.strikes), c.most, must.Sprint(name))
		for _, s := range w.strikes {
			must.Eq(t, "operator", s.Target)
		}
	}
}

// The seed decides strikes and delays. Delays lie in their range.
func TestArm_drawn(t *testing.T) {
	t.Parallel()
	f := scenario.Fault{
		Name: scenario.ApplySlow, On: "operator", For: time.Minute, Probability: 0.5,
		Delay: scenario.Range{Min: time.Millisecond, Max: 100 * time.Millisecond},
	}
	one, again, other := edited(t, 3, 40, f), edited(t, 3, 40, f), edited(t, 4, 40, f)
	must.Eq(t, one.strikes, again.strikes)
	must.NotEq(t, one.strikes, other.strikes)
	different := map[time.Duration]bool{}
	for _, s := range one.strikes {
		must.Between(t, f.Delay.Min, s.For, f.Delay.Max)
		different[s.For] = true
	}
	must.Greater(t, 5, len(different))
}

// A fault on a selector strikes the allocations that the selector matches.
func TestArm_selector(t *testing.T) {
	t.Parallel()
	for on, n := range map[string]int{
		"": 4, "web": 3, "@n4": 2, "web@n4": 1, "web[1]": 1, "api": 1, "web.web": 3, "web[7]": 0, "@n5": 0,
	} {
		w := newFixture(t, world.Options{})
		w.place(t, "api", "n4")
		w.editJob(web, func(j *cluster.Job) { j.TaskGroups[0].Count = 3 })
		must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.ClientSlowStop, On: on, Count: 99}))
		w.run(t, time.Second)
		if on == "@n4" || on == "web@n4" {
			n-- // web has no allocation there
		}
		must.Len(t, n, w.strikes, must.Sprint(on))
	}
	w := newFixture(t, world.Options{})
	must.Error(t, w.Faults.Arm(scenario.Fault{Name: scenario.ClientSlowStop, On: "[what]"}))
}
