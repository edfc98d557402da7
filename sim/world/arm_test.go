package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// edited is a town in which a job is edited once a second, at most so often, under a
// fault: each edit is a write of the operator's, and brings one of the scheduler's.
func edited(t *testing.T, seed uint64, edits int, f scenario.Fault) *town {
	t.Helper()
	w := newTown(t, world.Options{Seed: seed, Servers: 3, Views: true})
	w.at(time.Second/2, func() { must.NoError(t, w.Arm(f)) })
	for i := range edits {
		w.at(time.Duration(i+1)*time.Second, func() {
			must.NoError(t, w.EditJob(web, func(j *cluster.Job) { j.Priority = 10 + i }))
		})
	}
	w.run(t, time.Hour)
	return w
}

// A fault takes every opportunity, or as many as it may, or those in its window, or
// some by chance.
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
		"once":                {slow, 1, 1},
		"so often":            {with(func(f *scenario.Fault) { f.Count = 7 }), 7, 7},
		"more than there is":  {with(func(f *scenario.Fault) { f.Count = 70 }), edits, edits},
		"a window":            {with(func(f *scenario.Fault) { f.For = 10 * time.Second }), 10, 10},
		"both":                {with(func(f *scenario.Fault) { f.For, f.Count = 10*time.Second, 3 }), 3, 3},
		"a window, by chance": {with(func(f *scenario.Fault) { f.For, f.Probability = 20*time.Second, 0.5 }), 2, 18},
		"so often, by chance": {with(func(f *scenario.Fault) { f.Count, f.Probability = 5, 0.5 }), 5, 5},
		"on nothing":          {with(func(f *scenario.Fault) { f.On = "completion" }), 0, 0},
	} {
		w := edited(t, 3, edits, c.fault)
		must.Between(t, c.least, len(w.strikes), c.most, must.Sprint(name))
		for _, s := range w.strikes {
			must.Eq(t, "operator", s.Target)
		}
	}
}

// What is drawn of a fault is the seed's: delays lie in their range, and other seeds
// draw others.
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

// What is on a selector strikes what the selector matches.
func TestArm_selector(t *testing.T) {
	t.Parallel()
	for on, n := range map[string]int{
		"": 4, "web": 3, "@n4": 2, "web@n4": 1, "web[1]": 1, "api": 1, "web.web": 3, "web[7]": 0, "@n5": 0,
	} {
		w := newTown(t, world.Options{})
		w.place(t, "api", "n4")
		must.NoError(t, w.EditJob(web, func(j *cluster.Job) { j.TaskGroups[0].Count = 3 }))
		must.NoError(t, w.Arm(scenario.Fault{Name: scenario.ClientSlowStop, On: on, Count: 99}))
		w.run(t, time.Second)
		if on == "@n4" || on == "web@n4" {
			n-- // nothing of web is there
		}
		must.Len(t, n, w.strikes, must.Sprint(on))
	}
	w := newTown(t, world.Options{})
	must.Error(t, w.Arm(scenario.Fault{Name: scenario.ClientSlowStop, On: "[what]"}))
}
