package rules

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// WithoutTexts removes the client's texts about volumes from an explanation, and nothing else.
func TestAllocExplanation_WithoutTexts(t *testing.T) {
	t.Parallel()
	holds := &cluster.VolumeHolds{More: 1, Volumes: []cluster.VolumeHold{{
		Namespace: "default", Volume: "data", Alloc: "c1", Path: "/mnt/data", Reason: "busy: process 7 (mysql -psecret)", Since: fixture.Epoch,
	}}}
	for reason, held := range map[Reason]bool{ReasonHeldForVolumes: true, ReasonStopping: false} {
		w := fixture.NewCluster(1, 1)
		w.StartDrain("n1", 0)
		a := w.Alloc("a1")
		a.VolumeHolds, a.DesiredStatus, a.StoppedAt = holds, cluster.DesiredStop, fixture.Epoch
		a.Job.TaskGroups[0].Tasks[0].StoragePlugin = held
		report, err := Explain(w, TermState{}, "n1", fixture.Epoch, Policy{})
		must.NoError(t, err)
		full := report.Allocs[0]
		must.Eq(t, reason, full.Reason)
		must.StrHasSuffix(t, "waits for volume default/data of allocation c1 at /mnt/data: busy: process 7 (mysql -psecret); 1 more volumes", full.Detail)
		public := full.WithoutTexts()
		must.StrHasSuffix(t, "waits for volume default/data of allocation c1 at /mnt/data; 1 more volumes", public.Detail)
		must.Eq(t, "", public.Held.Volumes[0].Reason)
		must.Eq(t, holds, full.Held, must.Sprint("the explanation itself stays"))
		public.Detail, public.Held = full.Detail, full.Held
		must.Eq(t, full, public, must.Sprint("all else is the same"))
	}
}

