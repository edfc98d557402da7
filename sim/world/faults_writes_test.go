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

// failed is what the drainer was told of its first marks, and whether they are in the
// log; another write with marks follows unless they are.
func failed(t *testing.T, struck *town, told raftwrite.Outcome, logged bool) {
	t.Helper()
	marked := first[marks](struck)
	must.Eq(t, told, marked.answer.Outcome)
	must.Eq(t, logged, struck.logged(marked))
	must.Eq(t, logged, nth[marks](struck, 1) == nil)
	must.Eq(t, 1, struck.outcomes()[told])
	must.Eq(t, 0, struck.outcomes()[raftwrite.Rejected+raftwrite.Unknown-told])
}

func storiesOfWrites() []faultStory {
	return []faultStory{{
		fault:  scenario.Fault{Name: scenario.ApplyReject, On: "marks"},
		leaves: terms | sequence | ending,
		check: func(t *testing.T, plain, struck *town) {
			failed(t, struck, raftwrite.Rejected, false)
			must.Greater(t, when[marks](plain), when[marks](struck))
		},
	}, {
		fault:   scenario.Fault{Name: scenario.ApplyReject, On: "scheduler", Count: 2},
		strikes: 2,
		leaves:  late,
		check: func(t *testing.T, plain, struck *town) {
			must.Eq(t, when[marks](plain), when[marks](struck)) // it is not on the drainer
			must.Greater(t, when[plan](plain), when[plan](struck))
		},
	}, {
		fault:  scenario.Fault{Name: scenario.ApplyFull, On: "completion"},
		leaves: late,
		check: func(t *testing.T, plain, struck *town) {
			must.False(t, first[completions](struck).Taken)
			must.False(t, first[completions](struck).answered)
			must.True(t, nth[completions](struck, 1).Taken)
			must.Greater(t, when[completions](plain), when[completions](struck))
		},
	}, {
		fault:  scenario.Fault{Name: scenario.ApplyAmbiguousApplied, On: "marks"},
		leaves: terms | sequence | ending,
		check: func(t *testing.T, plain, struck *town) {
			failed(t, struck, raftwrite.Unknown, true)
			must.Eq(t, when[marks](plain), when[marks](struck))
			must.Eq(t, when[marks](struck), first[marks](struck).told)
		},
	}, {
		fault:  scenario.Fault{Name: scenario.ApplyAmbiguousLate, On: "marks", Delay: exactly(3 * time.Second)},
		leaves: terms | sequence | ending,
		check: func(t *testing.T, plain, struck *town) {
			failed(t, struck, raftwrite.Unknown, true)
			must.Eq(t, when[marks](plain), first[marks](struck).told)
			must.Eq(t, when[marks](plain)+3*time.Second, when[marks](struck))
		},
	}, {
		fault:   scenario.Fault{Name: scenario.ApplyAmbiguousLate, On: "barrier", Count: 2},
		strikes: 2, // one of the drainer, one of the scheduler
		begin:   func(t *testing.T, w *town) { w.at(6*time.Second, func() { must.NoError(t, w.Elect(true)) }) },
		leaves:  terms | sequence | ending,
		check: func(t *testing.T, plain, struck *town) { // it has no effect that could come late
			must.Eq(t, 1, struck.outcomes()[raftwrite.Unknown])
			must.Eq(t, when[marks](plain), when[marks](struck))
		},
	}, {
		fault:  scenario.Fault{Name: scenario.ApplyAmbiguousLost, On: "marks"},
		leaves: terms | sequence | ending,
		check: func(t *testing.T, plain, struck *town) {
			failed(t, struck, raftwrite.Unknown, false)
			must.Greater(t, when[marks](plain), when[marks](struck))
		},
	}, {
		fault:  scenario.Fault{Name: scenario.ApplySlow, On: "report", Delay: exactly(4 * time.Second)},
		leaves: late,
		check: func(t *testing.T, plain, struck *town) {
			must.Eq(t, when[plan](plain), when[plan](struck))
			must.Eq(t, when[report](plain)+4*time.Second, when[report](struck))
		},
	}, {
		fault:  scenario.Fault{Name: scenario.ApplySlow, On: "drainer"}, // as late as the world says
		leaves: late,
		check: func(t *testing.T, plain, struck *town) {
			must.Eq(t, when[marks](plain)+scenario.DefaultLate, when[marks](struck))
			must.Eq(t, when[marks](struck), first[marks](struck).told)
		},
	}, {
		fault:  scenario.Fault{Name: scenario.ApplyPartialRefuse, On: "web"},
		begin:  func(t *testing.T, w *town) { w.place(t, "log", "n1", "n2") }, // its marks come first
		leaves: terms | ending,                                                // what was refused is written again
		check:  func(t *testing.T, plain, struck *town) { checkPartialRefuse(t, plain, struck, web) },
	}, {
		fault:  scenario.Fault{Name: scenario.ApplyPartialRefuse, On: "api"},
		begin:  placeIll,
		leaves: terms | ending,
		check: func(t *testing.T, plain, struck *town) {
			checkPartialRefuse(t, plain, struck, cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "api"})
		},
	}}
}

// placeIll begins with a job whose allocations are well, but for the second: its loss
// would make nothing untrue.
func placeIll(t *testing.T, w *town) {
	t.Helper()
	j := world.NewJob(cluster.JobService, "api", 4)
	j.TaskGroups[0].Migrate.MaxParallel = 2
	var allocs []*cluster.Allocation
	for i, on := range []cluster.NodeID{"n1", "n2", "n3", "n4"} {
		allocs = append(allocs, w.NewAlloc(j, "api", i, on))
	}
	*allocs[1].DeploymentStatus.Healthy = false
	must.NoError(t, w.Place(j, allocs...))
}

// One group of an entry has its peer fail, and with it the room for its mark; the
// other is marked.
func checkPartialRefuse(t *testing.T, plain, struck *town, job cluster.JobKey) {
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

// A fault that does not say how late a write is leaves it to the world's range, and
// each is as late as is drawn for it. What is not late draws nothing.
func TestFaults_lateIsDrawn(t *testing.T) {
	t.Parallel()
	from := scenario.Range{Min: time.Second, Max: 30 * time.Second}
	seen := map[time.Duration]bool{}
	for seed := range uint64(8) {
		w := newTown(t, world.Options{Seed: seed, Late: from})
		w.at(armed, func() { must.NoError(t, w.Arm(scenario.Fault{Name: scenario.ApplySlow, On: "marks"})) })
		w.drain()
		w.run(t, lasts)
		late := when[marks](w) - first[marks](w).at - commits
		must.Between(t, from.Min, late, from.Max)
		if seed == 0 { // nothing is drawn
			must.Eq(t, from.Min, late)
		}
		seen[late] = true
	}
	must.Greater(t, 6, len(seen))
}
