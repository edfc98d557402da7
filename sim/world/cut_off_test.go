package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Servers that are cut off never lead again. Nodes that are cut off become down and never return.
// The drain ends without them.
func TestFaults_cutOff(t *testing.T) {
	t.Parallel()
	const ends = drains + 500*time.Millisecond
	for leads := range 3 {
		w := newFixture(t, world.Options{Servers: 3, Views: leads%2 == 0, Seed: 7})
		w.drain()
		w.at(armed, func() { must.NoError(t, w.Servers.Depose(world.Election{Next: leads})) })
		w.at(armed, func() {
			must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.NodeDisconnect, On: "n3", Delay: exactly(time.Minute)}))
		})
		w.at(ends, func() {
			must.NoError(t, w.Faults.End(world.CutOff{Servers: []int{1}, Nodes: []cluster.NodeID{"n2", "n3"}}))
			must.NotEq(t, 1, w.Leader())
		})
		for i := range time.Duration(5) {
			w.at(ends+i*time.Minute, func() { must.NoError(t, w.Servers.Elect(true)) })
		}
		w.run(t, 2*time.Hour)
		must.NotEq(t, 1, w.Leader())
		must.Positive(t, when[completions](w))
		must.Eq(t, cluster.NodeDown, w.State().Node("n2").Status)
		must.Eq(t, cluster.NodeDown, w.State().Node("n3").Status, must.Sprint("nothing on it is awaited"))
		must.True(t, w.State().Node("n4").Reachable())
		w.sameStates(t)
	}
}

// Only a minority of the servers can be cut off.
func TestFaults_cutOffMinority(t *testing.T) {
	t.Parallel()
	for _, servers := range [][]int{{0, 1}, {3}, {-1}} {
		w := newFixture(t, world.Options{Servers: 3})
		must.Error(t, w.Faults.End(world.CutOff{Servers: servers}))
		must.NoError(t, w.Servers.Elect(true))
	}
}
