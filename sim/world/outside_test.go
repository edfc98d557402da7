package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// What is cut off when all else is calm stays so: the servers never lead again, whoever
// led, and the nodes are found out and never come back. The drain goes on without them.
func TestCalm_outside(t *testing.T) {
	t.Parallel()
	const calm = drains + 500*time.Millisecond
	for leads := range 3 {
		w := newTown(t, world.Options{Servers: 3, Views: leads%2 == 0, Seed: 7})
		w.drain()
		w.at(armed, func() { must.NoError(t, w.Depose(world.Election{Next: leads})) })
		w.at(armed, func() {
			must.NoError(t, w.Arm(scenario.Fault{Name: scenario.NodeDisconnect, On: "n3", Delay: exactly(time.Minute)}))
		})
		w.at(calm, func() {
			must.NoError(t, w.Calm(world.Outside{Servers: []int{1}, Nodes: []cluster.NodeID{"n2", "n3"}}))
			must.NotEq(t, 1, w.Leader())
		})
		for i := range time.Duration(5) {
			w.at(calm+i*time.Minute, func() { must.NoError(t, w.Elect(true)) })
		}
		w.run(t, 2*time.Hour)
		must.NotEq(t, 1, w.Leader())
		must.Positive(t, when[completions](w))
		must.Eq(t, cluster.NodeDown, w.State().Node("n2").Status)
		must.Eq(t, cluster.NodeDisconnected, w.State().Node("n3").Status)
		must.True(t, w.State().Node("n4").Reachable())
		must.NoError(t, w.SameStates())
	}
}

// Nobody is cut off without whom nobody could lead.
func TestCalm_noMinority(t *testing.T) {
	t.Parallel()
	for _, servers := range [][]int{{0, 1}, {3}, {-1}} {
		w := newTown(t, world.Options{Servers: 3})
		must.Error(t, w.Calm(world.Outside{Servers: servers}))
		must.NoError(t, w.Elect(true))
	}
}
