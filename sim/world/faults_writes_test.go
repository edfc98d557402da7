package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// failed checks the outcome of the drainer's first marks, and whether the log holds them. If it
// does not, the drainer must write the marks again.
func failed(t *testing.T, struck *fixture, outcome raftwrite.Outcome, logged bool) {
	t.Helper()
	marked := first[marks](struck)
	must.Eq(t, outcome, marked.answer.Outcome)
	must.Eq(t, logged, struck.logged(marked))
	must.Eq(t, logged, nth[marks](struck, 1) == nil)
	must.Eq(t, 1, struck.outcomes()[outcome])
	must.Eq(t, 0, struck.outcomes()[raftwrite.Rejected+raftwrite.Unknown-outcome])
}

func writeCases() []faultCase {
	return []faultCase{{
		fault: scenario.Fault{Name: scenario.ApplyReject, On: "marks"},
		keeps: terms | sequence | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			failed(t, struck, raftwrite.Rejected, false)
			must.Greater(t, when[marks](plain), when[marks](struck))
		},
	}, {
		fault:   scenario.Fault{Name: scenario.ApplyReject, On: "scheduler", Count: 2},
		strikes: 2,
		keeps:   late,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Eq(t, when[marks](plain), when[marks](struck)) // the drainer's writes do not match
			must.Greater(t, when[plan](plain), when[plan](struck))
		},
	}, {
		fault: scenario.Fault{Name: scenario.ApplyFull, On: "completion"},
		keeps: late,
		check: func(t *testing.T, plain, struck *fixture) {
			must.False(t, first[completions](struck).Taken)
			must.False(t, first[completions](struck).answered)
			must.True(t, nth[completions](struck, 1).Taken)
			must.Greater(t, when[completions](plain), when[completions](struck))
		},
	}, {
		fault: scenario.Fault{Name: scenario.ApplyAmbiguousApplied, On: "marks"},
		keeps: terms | sequence | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			failed(t, struck, raftwrite.Unknown, true)
			must.Eq(t, when[marks](plain), when[marks](struck))
			must.Eq(t, when[marks](struck), first[marks](struck).answeredAt)
		},
	}, {
		fault: scenario.Fault{Name: scenario.ApplyAmbiguousLate, On: "marks", Delay: exactly(3 * time.Second)},
		keeps: terms | sequence | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			failed(t, struck, raftwrite.Unknown, true)
			must.Eq(t, when[marks](plain), first[marks](struck).answeredAt)
			must.Eq(t, when[marks](plain)+3*time.Second, when[marks](struck))
		},
	}, {
		fault:   scenario.Fault{Name: scenario.ApplyAmbiguousLate, On: "barrier", Count: 2},
		strikes: 2, // one of the drainer, one of the scheduler
		setup:   func(t *testing.T, w *fixture) { w.at(6*time.Second, func() { must.NoError(t, w.Servers.Elect(true)) }) },
		keeps:   terms | sequence | ending,
		check: func(t *testing.T, plain, struck *fixture) { // a barrier has no effect
			must.Eq(t, 1, struck.outcomes()[raftwrite.Unknown])
			must.Eq(t, when[marks](plain), when[marks](struck))
		},
	}, {
		fault: scenario.Fault{Name: scenario.ApplyAmbiguousLost, On: "marks"},
		keeps: terms | sequence | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			failed(t, struck, raftwrite.Unknown, false)
			must.Greater(t, when[marks](plain), when[marks](struck))
		},
	}, {
		fault: scenario.Fault{Name: scenario.ApplySlow, On: "report", Delay: exactly(4 * time.Second)},
		keeps: late,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Eq(t, when[plan](plain), when[plan](struck))
			must.Eq(t, when[report](plain)+4*time.Second, when[report](struck))
		},
	}, {
		fault: scenario.Fault{Name: scenario.ApplySlow, On: "drainer"}, // the delay is the world's
		keeps: late,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Eq(t, when[marks](plain)+scenario.DefaultLate, when[marks](struck))
			must.Eq(t, when[marks](struck), first[marks](struck).answeredAt)
		},
	}, {
		fault: scenario.Fault{Name: scenario.ApplyPartialRefuse, On: "web"},
		setup: func(t *testing.T, w *fixture) { w.place(t, "log", "n1", "n2") }, // its marks come first
		keeps: terms | ending,                                                   // the drainer writes the refused mark again
		check: func(t *testing.T, plain, struck *fixture) { checkPartialRefuse(t, plain, struck, web) },
	}, {
		fault: scenario.Fault{Name: scenario.ApplyPartialRefuse, On: "api"},
		setup: placeUnhealthy,
		keeps: terms | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			checkPartialRefuse(t, plain, struck, cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "api"})
		},
	}}
}

// placeUnhealthy writes a job whose second allocation is unhealthy. The failure of that
// allocation would make no mark invalid.
func placeUnhealthy(t *testing.T, w *fixture) {
	t.Helper()
	j := world.NewJob(cluster.JobService, "api", 4)
	j.TaskGroups[0].Migrate.MaxParallel = 2
	var allocs []*cluster.Allocation
	for i, on := range []cluster.NodeID{"n1", "n2", "n3", "n4"} {
		allocs = append(allocs, w.Setup.NewAlloc(j, "api", i, on))
	}
	*allocs[1].DeploymentStatus.Healthy = false
	must.NoError(t, w.Setup.Place(world.Placement{Job: j, Allocs: allocs}))
}

// checkPartialRefuse checks that in one group of the entry an allocation fails, so that the FSM
// refuses the mark of that group. The FSM accepts the mark of the other group.
func checkPartialRefuse(t *testing.T, plain, struck *fixture, job cluster.JobKey) {
	t.Helper()
	must.Eq(t, when[marks](plain), when[marks](struck))
	for i, e := range struck.entries {
		if _, is := e.Message.(marks); !is {
			continue
		}
		failing := struck.entries[i-1].Message.(report).Reports
		must.Len(t, 1, failing)
		must.Eq(t, cluster.ClientFailed, failing[0].ClientStatus)
		must.Eq(t, job, e.Before.Alloc(failing[0].Alloc).JobKey())
		response := e.Response.(shims.MarksApplied)
		must.Len(t, 1, response.Refused)
		must.NotEq(t, failing[0].Alloc, response.Refused[0].Alloc)
		must.Eq(t, job, e.Before.Alloc(response.Refused[0].Alloc).JobKey())
		must.Len(t, 1, response.Accepted)
		return
	}
}

// If the fault has no delay, the world draws the delay of a late write from its own range. It
// draws none for other writes.
func TestFaults_drawnLateness(t *testing.T) {
	t.Parallel()
	from := scenario.Range{Min: time.Second, Max: 30 * time.Second}
	seen := map[time.Duration]bool{}
	for seed := range uint64(8) {
		w := newFixture(t, world.Options{Seed: seed, Late: from})
		w.at(armed, func() { must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.ApplySlow, On: "marks"})) })
		w.drain()
		w.run(t, lasts)
		late := when[marks](w) - first[marks](w).at - commits
		must.Between(t, from.Min, late, from.Max)
		if seed == 0 { // without a seed it is the minimum
			must.Eq(t, from.Min, late)
		}
		seen[late] = true
	}
	must.Greater(t, 6, len(seen))
}
