package drainer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A reason, by a story that leads to it, with what an operator reads.
func TestExplain_Reasons(t *testing.T) {
	t.Parallel()
	minute := func(m int) time.Time { return epoch.Add(time.Duration(m) * time.Minute) }
	mark := func(a *cluster.Allocation) {
		a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: drainOf(a.NodeID), Class: cluster.MarkPaced, MarkedAt: minute(1)}
	}
	stop := func(a *cluster.Allocation) {
		mark(a)
		a.DesiredStatus, a.StoppedAt = cluster.DesiredStop, minute(2)
	}
	eval := func(status cluster.EvalStatus) *cluster.Evaluation {
		return &cluster.Evaluation{ID: "e1", Namespace: "default", JobID: "web", Status: status, StatusDescription: cluster.BlockedEvalDescription, CreateTime: minute(2)}
	}
	start := Since{At: epoch}
	for name, test := range map[string]struct {
		edit   func(*town)
		soft   softly
		policy Policy
		want   AllocReport
	}{
		"left by request": {
			edit: func(w *town) {
				w.jobs[0].Type = cluster.JobSystem
				w.node("n1").Drain.Strategy.IgnoreSystemJobs = true
				w.node("n1").Drain.UpdatedAt = minute(2)
			},
			want: AllocReport{Reason: ReasonLeftByRequest, Stage: cluster.StageSystem, Since: Since{At: minute(2)}, Detail: "system jobs are ignored by this drain"},
		},
		"planned by nobody yet": {
			want: AllocReport{Reason: ReasonWritePending, Since: Since{Seen: true}, Healthy: 2, Count: 2, MaxParallel: 1, Detail: "its mark is to be planned"},
		},
		"in flight": {
			soft: softly{pending: map[cluster.AllocID]PendingWrite{"a1": {Since: minute(4)}}},
			want: AllocReport{Reason: ReasonWritePending, Since: Since{At: minute(4), Seen: true}, Detail: "its mark is planned or in flight"},
		},
		"its writes fail": {
			soft: softly{pending: map[cluster.AllocID]PendingWrite{"a1": {Since: minute(4), Attempts: 3, LastError: errors.New("no leader")}}},
			want: AllocReport{Reason: ReasonWritePending, Since: Since{At: minute(4), Seen: true}, Attempts: 3, LastError: errors.New("no leader"),
				Detail: "its mark is planned; 3 writes in a row have failed, the last: no leader"},
		},
		"stopping": {
			edit: func(w *town) { stop(w.alloc("a1")); w.group().Tasks[0].KillTimeout = 10 * time.Minute },
			want: AllocReport{Reason: ReasonStopping, Since: Since{At: minute(2)}, Due: minute(12), Detail: "stopping, may take 10m0s"},
		},
		"stopping, overdue": {
			edit: func(w *town) { stop(w.alloc("a1")) },
			want: AllocReport{Reason: ReasonStopping, Since: Since{At: minute(2)}, Due: minute(2).Add(20 * time.Second),
				Detail: "stopping, overdue by 2m40s: its client has not reported"},
		},
		"stopping, nobody knows since when": {
			edit: func(w *town) {
				stop(w.alloc("a1"))
				w.alloc("a1").StoppedAt, w.alloc("a1").ModifyTime = time.Time{}, minute(3)
			},
			want: AllocReport{Reason: ReasonStopping, Since: Since{At: minute(3)}, Detail: "stopping, may take 20s"},
		},
		"marked, evaluation pending": {
			edit: func(w *town) { mark(w.alloc("a1")); w.evals = append(w.evals, eval(cluster.EvalPending)) },
			want: AllocReport{Reason: ReasonWaitingForScheduler, Since: Since{At: minute(1)}, Eval: eval(cluster.EvalPending), Detail: "marked, evaluation e1 is pending"},
		},
		"marked, no evaluation": {
			edit: func(w *town) { mark(w.alloc("a1")); w.evals = append(w.evals, eval(cluster.EvalFailed)) },
			want: AllocReport{Reason: ReasonWaitingForScheduler, Since: Since{At: minute(1)}, Detail: "marked, and no evaluation of its job is open: it is proposed again"},
		},
		"marked by hand": {
			edit: func(w *town) {
				w.alloc("a1").DesiredTransition.Migrate, w.alloc("a1").ModifyTime = true, minute(-5)
				w.evals = append(w.evals, eval(cluster.EvalBlocked))
			},
			want: AllocReport{Reason: ReasonWaitingForScheduler, Since: Since{At: minute(-5)}, Eval: eval(cluster.EvalBlocked), Detail: "marked, evaluation e1 is blocked"},
		},
		"disconnected": {
			edit: func(w *town) {
				w.node("n1").Status, w.node("n1").StatusChangedAt = cluster.NodeDisconnected, minute(3)
				w.alloc("a1").ClientStatus = cluster.ClientUnknown
			},
			want: AllocReport{Reason: ReasonDisconnected, Since: Since{At: minute(3)}, Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "its node is disconnected, the allocation unknown"},
		},
		// The node is back since minute 3; the allocation has been unknown for longer.
		"not heard of since its node is back": {
			edit: func(w *town) {
				w.node("n1").StatusChangedAt = minute(3)
				w.alloc("a1").ClientStatus, w.alloc("a1").ModifyTime = cluster.ClientUnknown, minute(1)
			},
			want: AllocReport{Reason: ReasonDisconnected, Since: Since{At: minute(1)}, Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "its node is ready, the allocation unknown"},
		},
		"batch running": {
			edit: func(w *town) { w.jobs[0].Type = cluster.JobBatch; w.alloc("a1").CreateTime = minute(1) },
			want: AllocReport{Reason: ReasonBatchRunning, Since: Since{At: minute(1)}, Detail: "batch work runs until it is done"},
		},
		"batch running to the deadline": {
			edit: func(w *town) { w.jobs[0].Type = cluster.JobSysBatch; w.drain("n1", time.Hour) },
			want: AllocReport{Reason: ReasonBatchRunning, Since: start, Due: minute(60), Detail: "sysbatch work runs until it is done, or until the deadline at 2030-01-01T01:00:00Z"},
		},
		"waiting for stage": {
			edit: func(w *town) {
				w.jobs[0].Type = cluster.JobSystem
				w.place("b1", w.job("batch", cluster.JobBatch), "n1")
				w.place("b2", w.jobs[1], "n1")
			},
			want: AllocReport{Reason: ReasonWaitingForStage, Stage: cluster.StageSystem, Since: start, Detail: "waits for 2 consumers"},
		},
		"waiting for two stages": {
			edit: func(w *town) {
				w.group().Tasks[0].StoragePlugin = true
				w.place("b1", w.job("batch", cluster.JobBatch), "n1")
				w.place("s1", w.job("logs", cluster.JobSystem), "n1")
			},
			want: AllocReport{Reason: ReasonWaitingForStage, Stage: cluster.StagePlugins, Since: start, Healthy: 2, Count: 2, MaxParallel: 1,
				Detail: "waits for 1 consumers, 1 system"},
		},
		"waiting for health": {
			edit: func(w *town) {
				w.alloc("a1").DeploymentStatus, w.alloc("a1").CreateTime = nil, minute(4)
			},
			want: AllocReport{Reason: ReasonWaitingForHealth, Since: Since{At: minute(4)}, Due: minute(5).Add(10 * time.Second), Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "no health verdict yet, due at 2030-01-01T00:05:10Z"},
		},
		"judged healthy, and does not run": {
			edit: func(w *town) {
				w.alloc("a1").ClientStatus, w.alloc("a1").CreateTime = cluster.ClientPending, minute(4)
			},
			want: AllocReport{Reason: ReasonWaitingForHealth, Since: Since{At: minute(4)}, Due: minute(5).Add(10 * time.Second), Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "judged healthy but pending, overdue at 2030-01-01T00:05:10Z"},
		},
		"no paced moves": {
			edit: func(w *town) { w.group().Migrate.MaxParallel = 0 },
			soft: softly{held: map[cluster.GroupKey]map[Reason]time.Time{web: {ReasonNoPacedMoves: minute(2)}}},
			want: AllocReport{Reason: ReasonNoPacedMoves, Since: Since{At: minute(2), Seen: true}, Healthy: 2, Count: 2, Detail: "max_parallel is 0: it stays"},
		},
		"no paced moves before the deadline": {
			edit: func(w *town) { w.group().Migrate.MaxParallel = 0; w.drain("n1", time.Hour) },
			want: AllocReport{Reason: ReasonNoPacedMoves, Since: Since{Seen: true}, Due: minute(60), Healthy: 2, Count: 2,
				Detail: "max_parallel is 0: it stays until the deadline at 2030-01-01T01:00:00Z"},
		},
		"waiting for replacement": {
			edit: func(w *town) {
				w.group().Count = 3
				w.evals = append(w.evals, eval(cluster.EvalBlocked))
			},
			want: AllocReport{Reason: ReasonWaitingForReplacement, Since: Since{At: minute(2)}, Eval: eval(cluster.EvalBlocked), Healthy: 2, Count: 3, MaxParallel: 1,
				Detail: "2 of 3 healthy, max_parallel 1; evaluation e1 is blocked: created to place remaining allocations"},
		},
		"waiting for replacement since before the drain": {
			edit: func(w *town) {
				w.group().Count = 3
				e := eval(cluster.EvalBlocked)
				e.CreateTime = minute(-5)
				w.evals = append(w.evals, e)
			},
			want: AllocReport{Reason: ReasonWaitingForReplacement, Since: start, Eval: &cluster.Evaluation{ID: "e1", Namespace: "default", JobID: "web",
				Status: cluster.EvalBlocked, StatusDescription: cluster.BlockedEvalDescription, CreateTime: minute(-5)}, Healthy: 2, Count: 3, MaxParallel: 1,
				Detail: "2 of 3 healthy, max_parallel 1; evaluation e1 is blocked: created to place remaining allocations"},
		},
		"blocked, but for another group": {
			edit: func(w *town) {
				w.group().Count = 3
				e := eval(cluster.EvalBlocked)
				e.Queued = map[string]int{"other": 1}
				w.evals = append(w.evals, e)
			},
			want: AllocReport{Reason: ReasonBelowBudget, Since: Since{Seen: true}, Healthy: 2, Count: 3, MaxParallel: 1,
				Detail: "2 of 3 healthy, max_parallel 1, need 3"},
		},
		"waiting for room": {
			edit: func(w *town) { stop(w.alloc("a2")) },
			soft: softly{held: map[cluster.GroupKey]map[Reason]time.Time{web: {ReasonWaitingForRoom: minute(2)}}},
			want: AllocReport{Reason: ReasonWaitingForRoom, Since: Since{At: minute(2), Seen: true}, Outstanding: []cluster.AllocID{"a2"}, Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "1 of 2 healthy, max_parallel 1; 1 of the group on their way"},
		},
		"waiting for a mark in flight": {
			edit: func(w *town) { w.drain("n2", 0) },
			soft: softly{pending: map[cluster.AllocID]PendingWrite{"a2": {}}},
			want: AllocReport{Reason: ReasonWaitingForRoom, Since: Since{Seen: true}, Outstanding: []cluster.AllocID{"a2"}, Healthy: 2, Count: 2, MaxParallel: 1,
				Detail: "2 of 2 healthy, max_parallel 1; 1 of the group on their way"},
		},
		"waiting for what a deadline takes elsewhere": {
			edit: func(w *town) { w.drain("n2", -1) },
			want: AllocReport{Reason: ReasonWaitingForRoom, Since: Since{Seen: true}, Outstanding: []cluster.AllocID{"a2"}, Healthy: 2, Count: 2, MaxParallel: 1,
				Detail: "2 of 2 healthy, max_parallel 1; 1 of the group on their way"},
		},
		"unhealthy, waiting for a slot": {
			edit: func(w *town) {
				w.alloc("a1").DeploymentStatus.Healthy = new(false)
				stop(w.alloc("a2"))
				w.alloc("a2").DesiredTransition.Class = cluster.MarkFree
			},
			want: AllocReport{Reason: ReasonWaitingForRoom, Since: Since{Seen: true}, Outstanding: []cluster.AllocID{"a2"}, Count: 2, MaxParallel: 1,
				Detail: "1 of 1 moves that take no room under way"},
		},
		// Canaries count for nothing but slots: the slot of a healthy one that has
		// left is held by the one that is to come in its place.
		"a canary, waiting for another's replacement": {
			edit: func(w *town) {
				w.alloc("a1").DeploymentStatus.Canary = true
				c := w.place("c1", w.jobs[0], "n1")
				stop(c)
				c.ClientStatus, c.DesiredTransition.Class, c.DeploymentStatus.Canary, c.NextAllocation = cluster.ClientComplete, cluster.MarkCanary, true, "c2"
				r := w.place("c2", w.jobs[0], "n2")
				r.PreviousAllocation, r.DeploymentStatus, r.CreateTime = "c1", &cluster.DeploymentStatus{Canary: true}, minute(4)
			},
			want: AllocReport{Reason: ReasonWaitingForRoom, Since: Since{Seen: true}, Outstanding: []cluster.AllocID{"c2"}, Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "1 of 1 moves that take no room under way"},
		},
		"a canary, waiting for another's replacement to be placed": {
			edit: func(w *town) {
				w.alloc("a1").DeploymentStatus.Canary = true
				c := w.place("c1", w.jobs[0], "n1")
				stop(c)
				c.ClientStatus, c.DesiredTransition.Class, c.DeploymentStatus.Canary = cluster.ClientComplete, cluster.MarkCanary, true
				w.evals = append(w.evals, eval(cluster.EvalPending))
			},
			want: AllocReport{Reason: ReasonWaitingForRoom, Since: Since{Seen: true}, Outstanding: []cluster.AllocID{"c1"}, Healthy: 1, Count: 2, MaxParallel: 1,
				Detail: "1 of 1 moves that take no room under way"},
		},
		"below budget": {
			edit: func(w *town) { w.group().Count = 4 },
			soft: softly{held: map[cluster.GroupKey]map[Reason]time.Time{web: {ReasonBelowBudget: minute(1)}}},
			want: AllocReport{Reason: ReasonBelowBudget, Since: Since{At: minute(1), Seen: true}, Healthy: 2, Count: 4, MaxParallel: 1,
				Detail: "2 of 4 healthy, max_parallel 1, need 4"},
		},
		"below budget, and to proceed": {
			edit:   func(w *town) { w.group().Count = 4 },
			policy: Policy{BelowBudget: Proceed},
			want:   AllocReport{Reason: ReasonWritePending, Since: Since{Seen: true}, Healthy: 2, Count: 4, MaxParallel: 1, Detail: "its mark is to be planned"},
		},
		"at the deadline": {
			edit: func(w *town) { w.drain("n1", time.Minute) },
			want: AllocReport{Reason: ReasonWritePending, Since: Since{Seen: true}, Healthy: 2, Count: 2, MaxParallel: 1, Detail: "its mark is to be planned"},
		},
		"the job is gone": {
			edit: func(w *town) { w.jobs = nil },
			want: AllocReport{Reason: ReasonWritePending, Since: Since{Seen: true}, Healthy: 2, Detail: "its mark is to be planned"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(2, 2)
			w.drain("n1", 0)
			if test.edit != nil {
				test.edit(w)
			}
			report, draining := Explain(w, test.soft, "n1", minute(5), test.policy)
			must.True(t, draining)
			got := report.Allocs[slices.IndexFunc(report.Allocs, func(r AllocReport) bool { return r.Alloc == "a1" })]
			must.Eq(t, fmt.Sprint(test.want.LastError), fmt.Sprint(got.LastError))
			test.want.Alloc, test.want.Group, test.want.LastError, got.LastError = "a1", web, nil, nil
			must.Eq(t, test.want, got)
		})
	}
}

