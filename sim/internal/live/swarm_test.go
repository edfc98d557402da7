package live_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/internal/live"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// graceTime is the time after its deadline in which a drain must end. A scenario of the swarm
// continues for two hours after its last fault, so graceTime is less than that.
const graceTime = time.Hour

// The test plays scenarios of the swarm without the events that cannot be played. The goroutines
// draw random numbers in another order than the deterministic run, so the final facts may
// differ. But no entry breaks a guarantee, all servers end with the same state, and every drain
// with a deadline ends.
func TestPlay_swarm(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s := swarm.Generate(seed, swarm.Small)
			s.Cluster.Clients = "" // a play has simulated clients
			s.Events = slices.DeleteFunc(s.Events, func(e scenario.Event) bool {
				return live.Unplayable(&scenario.Scenario{Events: []scenario.Event{e}}) != nil
			})
			synctest.Test(t, func(t *testing.T) {
				result, violations := judged(t, s, live.Options{})
				must.SliceEmpty(t, violations)
				for n := range result.State.DrainingNodes() {
					overdue := n.Drain.Strategy.Finite() && n.Drain.Strategy.Passed(time.Now().Add(-graceTime))
					must.False(t, overdue && s.Drainer.Plugins != "after-stop", must.Sprintf("%s still drains", n.ID))
				}
			})
		})
	}
}