func TestExplain_Reasons(t *testing.T) {
	t.Parallel()
	minute := func(m int) time.Time { return fixture.Epoch.Add(time.Duration(m) * time.Minute) }
	mark := func(a *cluster.Allocation) {
		a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: fixture.DrainID(a.NodeID), Class: cluster.MarkPaced, MarkedAt: minute(1)}
	}
	stop := func(a *cluster.Allocation) {
		mark(a)
		a.DesiredStatus, a.StoppedAt = cluster.DesiredStop, minute(2)
	}
	eval := func(status cluster.EvalStatus) *cluster.Evaluation {
		return &cluster.Evaluation{ID: "e1", Namespace: "default", JobID: "web", Status: status, StatusDescription: cluster.BlockedEvalDescription, CreateTime: minute(2)}
	}
	heldSince := func(reason Reason, since time.Time) TermState {
		return TermState{HeldSince: func(key cluster.GroupKey, r Reason) time.Time {
			if key == fixture.Group && r == reason {
				return since
			}
			return time.Time{}
		}}
	}
	first := func(id cluster.AllocID, n cluster.NodeID, state CulpritState, since time.Time) *Culprit {
		return &Culprit{Alloc: id, Node: n, NodeName: "node-" + string(n[1:]), State: state, Since: since}
	}
	start := Since{At: fixture.Epoch}
	for name, test := range map[string]struct {
		edit   func(*fixture.Cluster)
		term   TermState
		policy Policy
		want   AllocExplanation
	}{
		"left by request": {
			edit: func(w *fixture.Cluster) {
				w.Jobs[0].Type = cluster.JobSystem
				w.Node("n1").Drain.Strategy.IgnoreSystemJobs = true
				w.Node("n1").Drain.UpdatedAt = minute(2)
			},
			want: AllocExplanation{Reason: ReasonLeftByRequest, Stage: cluster.StageSystem, Since: Since{At: minute(2)}, Detail: "system jobs are ignored by this drain"},
		},
		"not planned yet": {
			want: AllocExplanation{Reason: ReasonWritePending, Since: Since{Observed: true}, Healthy: 2, Count: 2, MaxParallel: 1, Detail: "its mark is about to be planned"},
		},
		"in flight": {
			term: TermState{Marks: map[cluster.AllocID]PendingMark{"a1": {Drain: "d-n1", Since: minute(4), InFlight: true}}},
			want: AllocExplanation{Reason: ReasonWritePending, Since: Since{At: minute(4), Observed: true}, Detail: "its mark is in flight"},
		},
		"its writes fail": {
			term: TermState{Marks: map[cluster.AllocID]PendingMark{"a1": {Drain: "d-n1", Since: minute(4)}}, Attempts: 3, LastError: errors.New("no leader")},
			want: AllocExplanation{Reason: ReasonWritePending, Since: Since{At: minute(4), Observed: true}, Attempts: 3, LastError: errors.New("no leader"), Healthy: 2, Count: 2, MaxParallel: 1,
				Detail: "its mark is planned; the last 3 writes have failed: no leader"},
		},
		"in flight for an earlier drain": {
			term: TermState{Marks: map[cluster.AllocID]PendingMark{"a1": {Drain: "d-old", Since: minute(4), InFlight: true}}},
			want: AllocExplanation{Reason: ReasonWritePending, Since: Since{Observed: true}, Detail: "its mark is in flight"},
		},
		"behind a barrier": {
			term: TermState{Barrier: true},
			want: AllocExplanation{Reason: ReasonWritePending, Since: Since{Observed: true}, Healthy: 2, Count: 2, MaxParallel: 1,
				Detail: "its mark is planned when a barrier is applied"},
		},
		"in flight for too long": {
			term: TermState{Marks: map[cluster.AllocID]PendingMark{"a1": {Drain: "d-n1", Since: minute(4), InFlight: true}}, Stalled: "no answer"},
			want: AllocExplanation{Reason: ReasonWritePending, Since: Since{At: minute(4), Observed: true}, Detail: "its mark is in flight; no answer"},
		},
		"stopping": {
			edit: func(w *fixture.Cluster) { stop(w.Alloc("a1")); w.TaskGroup().Tasks[0].KillTimeout = 10 * time.Minute },
			want: AllocExplanation{Reason: ReasonStopping, Since: Since{At: minute(2)}, Due: minute(12), Detail: "stopping, may take 10m0s"},
		},
		"stopping, overdue": {
			edit: func(w *fixture.Cluster) { stop(w.Alloc("a1")) },
			want: AllocExplanation{Reason: ReasonStopping, Since: Since{At: minute(2)}, Due: minute(2).Add(20 * time.Second),
				Detail: "stopping, overdue by 2m40s: its client has not reported"},
		},
		"stopping, below the budget of its group": {
			edit: func(w *fixture.Cluster) {
				stop(w.Alloc("a1"))
				w.Alloc("a1").DesiredTransition.Class = cluster.MarkProceed
			},
			want: AllocExplanation{Reason: ReasonStopping, Since: Since{At: minute(2)}, Due: minute(2).Add(20 * time.Second),
				Detail: "stopping, overdue by 2m40s: its client has not reported; its group is below its budget, and the policy below-budget=proceed moves also the last healthy allocation"},
		},
		"stopping, not dated": {
			edit: func(w *fixture.Cluster) {
				stop(w.Alloc("a1"))
				w.Alloc("a1").StoppedAt, w.Alloc("a1").ModifyTime = time.Time{}, minute(3)
			},
			want: AllocExplanation{Reason: ReasonStopping, Since: Since{At: minute(3)}, Detail: "stopping, may take 20s"},
		},
		"marked, evaluation pending": {
			edit: func(w *fixture.Cluster) { mark(w.Alloc("a1")); w.Evals = append(w.Evals, eval(cluster.EvalPending)) },
			want: AllocExplanation{Reason: ReasonWaitingForScheduler, Since: Since{At: minute(1)}, Eval: eval(cluster.EvalPending), Detail: "marked, evaluation e1 is pending"},
		},
		"marked, no evaluation": {
			edit: func(w *fixture.Cluster) { mark(w.Alloc("a1")); w.Evals = append(w.Evals, eval(cluster.EvalFailed)) },
			want: AllocExplanation{Reason: ReasonWaitingForScheduler, Since: Since{At: minute(1)}, Detail: "marked, but its job has no open evaluation: the leader creates one"},
		},
		"marked without a drain": {
			edit: func(w *fixture.Cluster) {
				w.Alloc("a1").DesiredTransition.Migrate, w.Alloc("a1").ModifyTime = true, minute(-5)
				w.Evals = append(w.Evals, eval(cluster.EvalBlocked))
			},
			want: AllocExplanation{Reason: ReasonWaitingForScheduler, Since: Since{At: minute(-5)}, Eval: eval(cluster.EvalBlocked),
				Detail: "its mark has no drain, so another program or an operator set it; marked, evaluation e1 is blocked"},
		},
		"disconnected": {
			edit: func(w *fixture.Cluster) {
				w.Node("n1").Status, w.Node("n1").StatusChangedAt = cluster.NodeDisconnected, minute(3)
				w.Alloc("a1").ClientStatus = cluster.ClientUnknown
			},
			want: AllocExplanation{Reason: ReasonDisconnected, Since: Since{At: minute(3)}, Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "its node is disconnected, the allocation unknown"},
		},
		// The node has been back since minute 3. The allocation has been unknown for longer.
		"not reported since its node is back": {
			edit: func(w *fixture.Cluster) {
				w.Node("n1").StatusChangedAt = minute(3)
				w.Alloc("a1").ClientStatus, w.Alloc("a1").ModifyTime = cluster.ClientUnknown, minute(1)
			},
			want: AllocExplanation{Reason: ReasonDisconnected, Since: Since{At: minute(1)}, Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "its node is ready, the allocation unknown"},
		},
		"batch running": {
			edit: func(w *fixture.Cluster) { w.Jobs[0].Type = cluster.JobBatch; w.Alloc("a1").CreateTime = minute(1) },
			want: AllocExplanation{Reason: ReasonBatchRunning, Since: Since{At: minute(1)}, Detail: "batch work runs until it is done"},
		},
		"batch running to the deadline": {
			edit: func(w *fixture.Cluster) { w.Jobs[0].Type = cluster.JobSysBatch; w.StartDrain("n1", time.Hour) },
			want: AllocExplanation{Reason: ReasonBatchRunning, Since: start, Due: minute(60), Detail: "sysbatch work runs until it is done, or until the deadline at 2030-01-01T01:00:00Z"},
		},
		"waiting for stage": {
			edit: func(w *fixture.Cluster) {
				w.Jobs[0].Type = cluster.JobSystem
				w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
				w.Place("b2", w.Jobs[1], "n1")
			},
			want: AllocExplanation{Reason: ReasonWaitingForStage, Stage: cluster.StageSystem, Since: start, Detail: "waits for 2 consumers",
				Culprit: &Culprit{Alloc: "b1", Node: "n1", NodeName: "node-1", State: CulpritStays, More: 1}},
		},
		"waiting for two stages": {
			edit: func(w *fixture.Cluster) {
				w.TaskGroup().Tasks[0].StoragePlugin = true
				w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
				w.Place("s1", w.AddJob("logs", cluster.JobSystem), "n1")
			},
			want: AllocExplanation{Reason: ReasonWaitingForStage, Stage: cluster.StagePlugins, Since: start, Healthy: 2, Count: 2, MaxParallel: 1,
				Detail: "waits for 1 consumer, 1 system", Culprit: &Culprit{Alloc: "b1", Node: "n1", NodeName: "node-1", State: CulpritStays, More: 1}},
		},
		"waiting for health": {
			edit: func(w *fixture.Cluster) {
				w.Alloc("a1").DeploymentStatus, w.Alloc("a1").CreateTime = nil, minute(4)
			},
			want: AllocExplanation{Reason: ReasonWaitingForHealth, Since: Since{At: minute(4)}, Due: minute(5).Add(10 * time.Second), Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "no health verdict yet, due at 2030-01-01T00:05:10Z"},
		},
		"judged healthy, and does not run": {
			edit: func(w *fixture.Cluster) {
				w.Alloc("a1").ClientStatus, w.Alloc("a1").CreateTime = cluster.ClientPending, minute(4)
			},
			want: AllocExplanation{Reason: ReasonWaitingForHealth, Since: Since{At: minute(4)}, Due: minute(5).Add(10 * time.Second), Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "judged healthy but pending, overdue at 2030-01-01T00:05:10Z"},
		},
		"no paced moves": {
			edit: func(w *fixture.Cluster) { w.TaskGroup().Migrate.MaxParallel = 0 },
			term: heldSince(ReasonNoPacedMoves, minute(2)),
			want: AllocExplanation{Reason: ReasonNoPacedMoves, Since: Since{At: minute(2), Observed: true}, Healthy: 2, Count: 2, Detail: "max_parallel is 0: it stays"},
		},
		"no paced moves before the deadline": {
			edit: func(w *fixture.Cluster) { w.TaskGroup().Migrate.MaxParallel = 0; w.StartDrain("n1", time.Hour) },
			want: AllocExplanation{Reason: ReasonNoPacedMoves, Since: Since{Observed: true}, Due: minute(60), Healthy: 2, Count: 2,
				Detail: "max_parallel is 0: it stays until the deadline at 2030-01-01T01:00:00Z"},
		},
		"waiting for replacement": {
			edit: func(w *fixture.Cluster) {
				w.TaskGroup().Count = 3
				w.Evals = append(w.Evals, eval(cluster.EvalBlocked))
			},
			want: AllocExplanation{Reason: ReasonWaitingForReplacement, Since: Since{At: minute(2)}, Eval: eval(cluster.EvalBlocked), Healthy: 2, Count: 3, MaxParallel: 1,
				Detail: "2 of 3 healthy, max_parallel 1; evaluation e1 is blocked: created to place remaining allocations"},
		},
		"waiting for replacement since before the drain": {
			edit: func(w *fixture.Cluster) {
				w.TaskGroup().Count = 3
				e := eval(cluster.EvalBlocked)
				e.CreateTime = minute(-5)
				w.Evals = append(w.Evals, e)
			},
			want: AllocExplanation{Reason: ReasonWaitingForReplacement, Since: start, Eval: &cluster.Evaluation{ID: "e1", Namespace: "default", JobID: "web",
				Status: cluster.EvalBlocked, StatusDescription: cluster.BlockedEvalDescription, CreateTime: minute(-5)}, Healthy: 2, Count: 3, MaxParallel: 1,
				Detail: "2 of 3 healthy, max_parallel 1; evaluation e1 is blocked: created to place remaining allocations"},
		},
		"blocked, but for another group": {
			edit: func(w *fixture.Cluster) {
				w.TaskGroup().Count = 3
				e := eval(cluster.EvalBlocked)
				e.Queued = map[string]int{"other": 1}
				w.Evals = append(w.Evals, e)
			},
			want: AllocExplanation{Reason: ReasonBelowBudget, Since: Since{Observed: true}, Healthy: 2, Count: 3, MaxParallel: 1, Missing: 1,
				Detail: "2 of 3 healthy, max_parallel 1, need 3"},
		},
		"waiting for room": {
			edit: func(w *fixture.Cluster) { stop(w.Alloc("a2")) },
			term: heldSince(ReasonWaitingForRoom, minute(2)),
			want: AllocExplanation{Reason: ReasonWaitingForRoom, Since: Since{At: minute(2), Observed: true}, Outstanding: []cluster.AllocID{"a2"}, Healthy: 1, Count: 2, MaxParallel: 1,
				Culprit: first("a2", "n2", CulpritStopping, minute(2)), Detail: "1 of 2 healthy, max_parallel 1; 1 of the group leaves or arrives"},
		},
		"waiting for a mark in flight": {
			edit: func(w *fixture.Cluster) { w.StartDrain("n2", 0) },
			term: TermState{Marks: map[cluster.AllocID]PendingMark{"a2": {Drain: "d-n2", InFlight: true}}},
			want: AllocExplanation{Reason: ReasonWaitingForRoom, Since: Since{Observed: true}, Outstanding: []cluster.AllocID{"a2"}, Healthy: 2, Count: 2, MaxParallel: 1,
				Culprit: first("a2", "n2", CulpritUnwritten, time.Time{}), Detail: "2 of 2 healthy, max_parallel 1; 1 of the group leaves or arrives, marks not written: 1"},
		},
		"waiting for a deadline mark on another node": {
			edit: func(w *fixture.Cluster) { w.StartDrain("n2", -1) },
			want: AllocExplanation{Reason: ReasonWaitingForRoom, Since: Since{Observed: true}, Outstanding: []cluster.AllocID{"a2"}, Healthy: 2, Count: 2, MaxParallel: 1,
				Culprit: first("a2", "n2", CulpritUnwritten, time.Time{}), Detail: "2 of 2 healthy, max_parallel 1; 1 of the group leaves or arrives, marks not written: 1"},
		},
		"unhealthy, was healthy after the drain began": {
			edit: func(w *fixture.Cluster) {
				w.Alloc("a1").DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false), UnhealthySince: minute(5).Add(-time.Second)}
			},
			want: AllocExplanation{Reason: ReasonBelowBudget, Since: Since{At: minute(5).Add(-time.Second)}, Due: minute(6).Add(-time.Second), Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "1 of 2 healthy, max_parallel 1; it was healthy, and moves if it is still unhealthy at 2030-01-01T00:05:59Z"},
		},
		"unhealthy, waiting for a slot": {
			edit: func(w *fixture.Cluster) {
				w.Alloc("a1").DeploymentStatus.Healthy = new(false)
				stop(w.Alloc("a2"))
				w.Alloc("a2").DesiredTransition.Class = cluster.MarkFree
			},
			want: AllocExplanation{Reason: ReasonWaitingForRoom, Since: Since{Observed: true}, Outstanding: []cluster.AllocID{"a2"}, Count: 2, MaxParallel: 1,
				Culprit: first("a2", "n2", CulpritStopping, minute(2)), Detail: "1 move outside the budget under way, the limit is 1"},
		},
		"unhealthy, waiting for a slot of a mark that is not written": {
			edit: func(w *fixture.Cluster) {
				w.StartDrain("n2", time.Hour)
				*w.Alloc("a1").DeploymentStatus.Healthy, *w.Alloc("a2").DeploymentStatus.Healthy = false, false
			},
			term: TermState{Attempts: 1, LastError: errors.New("no leader"), Stalled: "no answer"},
			want: AllocExplanation{Reason: ReasonWaitingForRoom, Since: Since{Observed: true}, Outstanding: []cluster.AllocID{"a2"}, Count: 2, MaxParallel: 1,
				Attempts: 1, LastError: errors.New("no leader"),
				Culprit: first("a2", "n2", CulpritUnwritten, time.Time{}), Detail: "1 move outside the budget under way, the limit is 1, marks not written: 1; the last write has failed: no leader; no answer"},
		},
		// The replacement of a healthy canary that has left holds the canary's slot.
		"a canary, waiting for another's replacement": {
			edit: func(w *fixture.Cluster) {
				w.Alloc("a1").DeploymentStatus.Canary = true
				c := w.Place("c1", w.Jobs[0], "n1")
				stop(c)
				c.ClientStatus, c.DesiredTransition.Class, c.DeploymentStatus.Canary, c.NextAllocation = cluster.ClientComplete, cluster.MarkCanary, true, "c2"
				r := w.Place("c2", w.Jobs[0], "n2")
				r.PreviousAllocation, r.DeploymentStatus, r.CreateTime = "c1", &cluster.DeploymentStatus{Canary: true}, minute(4)
			},
			want: AllocExplanation{Reason: ReasonWaitingForRoom, Since: Since{Observed: true}, Outstanding: []cluster.AllocID{"c2"}, Healthy: 1, Count: 2, MaxParallel: 1,
				Culprit: first("c2", "n2", CulpritUnjudged, minute(4)), Detail: "1 move outside the budget under way, the limit is 1"},
		},
		"a canary, waiting for another's replacement to be placed": {
			edit: func(w *fixture.Cluster) {
				w.Alloc("a1").DeploymentStatus.Canary = true
				c := w.Place("c1", w.Jobs[0], "n1")
				stop(c)
				c.ClientStatus, c.DesiredTransition.Class, c.DeploymentStatus.Canary = cluster.ClientComplete, cluster.MarkCanary, true
				w.Evals = append(w.Evals, eval(cluster.EvalPending))
			},
			want: AllocExplanation{Reason: ReasonWaitingForRoom, Since: Since{Observed: true}, Outstanding: []cluster.AllocID{"c1"}, Healthy: 1, Count: 2, MaxParallel: 1,
				Culprit: first("c1", "n1", CulpritNotReplaced, minute(-60)), Detail: "1 move outside the budget under way, the limit is 1"},
		},
		"below budget": {
			edit: func(w *fixture.Cluster) { w.TaskGroup().Count = 4 },
			term: heldSince(ReasonBelowBudget, minute(1)),
			want: AllocExplanation{Reason: ReasonBelowBudget, Since: Since{At: minute(1), Observed: true}, Healthy: 2, Count: 4, MaxParallel: 1, Missing: 2,
				Detail: "2 of 4 healthy, max_parallel 1, need 4"},
		},
		"below budget, and to proceed": {
			edit:   func(w *fixture.Cluster) { w.TaskGroup().Count = 4 },
			policy: Policy{BelowBudget: BelowBudgetProceed},
			want:   AllocExplanation{Reason: ReasonWritePending, Since: Since{Observed: true}, Healthy: 2, Count: 4, MaxParallel: 1, Detail: "its mark is about to be planned"},
		},
		"at the deadline": {
			edit: func(w *fixture.Cluster) { w.StartDrain("n1", time.Minute) },
			want: AllocExplanation{Reason: ReasonWritePending, Since: Since{Observed: true}, Healthy: 2, Count: 2, MaxParallel: 1, Detail: "its mark is about to be planned"},
		},
		"the job is gone": {
			edit: func(w *fixture.Cluster) { w.Jobs = nil },
			want: AllocExplanation{Reason: ReasonWritePending, Since: Since{Observed: true}, Healthy: 2, Detail: "its mark is about to be planned"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(2, 2)
			w.StartDrain("n1", 0)
			if test.edit != nil {
				test.edit(w)
			}
			report, err := Explain(w, test.term, "n1", minute(5), test.policy)
			must.NoError(t, err)
			got := report.Allocs[slices.IndexFunc(report.Allocs, func(r AllocExplanation) bool { return r.Alloc == "a1" })]
			must.Eq(t, fmt.Sprint(test.want.LastError), fmt.Sprint(got.LastError))
			test.want.Alloc, test.want.Group, test.want.LastError, got.LastError = "a1", fixture.Group, nil, nil
			must.Eq(t, test.want, got)
		})
	}
}

