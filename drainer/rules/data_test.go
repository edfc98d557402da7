package rules

import (
	"iter"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// keptData is a drain of n1 whose allocation a1 has ended. Its client keeps the data for the replacement r1
// on n2, which waits for it.
func keptData() *fixture.Cluster {
	w := fixture.NewCluster(3, 1)
	w.TaskGroup().EphemeralDisk.Migrate = true
	w.StartDrain("n1", 0)
	a := w.Alloc("a1")
	a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d-n1", Class: cluster.MarkPaced, MarkedAt: fixture.Epoch}
	a.DesiredStatus, a.ClientStatus, a.ModifyTime = cluster.DesiredStop, cluster.ClientComplete, fixture.Epoch.Add(time.Minute)
	a.DataOut, a.NextAllocation = &cluster.DataMove{State: cluster.DataKept}, "r1"
	replacementOf(w, "a1", "r1", "n2")
	return w
}

func replacementOf(w *fixture.Cluster, old, id cluster.AllocID, on cluster.NodeID) *cluster.Allocation {
	w.Alloc(old).NextAllocation = id
	r := w.Place(id, w.Jobs[0], on)
	r.PreviousAllocation, r.ClientStatus, r.DeploymentStatus = old, cluster.ClientPending, nil
	r.CreateTime = fixture.Epoch
	r.DataIn = &cluster.DataMove{State: cluster.DataWaiting}
	return r
}

func blockedEval(w *fixture.Cluster) {
	w.Evals = append(w.Evals, &cluster.Evaluation{ID: "e1", Namespace: "default", JobID: "web", Status: cluster.EvalBlocked})
}

// The end of a drain waits for data that a replacement can still take.
func TestJudgeEnd_Data(t *testing.T) {
	t.Parallel()
	fails := func(w *fixture.Cluster) {
		w.Alloc("r1").ClientStatus = cluster.ClientFailed
	}
	failsLate := func(w *fixture.Cluster, p *cluster.ReschedulePolicy) {
		fails(w)
		w.Alloc("r1").EndedAt = fixture.Epoch.Add(30 * time.Minute)
		w.TaskGroup().Reschedule = p
	}
	for name, test := range map[string]struct {
		edit func(*fixture.Cluster)
		// want is the detail of the reason, or empty if the drain does not wait.
		want, cause string
	}{
		"the replacement waits": {nil, "its data waits for allocation r1 on node-2", "alloc r1 on node-2 does not have the data yet since 2030-01-01T00:00:00Z"},
		"the replacement copies": {
			func(w *fixture.Cluster) {
				w.Alloc("r1").DataIn = &cluster.DataMove{State: cluster.DataCopying, Bytes: 4096}
			},
			"its data moves to allocation r1 on node-2, 4096 bytes so far", "alloc r1 on node-2 does not have the data yet since 2030-01-01T00:00:00Z",
		},
		"the client of the replacement has not reported": {
			func(w *fixture.Cluster) { w.Alloc("r1").DataIn = nil },
			"its data waits for allocation r1 on node-2", "alloc r1 on node-2 does not have the data yet since 2030-01-01T00:00:00Z",
		},
		"the replacement cannot be reached": {
			func(w *fixture.Cluster) { w.Node("n2").Status = cluster.NodeDisconnected },
			"its data waits for allocation r1 on node-2", "alloc r1 on node-2 cannot report since 2029-12-31T23:00:00Z",
		},
		"the replacement has the data": {func(w *fixture.Cluster) {
			w.Alloc("r1").DataIn.State, w.Alloc("a1").DataOut.State = cluster.DataCopied, cluster.DataCopied
		}, "", ""},
		"the replacement has started without the data, and has no report of it": {func(w *fixture.Cluster) {
			w.Alloc("r1").DataIn = &cluster.DataMove{State: cluster.DataGivenUp}
		}, "", ""},
		"an older client runs the replacement": {func(w *fixture.Cluster) {
			w.Alloc("r1").DataIn, w.Alloc("r1").ClientStatus = nil, cluster.ClientRunning
		}, "", ""},
		"a second replacement waits": {func(w *fixture.Cluster) {
			fails(w)
			replacementOf(w, "r1", "r2", "n3")
		}, "its data waits for allocation r2 on node-3", "alloc r2 on node-3 does not have the data yet since 2030-01-01T00:00:00Z"},
		"the first replacement had started, so the second one takes its data": {func(w *fixture.Cluster) {
			fails(w)
			w.Alloc("r1").DataIn.State = cluster.DataGivenUp
			replacementOf(w, "r1", "r2", "n3")
		}, "", ""},
		"the replacement has ended, and another one may come": {func(w *fixture.Cluster) {
			fails(w)
			blockedEval(w)
		}, "its data waits for a replacement, evaluation e1 is blocked", "evaluation e1 is blocked"},
		"the replacement has ended, and no other one comes": {fails, "", ""},
		"the replacement has failed, and another one is delayed": {func(w *fixture.Cluster) {
			failsLate(w, &cluster.ReschedulePolicy{Unlimited: true, Delay: time.Hour, DelayFunction: cluster.DelayConstant})
		}, "its data waits for a replacement, which is due at 2030-01-01T01:30:00Z", ""},
		"the replacement has failed, and another one is due": {func(w *fixture.Cluster) {
			failsLate(w, &cluster.ReschedulePolicy{Unlimited: true, Delay: time.Minute, DelayFunction: cluster.DelayConstant})
		}, "its data waits for a replacement", ""},
		"the replacement has failed, and its policy permits no other one": {func(w *fixture.Cluster) {
			failsLate(w, &cluster.ReschedulePolicy{})
		}, "", ""},
		"the replacement's row is gone": {func(w *fixture.Cluster) { w.Allocs = w.Allocs[:1] }, "", ""},
		"no replacement yet": {func(w *fixture.Cluster) {
			w.Alloc("a1").NextAllocation = ""
			blockedEval(w)
		}, "its data waits for a replacement, evaluation e1 is blocked", "evaluation e1 is blocked"},
		"no replacement, because none may be placed": {func(w *fixture.Cluster) {
			w.Alloc("a1").NextAllocation, w.Alloc("a1").DesiredTransition.MigrateDisablePlacement = "", true
			blockedEval(w)
		}, "", ""},
		"the job no longer moves data": {func(w *fixture.Cluster) {
			w.Alloc("a1").NextAllocation, w.TaskGroup().EphemeralDisk.Migrate = "", false
			blockedEval(w)
		}, "", ""},
		"batch work is done": {func(w *fixture.Cluster) {
			w.Alloc("a1").NextAllocation, w.Jobs[0].Type = "", cluster.JobBatch
			blockedEval(w)
		}, "", ""},
		"the node is down":      {func(w *fixture.Cluster) { w.Node("n1").Status = cluster.NodeDown }, "", ""},
		"the deadline is there": {func(w *fixture.Cluster) { w.StartDrain("n1", time.Minute) }, "", ""},
		"the drain is forced":   {func(w *fixture.Cluster) { w.StartDrain("n1", -1) }, "", ""},
		"a system job, left by request": {func(w *fixture.Cluster) {
			w.Jobs[0].Type, w.Node("n1").Drain.Strategy.IgnoreSystemJobs = cluster.JobSystem, true
		}, "", ""},
		"it had ended before the drain": {
			func(w *fixture.Cluster) { w.Alloc("a1").DesiredTransition = cluster.DesiredTransition{} },
			"its data waits for allocation r1 on node-2", "alloc r1 on node-2 does not have the data yet since 2030-01-01T00:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := keptData()
			if test.edit != nil {
				test.edit(w)
			}
			now := fixture.Epoch.Add(time.Hour)
			for policy, waits := range map[CompletionPolicy]bool{
				CompletionStopped: test.want != "", CompletionReplaced: test.want != "", CompletionMigrated: test.want != "", CompletionMarked: false,
			} {
				end := NewPlanner(w, now, Policy{Completion: policy}).judgeEnd(w.Node("n1"))
				must.Eq(t, !waits, end.done, must.Sprintf("policy %s", policy))
				must.Eq(t, waits, len(end.waitsFor) == 1, must.Sprint("its changes wake the drainer"))
			}
			report, err := Explain(w, TermState{}, "n1", now, Policy{})
			must.NoError(t, err)
			if test.want == "" {
				must.SliceEmpty(t, report.Allocs)
				return
			}
			must.Len(t, 1, report.Allocs)
			r := report.Allocs[0]
			must.Eq(t, ReasonWaitingForData, r.Reason)
			must.Eq(t, Since{At: fixture.Epoch.Add(time.Minute)}, r.Since)
			must.Eq(t, test.want, r.Detail)
			must.Eq(t, test.cause, r.Cause())
			must.Zero(t, report.Left[cluster.StageConsumers])
		})
	}
}

