package swarm_test

import (
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// seenIn is a tally of runs in which the event has happened in some.
func seenIn(runs, some int, e swarm.Event) *swarm.Tally {
	t := &swarm.Tally{}
	for i := range runs {
		seen := map[swarm.Event]int{}
		if i < some {
			seen[e] = 3
		}
		t.Add(seen)
	}
	return t
}

func shortOf(t *swarm.Tally, e swarm.Event) bool {
	for _, s := range t.Short(swarm.Small) {
		if s.Event == e {
			return true
		}
	}
	return false
}

// An event is short if it is rarer than chance explains, and only then.
func TestTally_short(t *testing.T) {
	t.Parallel()
	e, rate := swarm.MarksRefused, 0.0
	for _, r := range swarm.Rates() {
		if r.Event == e {
			rate = r.Least[swarm.Small]
		}
	}
	must.Positive(t, rate)
	want := int(1000 * rate)
	must.False(t, shortOf(seenIn(1000, want, e), e))
	must.False(t, shortOf(seenIn(1000, want-10, e), e))
	must.True(t, shortOf(seenIn(1000, want/2, e), e))
	must.True(t, shortOf(seenIn(1000, 0, e), e))
	must.False(t, shortOf(seenIn(5, 0, e), e), must.Sprint("five runs say nothing"))
}

// What most runs are to show is short in a few runs already.
func TestTally_frequent(t *testing.T) {
	t.Parallel()
	e := swarm.EndOfMany // in 65 of 100 large runs
	short := func(runs, seen int) bool {
		return slices.ContainsFunc(seenIn(runs, seen, e).Short(swarm.Large), func(s swarm.Shortfall) bool { return s.Event == e })
	}
	must.True(t, short(16, 3))
	must.False(t, short(16, 6))
	must.True(t, short(64, 29))
	must.False(t, short(64, 32))
}

// What every run is to show is short as soon as one does not.
func TestTally_always(t *testing.T) {
	t.Parallel()
	misses := func(tally *swarm.Tally) bool {
		for _, s := range tally.Short(swarm.Large) {
			if s.Event == swarm.ManyDrains {
				return true
			}
		}
		return false
	}
	must.False(t, misses(seenIn(2, 2, swarm.ManyDrains)))
	must.True(t, misses(seenIn(2, 1, swarm.ManyDrains)))
	must.True(t, misses(seenIn(1, 0, swarm.ManyDrains)))
	must.False(t, misses(&swarm.Tally{}))
}

func TestTally_countsRunsAndTimes(t *testing.T) {
	t.Parallel()
	tally := seenIn(4, 2, swarm.EndRefused)
	must.Eq(t, 4, tally.Runs)
	must.Eq(t, swarm.Seen{Runs: 2, Times: 6}, tally.Events[swarm.EndRefused])
	must.Eq(t, " 50.00        6  end/refused\n", tally.String())
	short := tally.Short(swarm.Medium)
	must.SliceEmpty(t, short)
}

// Each event has one rate, and says what it is; each fault has to strike.
func TestRates(t *testing.T) {
	t.Parallel()
	seen := map[swarm.Event]bool{}
	for _, r := range swarm.Rates() {
		must.False(t, seen[r.Event], must.Sprintf("%s", r.Event))
		seen[r.Event] = true
		must.NotEq(t, "", r.What)
		for _, size := range []swarm.Size{swarm.Small, swarm.Medium} {
			must.Between(t, 0.0001, r.Least[size], 0.99, must.Sprintf("%s", r.Event))
		}
	}
	for _, f := range scenario.Faults() {
		must.True(t, seen["fault/"+swarm.Event(f.Name)])
	}
}
