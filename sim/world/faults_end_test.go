package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// When the faults end, all their effects end, even those with a longer delay: the drain ends
// after the stop times of its clients, deposed leaders know that they are deposed, and all nodes
// are ready.
func TestFaults_End(t *testing.T) {
	t.Parallel()
	const ends = 30 * time.Second
	for _, kind := range scenario.Faults() {
		if kind.Name == scenario.ClientNeverStop || kind.Name == scenario.NodeReturn {
			continue // the effect of the first does not end, and the second needs a lost node
		}
		t.Run(string(kind.Name), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(4) {
				w := newFixtureOf(t, world.Options{Servers: 3, Views: true, Seed: seed, RealClients: kind.Real}, kind)
				f := scenario.Fault{Name: kind.Name}
				if !kind.Lasts {
					f.For = 24 * time.Hour
				}
				if kind.Delays != scenario.NoDelay {
					f.Delay = exactly(time.Hour)
				}
				if kind.On == scenario.OnWrites {
					f.On = "drainer" // otherwise the request for the drain would fail
				}
				w.at(armed, func() { must.NoError(t, w.Faults.Arm(f)) })
				w.drain()
				w.at(20*time.Second, func() { must.NoError(t, w.Servers.Elect(true)) })
				w.at(ends, func() { must.NoError(t, w.Faults.End(world.CutOff{})) })
				w.at(ends+time.Millisecond, func() {
					must.Eq(t, w.Term()-1, len(w.ended)) // every deposed leader knows that it is deposed
				})
				w.run(t, 2*time.Hour)
				must.Positive(t, len(w.strikes))
				must.Positive(t, when[completions](w))
				must.Less(t, ends+kill+10*time.Second, when[completions](w))
				for _, at := range w.elected {
					must.Less(t, ends, at)
				}
				for n := range w.State().Nodes() {
					must.True(t, n.Reachable())
					must.Eq(t, n.ID != "n1", n.SchedulingEligibility == cluster.NodeEligible)
				}
			}
		})
	}
}

// The effects of faults on nodes end even if the writes that revert them fail, or if the
// writes that started them are late.
func TestFaults_revert(t *testing.T) {
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
					w := newFixture(t, world.Options{Servers: 3, Views: true})
					w.at(fails, func() {
						failure.On = "operator"
						must.NoError(t, w.Faults.Arm(failure))
					})
					w.at(armed, func() {
						must.NoError(t, w.Faults.Arm(scenario.Fault{Name: name, Delay: exactly(away)}))
					})
					w.at(armed+away-time.Millisecond, func() { must.NoError(t, w.Servers.Elect(false)) })
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

// The end of sched/unplaceable does not change the eligibility of nodes that have drained in
// the meantime, and does not create deleted nodes.
func TestFaults_cordonAfterDrains(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{})
	w.at(armed, func() {
		must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.SchedUnplaceable, Delay: exactly(time.Minute)}))
	})
	w.at(2*armed, func() { w.drainNode("n4", 0) }) // n4 is empty
	w.at(2*armed, func() { w.drainNode("n3", 0) })
	w.at(2*armed, func() { w.Operator.Propose(w.Operator.Requests.DeleteNode("n2"), nil) })
	w.at(30*time.Second, func() { w.Operator.Propose(w.Operator.Requests.Cancel("n3", true, ""), nil) })
	w.run(t, lasts)
	eligible := map[cluster.NodeID]bool{}
	for n := range w.State().Nodes() {
		eligible[n.ID] = n.SchedulingEligibility == cluster.NodeEligible
	}
	must.Eq(t, map[cluster.NodeID]bool{"n1": true, "n3": true, "n4": false}, eligible)
}

// An election of leader/lose-mid-batch does not come after the faults have ended.
func TestFaults_endWithoutElection(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{15 * time.Second, time.Hour} {
		w := newFixture(t, world.Options{Servers: 3, Views: true, Commit: exactly(10 * time.Second)})
		w.drain()
		w.at(armed, func() {
			must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.LeaderLoseMidBatch, Delay: exactly(delay)}))
		})
		w.at(drains+15*time.Second, func() { must.NoError(t, w.Faults.End(world.CutOff{})) }) // the marks are in flight
		w.run(t, lasts)
		must.Len(t, 1, w.strikes)
		must.Eq(t, 1, w.Term())
	}
}