// A replacement that waits for its data has no time at which a verdict is due.
func TestExplain_aReplacementWaitsForItsData(t *testing.T) {
	t.Parallel()
	w := keptData()
	w.StartDrain("n2", 0)
	plan := NewPlanner(w, fixture.Epoch, Policy{}).PlanGroup(fixture.Group, nil)
	must.SliceEmpty(t, plan.Marks)
	must.True(t, plan.WakeAt.IsZero())
	report, err := Explain(w, TermState{}, "n2", fixture.Epoch.Add(24*time.Hour), Policy{})
	must.NoError(t, err)
	must.Eq(t, ReasonWaitingForHealth, report.Worst.Reason)
	must.True(t, report.Worst.Due.IsZero())
	must.Eq(t, "no health verdict yet: it waits for the data of the allocation that it replaces", report.Worst.Detail)

	w.Alloc("r1").DataIn = &cluster.DataMove{State: cluster.DataGivenUp, EndedAt: fixture.Epoch.Add(time.Hour)}
	report, err = Explain(w, TermState{}, "n2", fixture.Epoch.Add(time.Hour), Policy{})
	must.NoError(t, err)
	must.Eq(t, fixture.Epoch.Add(time.Hour+time.Minute+DefaultHealthGrace), report.Worst.Due)
}

