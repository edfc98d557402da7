package live_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/live"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// enough is in how many stories every fault there is strikes, however chance falls.
const enough = 150

// longOver is when a drain should have ended whose deadline is so long ago: stories go
// on for two hours after the last fault.
const longOver = time.Hour

// The stories of a swarm, in which everything goes wrong that can, are played with
// goroutines. Chance falls otherwise than in the deterministic run, so the end may be
// another. But no entry breaks a guarantee, all servers come to one state, every drain
// with a deadline ends, and if all the seeds are played every fault there is has struck.
func TestPlay_swarm(t *testing.T) {
	t.Parallel()
	struck := map[scenario.FaultName]int{}
	for seed := range uint64(seeds) {
		s := withoutUnplayable(swarm.Generate(seed, swarm.Small))
		synctest.Test(t, func(t *testing.T) {
			result, violations := judged(t, s, live.Options{})
			must.SliceEmpty(t, violations, must.Sprintf("seed %d", seed))
			for n := range result.State.DrainingNodes() {
				overdue := n.Drain.Strategy.Finite() && n.Drain.Strategy.Passed(time.Now().Add(-longOver))
				must.False(t, overdue && s.Drainer.Plugins != "after-stop", must.Sprintf("seed %d: %s drains on", seed, n.ID))
			}
			for fault, times := range result.Strikes {
				struck[fault] += times
			}
		})
	}
	if seeds < enough {
		return
	}
	for _, kind := range scenario.Faults() {
		if live.Unplayable(&scenario.Scenario{Events: []scenario.Event{{Op: &scenario.Fault{Name: kind.Name}}}}, live.Options{}) != nil {
			continue
		}
		must.Positive(t, struck[kind.Name], must.Sprintf("%s never struck", kind.Name))
	}
}

// withoutUnplayable is the scenario without the events that cannot be played.
func withoutUnplayable(s *scenario.Scenario) *scenario.Scenario {
	s.Events = slices.DeleteFunc(s.Events, func(e scenario.Event) bool {
		return live.Unplayable(&scenario.Scenario{Events: []scenario.Event{e}}, live.Options{}) != nil
	})
	return s
}
