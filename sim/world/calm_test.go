package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// When faults end, nothing of them is left: whatever it was that struck, and however
// long it was to last, a drain is over soon, by its clients' stop times and nothing
// else, and everybody who leads or is there is told and seen again.
func TestCalm(t *testing.T) {
	t.Parallel()
	const calm = 30 * time.Second
	for _, kind := range scenario.Faults() {
		if kind.Name == scenario.ClientNeverStop || kind.Name == scenario.NodeReturn {
			continue // it stays, and here no node is lost
		}
		t.Run(string(kind.Name), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(4) {
				w := newTown(t, world.Options{Servers: 3, Views: true, Seed: seed})
				f := scenario.Fault{Name: kind.Name}
				if !kind.Lasts {
					f.For = 24 * time.Hour
				}
				if kind.Delays != scenario.NoDelay {
					f.Delay = exactly(time.Hour)
				}
				if kind.On == scenario.OnWrites {
					f.On = "drainer" // nobody would ask for the drain again
				}
				w.at(armed, func() { must.NoError(t, w.Arm(f)) })
				w.drain()
				w.at(20*time.Second, func() { must.NoError(t, w.Elect(true)) })
				w.at(calm, func() { must.NoError(t, w.Calm(world.Outside{})) })
				w.at(calm+time.Millisecond, func() {
					must.Eq(t, w.Term()-1, len(w.ended)) // whoever was deposed knows
				})
				w.run(t, 2*time.Hour)
				must.Positive(t, len(w.strikes))
				must.Positive(t, when[completions](w))
				must.Less(t, calm+kill+10*time.Second, when[completions](w))
				for _, at := range w.began {
					must.Less(t, calm, at)
				}
				for n := range w.State().Nodes() {
					must.True(t, n.Reachable())
					must.Eq(t, n.ID != "n1", n.SchedulingEligibility == cluster.NodeEligible)
				}
			}
		})
	}
}

// What a fault has begun ends, however often the write that ends it fails, and
// however late the one is that began it.
func TestFaults_ended(t *testing.T) {
	t.Parallel()
	failures := []scenario.Fault{
		{Name: scenario.ApplyReject, Count: 5},
		{Name: scenario.ApplyFull, Count: 5},
		{Name: scenario.ApplyAmbiguousLost, Count: 5},
		{Name: scenario.ApplyAmbiguousApplied, Count: 5},
		{Name: scenario.ApplyAmbiguousLate, Count: 5, Delay: exactly(25 * time.Second)},
		{Name: scenario.ApplySlow, Count: 5, Delay: exactly(25 * time.Second)},
	}
	for _, name := range []scenario.FaultName{scenario.NodeCrash, scenario.NodeDisconnect, scenario.SchedUnplaceable} {
		for _, failure := range failures {
			for _, away := range []time.Duration{11 * time.Second, 40 * time.Second} {
				for _, fails := range []time.Duration{armed, armed + away - time.Millisecond} {
					w := newTown(t, world.Options{Servers: 3, Views: true})
					w.at(fails, func() {
						failure.On = "operator"
						must.NoError(t, w.Arm(failure))
					})
					w.at(armed, func() {
						must.NoError(t, w.Arm(scenario.Fault{Name: name, Delay: exactly(away)}))
					})
					w.at(armed+away-time.Millisecond, func() { must.NoError(t, w.Elect(false)) })
					must.True(t, w.run(t, time.Hour))
					must.Greater(t, 1, len(w.strikes))
					for n := range w.State().Nodes() {
						about := must.Sprintf("%s and from %s %s for %s", name, fails, failure.Name, away)
						must.True(t, n.Reachable(), about)
						must.Eq(t, cluster.NodeEligible, n.SchedulingEligibility, about)
					}
				}
			}
		}
	}
}

// A node that drained while nothing could be placed stays as its drain left it, and a
// node that is deleted stays so.
func TestFaults_cordonLeavesDrains(t *testing.T) {
	t.Parallel()
	w := newTown(t, world.Options{})
	w.at(armed, func() {
		must.NoError(t, w.Arm(scenario.Fault{Name: scenario.SchedUnplaceable, Delay: exactly(time.Minute)}))
	})
	w.at(2*armed, func() { w.Drain("n4", cluster.DrainSpec{}, "") }) // it is empty
	w.at(2*armed, func() { w.Drain("n3", cluster.DrainSpec{}, "") })
	w.at(2*armed, func() { w.DeleteNode("n2") })
	w.at(30*time.Second, func() { w.CancelDrain("n3", true, "") })
	w.run(t, lasts)
	eligible := map[cluster.NodeID]bool{}
	for n := range w.State().Nodes() {
		eligible[n.ID] = n.SchedulingEligibility == cluster.NodeEligible
	}
	must.Eq(t, map[cluster.NodeID]bool{"n1": true, "n3": true, "n4": false}, eligible)
}

// An election that was to come before an answer does not come after the calm.
func TestCalm_loseLeader(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{15 * time.Second, time.Hour} {
		w := newTown(t, world.Options{Servers: 3, Views: true, Commit: exactly(10 * time.Second)})
		w.drain()
		w.at(armed, func() {
			must.NoError(t, w.Arm(scenario.Fault{Name: scenario.LeaderLoseMidBatch, Delay: exactly(delay)}))
		})
		w.at(drains+15*time.Second, func() { must.NoError(t, w.Calm(world.Outside{})) }) // the marks are on their way
		w.run(t, lasts)
		must.Len(t, 1, w.strikes)
		must.Eq(t, 1, w.Term())
	}
}