func TestExplain_NotDraining(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 1)
	for _, id := range []cluster.NodeID{"n1", "unknown"} {
		report, err := Explain(w, TermState{}, id, fixture.Epoch, Policy{})
		must.ErrorIs(t, err, ErrNotDraining)
		must.Eq(t, Report{}, report)
	}
}

// The reason of a node is the one that is least likely to end by itself.
func TestExplain_WorstReason(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 2)
	w.StartDrain("n1", 0)
	report := func() Status {
		r, _ := Explain(w, TermState{}, "n1", fixture.Epoch, Policy{})
		return r.Status
	}
	w.Alloc("a1").DesiredStatus, w.Alloc("a1").StoppedAt = cluster.DesiredStop, fixture.Epoch
	must.Eq(t, ReasonStopping, report().Reason)
	w.Place("s1", w.AddJob("logs", cluster.JobSystem), "n1")
	must.Eq(t, ReasonWaitingForStage, report().Reason)
	w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
	must.Eq(t, ReasonBatchRunning, report().Reason)
	w.AddJob("short", cluster.JobService).TaskGroups[0].Count = 2
	w.Place("h1", w.Jobs[3], "n1")
	must.Eq(t, ReasonBelowBudget, report().Reason)
	must.Eq(t, "h1", report().Worst.Alloc)
	must.Eq(t, "the group lacks 1 allocation", report().Worst.Cause())
	must.Eq(t, [ReasonCount]int{ReasonStopping: 1, ReasonWaitingForStage: 1, ReasonBatchRunning: 1, ReasonBelowBudget: 1}, report().Waiting)
	must.Eq(t, [cluster.StageCount]int{cluster.StageConsumers: 3, cluster.StageSystem: 1}, report().Left)
}

// Each reason has its own rank.
func TestReason_Severity(t *testing.T) {
	t.Parallel()
	ranked := map[int]Reason{}
	for r := range ReasonCount {
		rank := r.severity()
		must.GreaterEq(t, 0, rank, must.Sprintf("%s has no rank", r))
		must.MapNotContainsKey(t, ranked, rank)
		ranked[rank] = r
		must.NotEq(t, "", r.String())
	}
	must.Eq(t, "unknown reason", ReasonCount.String())
}