func TestExplain_NotDraining(t *testing.T) {
	t.Parallel()
	w := newTown(1, 1)
	for _, id := range []cluster.NodeID{"n1", "nobody"} {
		report, draining := Explain(w, nil, id, epoch, Policy{})
		must.False(t, draining)
		must.Eq(t, Report{}, report)
	}
}

// The reason of a node is the one that is least likely to end by itself.
func TestExplain_WorstReason(t *testing.T) {
	t.Parallel()
	w := newTown(2, 2)
	w.drain("n1", 0)
	report := func() Status {
		r, _ := Explain(w, nil, "n1", epoch, Policy{})
		return r.Status
	}
	w.alloc("a1").DesiredStatus, w.alloc("a1").StoppedAt = cluster.DesiredStop, epoch
	must.Eq(t, ReasonStopping, report().Reason)
	w.place("s1", w.job("logs", cluster.JobSystem), "n1")
	must.Eq(t, ReasonWaitingForStage, report().Reason)
	w.place("b1", w.job("batch", cluster.JobBatch), "n1")
	must.Eq(t, ReasonBatchRunning, report().Reason)
	w.job("short", cluster.JobService).TaskGroups[0].Count = 2
	w.place("h1", w.jobs[3], "n1")
	must.Eq(t, ReasonBelowBudget, report().Reason)
	must.Eq(t, [ReasonCount]int{ReasonStopping: 1, ReasonWaitingForStage: 1, ReasonBatchRunning: 1, ReasonBelowBudget: 1}, report().Waiting)
	must.Eq(t, [cluster.StageCount]int{cluster.StageConsumers: 3, cluster.StageSystem: 1}, report().Left)
}

// Each reason has a rank of its own: no two are as bad as each other, and none
// was forgotten.
func TestReason_Severity(t *testing.T) {
	t.Parallel()
	seen := map[int]Reason{}
	for r := range ReasonCount {
		rank := r.severity()
		must.GreaterEq(t, 0, rank, must.Sprintf("%s has no rank", r))
		must.MapNotContainsKey(t, seen, rank)
		seen[rank] = r
		must.NotEq(t, "", r.String())
	}
	must.Eq(t, "unknown reason", ReasonCount.String())
}
