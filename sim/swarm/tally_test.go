package swarm_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// tallyOf returns a tally of runs. The event has happened in some of them, three times each.
func tallyOf(runs, some int, e swarm.Event) *swarm.Tally {
	t := &swarm.Tally{}
	for i := range runs {
		found := map[swarm.Event]int{}
		if i < some {
			found[e] = 3
		}
		t.Add(found)
	}
	return t
}

// shortOf reports whether the event is short.
func shortOf(t *swarm.Tally, size swarm.Size, e swarm.Event) bool {
	return slices.ContainsFunc(t.Short(size), func(s swarm.Shortfall) bool { return s.Event == e })
}

// rateOf returns the rate of an event.
func rateOf(t *testing.T, size swarm.Size, e swarm.Event) float64 {
	t.Helper()
	rates := swarm.Rates()
	i := slices.IndexFunc(rates, func(r swarm.Rate) bool { return r.Event == e })
	must.NonNegative(t, i, must.Sprintf("%s has no rate", e))
	must.Positive(t, rates[i].Least[size])
	return rates[i].Least[size]
}

// An event is short only if chance does not explain its rarity.
func TestTally_short(t *testing.T) {
	t.Parallel()
	e := swarm.Event("marks/refused")
	short := func(runs, found int) bool { return shortOf(tallyOf(runs, found, e), swarm.Small, e) }
	want := int(1000 * rateOf(t, swarm.Small, e))
	must.False(t, short(1000, want))
	must.False(t, short(1000, want-10))
	must.True(t, short(1000, want/2))
	must.True(t, short(1000, 0))
	must.False(t, short(5, 0), must.Sprint("five runs are too few"))
}

// An event is short from three standard deviations below its rate on. With a high rate, few runs are
// enough.
func TestTally_frequent(t *testing.T) {
	t.Parallel()
	e := swarm.Event("end/of-many")
	rate := rateOf(t, swarm.Large, e)
	must.Between(t, 0.5, rate, 0.9)
	for _, runs := range []int{16, 64, 256} {
		least := float64(runs)*rate - 3*math.Sqrt(float64(runs)*rate*(1-rate))
		must.Positive(t, least)
		must.True(t, shortOf(tallyOf(runs, int(math.Ceil(least))-1, e), swarm.Large, e), must.Sprintf("%d runs", runs))
		must.False(t, shortOf(tallyOf(runs, int(math.Ceil(least)), e), swarm.Large, e), must.Sprintf("%d runs", runs))
	}
}

// An event of nearly every large run is short after one run without it. In many runs, one may lack
// it by chance.
func TestTally_nearlyAlways(t *testing.T) {
	t.Parallel()
	e := swarm.Event("drain/many")
	rateOf(t, swarm.Large, e)
	short := func(runs, found int) bool { return shortOf(tallyOf(runs, found, e), swarm.Large, e) }
	must.True(t, short(1, 0))
	must.True(t, short(2, 0))
	must.False(t, short(2, 2))
	must.False(t, short(500, 499))
	must.True(t, short(500, 400))
	must.False(t, shortOf(&swarm.Tally{}, swarm.Large, e))
}

// The expected number of runs is at least 1, even after one run.
func TestShortfall_String(t *testing.T) {
	t.Parallel()
	for _, s := range tallyOf(1, 1, "end/of-many").Short(swarm.Large) {
		must.StrHasSuffix(t, "in 0 runs, expected in 1", s.String())
	}
	must.True(t, shortOf(tallyOf(1, 1, "end/of-many"), swarm.Large, "drain/many"))
}

func TestTally_countsRunsAndTimes(t *testing.T) {
	t.Parallel()
	tally := tallyOf(4, 2, "end/refused")
	must.Eq(t, 4, tally.Runs)
	must.Eq(t, map[swarm.Event]swarm.Count{"end/refused": {Runs: 2, Times: 6}}, tally.Events)
}

// Each event has one rate and a description, and each fault has a rate. Only a few listed events are
// too rare for a rate in large runs.
func TestRates(t *testing.T) {
	t.Parallel()
	found := map[swarm.Event]bool{}
	var rare []swarm.Event
	for _, r := range swarm.Rates() {
		must.False(t, found[r.Event], must.Sprintf("%s", r.Event))
		found[r.Event] = true
		must.NotEq(t, "", r.What)
		for _, size := range swarm.Sizes() {
			name, _ := strings.CutPrefix(string(r.Event), "fault/")
			if real := scenario.FaultName(name).Kind().Real || ofRealClients(r.Event); real && size != swarm.Small {
				must.Zero(t, r.Least[size]) // only small worlds have real clients
				continue
			}
			if size == swarm.Large && r.Least[size] == 0 {
				rare = append(rare, r.Event)
				continue
			}
			must.Between(t, 0.0001, r.Least[size], 0.99, must.Sprintf("%s in %s runs", r.Event, size))
		}
	}
	must.SliceContainsAll(t, []swarm.Event{
		"term/behind", "end/too-early", "end/of-paused", "drain/resume-under-all", "surge/second-replacement", "surge/withdrawn", "surge/standby-ended", "surge/standby-marked", "drain/confirmed", "fault/node/return", "fault/sched/unplaceable",
		"service/given", "service/edited", "plan/holds-lost", "plan/keeps-replacement", "alloc/given-up", "alloc/permitted-again",
	}, rare)
	for _, f := range scenario.Faults() {
		must.True(t, found["fault/"+swarm.Event(f.Name)])
	}
}

// ofRealClients reports whether an event needs devices, volumes, checks or the client's clock.
func ofRealClients(e swarm.Event) bool {
	for _, with := range []string{"device/", "claim/", "data/", "volumes/", "check/", "alloc/expired", "reason/held for volumes", "reason/waiting for data"} {
		if strings.HasPrefix(string(e), with) {
			return true
		}
	}
	return false
}

// An event with a rate that never happens is short after an hour of large seeds.
func TestRates_areShortAfterAnHourOfLargeSeeds(t *testing.T) {
	t.Parallel()
	const hour = 500
	tally := tallyOf(hour, 0, "nothing")
	for _, r := range swarm.Rates() {
		must.Eq(t, r.Least[swarm.Large] > 0, shortOf(tally, swarm.Large, r.Event), must.Sprintf("%s", r.Event))
	}
}
