package main

import (
	"bytes"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func smallDrains(t *testing.T, maxParallel int, config drainer.NodeDrainerConfig) (drainCase, *drains) {
	c := drainCase{drained: 20, nodes: 40, perNode: 20}
	plan := c.plan(maxParallel)
	var state bytes.Buffer
	must.NoError(t, statestore.Persist(&state, newCluster(t, plan).fsm.Store().Snapshot()))
	return c, newDrains(t, c, plan, state.Bytes(), config)
}

// The counts in lockstep are above 1 if the drainer needs more rounds or entries than necessary.
func TestInLockstep(t *testing.T) {
	for _, x := range []struct {
		name            string
		pace, floorPace int // the max_parallel of the jobs, and that for which the floor is computed
		config          drainer.NodeDrainerConfig
		check           func(*testing.T, lockstepCount)
	}{
		{"the fewest possible", 10, 10, drainer.NodeDrainerConfig{}, func(t *testing.T, r lockstepCount) {
			must.Eq(t, lockstepCount{1, 1, 1}, r)
		}},
		{"slower than the pace", 1, 10, drainer.NodeDrainerConfig{}, func(t *testing.T, r lockstepCount) {
			must.Greater(t, 5, r.rounds)
			must.Greater(t, 1.1, r.markEntries)
		}},
		{"small entries", 100, 100, drainer.NodeDrainerConfig{MaxIDsPerEntry: 10}, func(t *testing.T, r lockstepCount) {
			must.Eq(t, 1, r.rounds)
			must.Greater(t, 5, r.markEntries)
			must.Greater(t, 1.1, r.endEntries)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, d := smallDrains(t, x.pace, x.config)
			x.check(t, d.inLockstep(c, x.floorPace))
		})
	}
}

// The count of entries in flight reaches the configured limit, also above the default.
func TestInFlight(t *testing.T) {
	for _, bound := range []int{drainer.DefaultMaxInFlight, drainer.DefaultMaxInFlight + 1} {
		_, d := smallDrains(t, 100, drainer.NodeDrainerConfig{MaxIDsPerEntry: 10, MaxInFlight: bound})
		d.run(new(measure.Meter))
		must.Eq(t, bound, d.leader.maxInFlight)
	}
}