func TestDataNotCopied(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(w *fixture.Cluster, a *cluster.Allocation)
		want bool
	}{
		"kept":     {func(*fixture.Cluster, *cluster.Allocation) {}, true},
		"given up": {func(_ *fixture.Cluster, a *cluster.Allocation) { a.DataOut.State = cluster.DataGivenUp }, true},
		"copied":   {func(_ *fixture.Cluster, a *cluster.Allocation) { a.DataOut.State = cluster.DataCopied }, false},
		// Bug: a drain was complete beside the only copy of what was on a mounted file system.
		"copied in part": {func(_ *fixture.Cluster, a *cluster.Allocation) {
			a.DataOut.State, a.DataOut.Why = cluster.DataCopied, "other file systems are mounted in the data"
		}, true},
		"no data": {func(_ *fixture.Cluster, a *cluster.Allocation) { a.DataOut = nil }, false},
		"lost":    {func(_ *fixture.Cluster, a *cluster.Allocation) { a.DataOut, a.ClientStatus = nil, cluster.ClientLost }, true},
		"still stops": {func(_ *fixture.Cluster, a *cluster.Allocation) {
			a.DataOut, a.ClientStatus = nil, cluster.ClientRunning
		}, true},
		"job stopped": {func(w *fixture.Cluster, _ *cluster.Allocation) { w.Jobs[0].Stop = true }, false},
		// Bug: data of no use counted, unlike that of a stopped job.
		"count 0":      {func(w *fixture.Cluster, _ *cluster.Allocation) { w.TaskGroup().Count = 0 }, false},
		"disk dropped": {func(w *fixture.Cluster, _ *cluster.Allocation) { w.TaskGroup().EphemeralDisk.Migrate = false }, false},
		"not marked, and on its way": {func(_ *fixture.Cluster, a *cluster.Allocation) {
			a.DesiredTransition = cluster.DesiredTransition{}
		}, true},
		"not marked, and given up": {func(_ *fixture.Cluster, a *cluster.Allocation) {
			a.DesiredTransition, a.DataOut.State = cluster.DesiredTransition{}, cluster.DataGivenUp
		}, false},
		// Bug: a drain was complete beside the only copy of data whose slot the scheduler had given up.
		"not marked, and the slot is given up": {func(w *fixture.Cluster, a *cluster.Allocation) {
			a.DesiredTransition, a.DesiredStatus = cluster.DesiredTransition{}, cluster.DesiredRun
			w.Alloc("r1").ClientStatus = cluster.ClientFailed
		}, true},
		"not marked, and the replacement is stopped": {func(w *fixture.Cluster, a *cluster.Allocation) {
			a.DesiredTransition = cluster.DesiredTransition{}
			w.Alloc("r1").DesiredStatus, w.Alloc("r1").ClientStatus = cluster.DesiredStop, cluster.ClientFailed
		}, false},
		"not marked, and a batch job is done": {func(w *fixture.Cluster, a *cluster.Allocation) {
			a.DesiredTransition, w.Jobs[0].Type = cluster.DesiredTransition{}, cluster.JobBatch
			a.DesiredStatus, a.NextAllocation = cluster.DesiredRun, ""
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := keptData()
			test.edit(w, w.Alloc("a1"))
			got := DataNotCopied(w, w.Node("n1"))
			if !test.want {
				must.Nil(t, got)
				return
			}
			must.Eq(t, &cluster.DataNotCopied{Count: 1, Allocs: []cluster.AllocID{"a1"}}, got)
		})
	}
}

// A store of an older cluster version counts less.
func TestEnding_ForVersion(t *testing.T) {
	t.Parallel()
	e := Ending{Outcome: cluster.OutcomeUnconfirmed, Unconfirmed: &cluster.UnconfirmedAllocs{Count: 1}, DataNotCopied: &cluster.DataNotCopied{Count: 1}}
	must.Eq(t, e, e.ForVersion(cluster.VersionOfData))
	must.Eq(t, Ending{Outcome: e.Outcome, Unconfirmed: e.Unconfirmed}, e.ForVersion(cluster.VersionOfConfirmation))
	must.Eq(t, Ending{Outcome: cluster.OutcomeComplete}, e.ForVersion(cluster.VersionOfVolumes))
}

// records are a world with versions and without ended drains.
type records struct{ *fixture.Cluster }

func (records) ClusterVersion() cluster.Version { return cluster.MaxVersion }

func (records) DrainsByNode(cluster.NodeID) iter.Seq[*cluster.Drain] {
	return func(func(*cluster.Drain) bool) {}
}

// A store keeps the rows of which the wait for data depends.
func TestNeeds_Data(t *testing.T) {
	t.Parallel()
	const keeps, waits = "its client keeps its data for a replacement", "an allocation that replaces it waits for data"
	w := keptData()
	w.Node("n1").Drain = nil
	w.Alloc("r1").ClientStatus = cluster.ClientFailed
	replacementOf(w, "r1", "r2", "n3")
	must.Eq(t, keeps, Needs(records{w}, w.Alloc("a1")))
	must.Eq(t, waits, Needs(records{w}, w.Alloc("r1")))
	w.Alloc("a1").DataOut.State = cluster.DataGivenUp
	must.Eq(t, waits, Needs(records{w}, w.Alloc("a1")))
	w.Alloc("r2").DataIn.State = cluster.DataCopied
	must.Eq(t, "", Needs(records{w}, w.Alloc("r1")))
	w.Alloc("a1").DataOut.State = cluster.DataKept
	w.Nodes = w.Nodes[1:]
	must.Eq(t, "", Needs(records{w}, w.Alloc("a1")), must.Sprint("its node is deleted"))
}

// A kept its data and was replaced by B, which ended before it had the data. Bug: a collection deleted B while C, which
// replaces B, had not reported or was not placed again. The servers then found no way from C to A, and the data was
// given up.
func TestNeeds_DataOfThePredecessor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*fixture.Cluster)
		want   string
	}{
		"the next one has not reported":  {func(*fixture.Cluster) {}, "an allocation that replaces it waits for data"},
		"the next one waits":             {func(w *fixture.Cluster) { w.Alloc("r2").DataIn = &cluster.DataMove{State: cluster.DataWaiting} }, "an allocation that replaces it waits for data"},
		"the next one has ended as well": {func(w *fixture.Cluster) { w.Alloc("r2").ClientStatus = cluster.ClientFailed }, "an allocation that replaces it waits for data"},
		"the next one runs":              {func(w *fixture.Cluster) { w.Alloc("r2").ClientStatus = cluster.ClientRunning }, ""},
		"the group moves no data":        {func(w *fixture.Cluster) { w.TaskGroup().EphemeralDisk.Migrate = false }, ""},
		"the data is given up": {func(w *fixture.Cluster) {
			w.Alloc("r2").ClientStatus = cluster.ClientFailed
			w.Alloc("a1").DataOut.State = cluster.DataGivenUp
		}, ""},
		"its node is deleted": {func(w *fixture.Cluster) {
			w.Alloc("r2").ClientStatus = cluster.ClientFailed
			w.Nodes = w.Nodes[1:]
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := keptData()
			w.Node("n1").Drain = nil
			w.Alloc("r1").ClientStatus = cluster.ClientFailed
			replacementOf(w, "r1", "r2", "n3").DataIn = nil
			c.change(w)
			must.Eq(t, c.want, Needs(records{w}, w.Alloc("r1")))
		})
	}
}
