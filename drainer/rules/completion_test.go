package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

func TestRecheckCompletions_AgreesWithTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		entry := &Completions{At: now, Policy: anyPolicy(t)}
		for i := range 5 {
			c := Completion{Node: cluster.NodeID("n" + string(rune('0'+i))), Revision: 1}
			c.Drain = fixture.DrainID(c.Node)
			if n := w.Node(c.Node); n != nil && n.Drain != nil {
				c.Revision = n.Drain.Revision
			}
			switch rapid.IntRange(0, 9).Draw(t, "what is wrong") {
			case 0:
				c.Drain = "another"
			case 1:
				c.Revision++
			case 2:
				entry.Completions = append(entry.Completions, c)
			}
			entry.Completions = append(entry.Completions, c)
		}
		state := &twin{rows: rows{w}, now: now, policy: entry.Policy}
		var want []Ending
		refusals := 0
		done := map[cluster.NodeID]bool{}
		for _, c := range entry.Completions {
			n := w.Node(c.Node)
			if n == nil || n.Drain == nil || n.Drain.ID != c.Drain || n.Drain.Revision != c.Revision || done[c.Node] || !state.ended(n) {
				refusals++
				continue
			}
			done[c.Node] = true
			e := Ending{Completion: c, Outcome: "complete"}
			if n.Drain.Marked[cluster.MarkDeadline] > 0 {
				e.Outcome = "deadline reached"
			}
			if n.Drain.Marked[cluster.MarkForced] > 0 {
				e.Outcome = "forced"
			}
			for turn := range 3 {
				e.StillStopping += len(state.leftOn(n, turn))
			}
			// If something is left, the deadline or force has ended the drain.
			if e.Outcome == "complete" && e.StillStopping > 0 && entry.Policy.Completion != CompletionMarked {
				e.Outcome = "deadline reached"
				if n.Drain.Strategy.Deadline < 0 {
					e.Outcome = "forced"
				}
			}
			e.Unconfirmed, e.DataNotCopied = state.unconfirmedOn(n), state.notCopiedOn(n)
			if e.Outcome == "complete" && e.Unconfirmed != nil && entry.Policy.Completion != CompletionMarked {
				e.Outcome = "unconfirmed"
			}
			want = append(want, e)
		}
		ended, refused := RecheckCompletions(w, entry)
		must.Eq(t, want, ended)
		must.Len(t, refusals, refused)
		for _, r := range refused {
			must.NotEq(t, "", r.Why)
			must.Eq(t, "", r.Alloc)
		}
	})
}

// unconfirmedOn returns what the record of a node's drain counts as unconfirmed.
func (w *twin) unconfirmedOn(n *cluster.Node) *cluster.UnconfirmedAllocs {
	var ids []cluster.AllocID
	for _, a := range w.rows.Allocs {
		lost := a.ClientStatus == "lost" && a.ConfirmedAt.IsZero()
		stays := n.Drain.Strategy.IgnoreSystemJobs && (a.Stage() == cluster.StageSystem || a.Stage() == cluster.StagePlugins && !lost && !a.MarkedBy(n.Drain.ID))
		if a.NodeID == n.ID && (lost || !hasEnded(a)) && !stays {
			ids = append(ids, a.ID)
		}
	}
	slices.Sort(ids)
	u := &cluster.UnconfirmedAllocs{Count: len(ids) + n.Drain.PurgedRunning, Allocs: ids[:min(len(ids), 20)]}
	if n.Unlisted != nil {
		var names []cluster.AllocID
		unnamed := n.Unlisted.Count - len(n.Unlisted.Allocs)
		for _, id := range n.Unlisted.Allocs {
			known := slices.ContainsFunc(w.rows.Allocs, func(a *cluster.Allocation) bool {
				return a.ID == id && a.NodeID == n.ID && (a.ClientStatus != "lost" || a.ConfirmedAt.IsZero())
			})
			if !known {
				names = append(names, id)
			}
		}
		if count := len(names) + unnamed; count > 0 {
			u.Unlisted = &cluster.UnlistedAllocs{Count: count, Allocs: names}
			u.Count += count
		}
	}
	if u.Count == 0 {
		return nil
	}
	return u
}

// A drain that ends before the deadline leaves no allocation that had to leave.
func TestRecheckCompletions_StoppedMeansNothingIsLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		policy := anyPolicy(t)
		policy.Completion = fixture.OneOf(t, "contract", CompletionStopped, CompletionReplaced, CompletionMigrated)
		entry := &Completions{At: now, Policy: policy}
		for n := range w.DrainingNodes() {
			entry.Completions = append(entry.Completions, Completion{Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision})
		}
		ended, _ := RecheckCompletions(w, entry)
		state := &twin{rows: rows{w}, now: now}
		for _, e := range ended {
			n := w.Node(e.Node)
			if state.deadlineMet(n) {
				continue
			}
			must.Zero(t, e.StillStopping)
			for _, a := range w.Allocs {
				must.True(t, a.NodeID != n.ID || hasEnded(a) || !state.mustLeave(a), must.Sprintf("%s is left on %s", a.ID, n.ID))
			}
		}
	})
}

func TestRecheckCompletions_ReturnsTheReason(t *testing.T) {
	t.Parallel()
	done := Completion{Node: "n1", Drain: "d-n1", Revision: 7}
	for name, test := range map[string]struct {
		edit func(*fixture.Cluster)
		c    Completion
		want string
	}{
		"it is done":     {nil, done, ""},
		"node deleted":   {func(w *fixture.Cluster) { w.Nodes = w.Nodes[1:] }, done, "the node is gone"},
		"cancelled":      {func(w *fixture.Cluster) { w.Node("n1").Drain = nil }, done, "the node does not drain"},
		"drained again":  {func(w *fixture.Cluster) { w.Node("n1").Drain.ID = "d2" }, done, "the drain is over and another has begun"},
		"changed":        {func(w *fixture.Cluster) { w.Node("n1").Drain.Revision = 8 }, done, "the drain was changed since"},
		"a late arrival": {func(w *fixture.Cluster) { w.Alloc("a1").NodeID = "n1" }, done, "the drain is not done"},
		"no node":        {nil, Completion{}, "the node is gone"},
		"older revision": {nil, Completion{Node: "n1", Drain: "d-n1", Revision: 6}, "the drain was changed since"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(2, 1)
			w.Alloc("a1").NodeID = "n2"
			w.StartDrain("n1", 0)
			if test.edit != nil {
				test.edit(w)
			}
			ended, refused := RecheckCompletions(w, &Completions{At: fixture.Epoch, Completions: []Completion{test.c}})
			if test.want == "" {
				must.Eq(t, []Ending{{Completion: done, Outcome: cluster.OutcomeComplete}}, ended)
				return
			}
			must.SliceEmpty(t, ended)
			must.Eq(t, []Refusal{{Node: test.c.Node, Why: test.want}}, refused)
		})
	}
}

// A drain that is in an entry twice ends once.
func TestRecheckCompletions_Twice(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 0)
	w.StartDrain("n1", 0)
	c := Completion{Node: "n1", Drain: "d-n1", Revision: 7}
	ended, refused := RecheckCompletions(w, &Completions{At: fixture.Epoch, Completions: []Completion{c, c}})
	must.Len(t, 1, ended)
	must.Eq(t, []Refusal{{Node: "n1", Why: "the node is in the entry twice"}}, refused)
}

// Each completion policy, on one allocation that the drain marked and that has stopped.
func TestJudgeEnd_Policies(t *testing.T) {
	t.Parallel()
	evaluation := func(status cluster.EvalStatus, id cluster.EvalID, index uint64) *cluster.Evaluation {
		return &cluster.Evaluation{ID: id, Namespace: "default", JobID: "web", Status: status, CreateIndex: index}
	}
	replace := func(w *fixture.Cluster, status cluster.ClientStatus) {
		w.Alloc("a1").NextAllocation = "r1"
		r := w.Place("r1", w.Jobs[0], "n2")
		r.PreviousAllocation, r.ClientStatus = "a1", status
	}
	for name, test := range map[string]struct {
		edit func(*fixture.Cluster)
		want map[CompletionPolicy]bool
	}{
		"stopped, evaluation pending": {
			func(w *fixture.Cluster) { w.Evals = append(w.Evals, evaluation(cluster.EvalPending, "e1", 1)) },
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: false, CompletionMigrated: false, CompletionMarked: true},
		},
		"stopped, evaluation blocked": {
			func(w *fixture.Cluster) { w.Evals = append(w.Evals, evaluation(cluster.EvalBlocked, "e1", 1)) },
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: true, CompletionMigrated: false, CompletionMarked: true},
		},
		// The blocked evaluation is older than the mark. The scheduler has not yet tried to replace
		// this allocation.
		"stopped, an older evaluation blocked": {
			func(w *fixture.Cluster) {
				w.Evals = append(w.Evals, evaluation(cluster.EvalBlocked, "e1", 1), evaluation(cluster.EvalPending, "e2", 2))
			},
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: false, CompletionMigrated: false, CompletionMarked: true},
		},
		"stopped, no evaluation": {
			func(w *fixture.Cluster) {}, map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: true, CompletionMigrated: true, CompletionMarked: true},
		},
		"replacement waits for its data": {
			func(w *fixture.Cluster) { replace(w, cluster.ClientPending) },
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: true, CompletionMigrated: false, CompletionMarked: true},
		},
		"replacement runs": {
			func(w *fixture.Cluster) { replace(w, cluster.ClientRunning) },
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: true, CompletionMigrated: true, CompletionMarked: true},
		},
		"no data to move": {
			func(w *fixture.Cluster) {
				w.TaskGroup().EphemeralDisk.Migrate = false
				replace(w, cluster.ClientPending)
			},
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: true, CompletionMigrated: true, CompletionMarked: true},
		},
		"the data is lost": {
			func(w *fixture.Cluster) {
				replace(w, cluster.ClientPending)
				w.Alloc("a1").ClientStatus = cluster.ClientLost
			},
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: true, CompletionMigrated: true, CompletionMarked: true},
		},
		"the job is stopped": {
			func(w *fixture.Cluster) {
				w.Jobs[0].Stop = true
				w.Evals = append(w.Evals, evaluation(cluster.EvalPending, "e1", 1))
			},
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: true, CompletionMigrated: false, CompletionMarked: true},
		},
		"not to be placed again": {
			func(w *fixture.Cluster) {
				w.Alloc("a1").DesiredTransition.MigrateDisablePlacement = true
				w.Evals = append(w.Evals, evaluation(cluster.EvalPending, "e1", 1))
			},
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: true, CompletionMigrated: false, CompletionMarked: true},
		},
		"the replacement's record is gone": {
			func(w *fixture.Cluster) { w.Alloc("a1").NextAllocation = "r1" },
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: true, CompletionMigrated: true, CompletionMarked: true},
		},
		"still stopping": {
			func(w *fixture.Cluster) { w.Alloc("a1").ClientStatus = cluster.ClientRunning },
			map[CompletionPolicy]bool{CompletionStopped: false, CompletionReplaced: false, CompletionMigrated: false, CompletionMarked: true},
		},
		"not marked": {
			func(w *fixture.Cluster) {
				w.Alloc("a1").ClientStatus, w.Alloc("a1").DesiredStatus = cluster.ClientRunning, cluster.DesiredRun
				w.Alloc("a1").DesiredTransition = cluster.DesiredTransition{}
			},
			map[CompletionPolicy]bool{CompletionStopped: false, CompletionReplaced: false, CompletionMigrated: false, CompletionMarked: false},
		},
		"the deadline has passed": {
			func(w *fixture.Cluster) {
				w.StartDrain("n1", -1)
				w.Evals = append(w.Evals, evaluation(cluster.EvalPending, "e1", 1))
			},
			map[CompletionPolicy]bool{CompletionStopped: true, CompletionReplaced: true, CompletionMigrated: true, CompletionMarked: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(2, 1)
			w.TaskGroup().EphemeralDisk.Migrate = true
			w.StartDrain("n1", 0)
			a := w.Alloc("a1")
			a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d-n1", Class: cluster.MarkPaced, MarkedAt: fixture.Epoch}
			a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientComplete
			test.edit(w)
			for policy, want := range test.want {
				end := NewPlanner(w, fixture.Epoch, Policy{Completion: policy}).judgeEnd(w.Node("n1"))
				must.Eq(t, want, end.done, must.Sprintf("policy %s", policy))
			}
		})
	}
}

// The plan of a drain that waits for replacements names their jobs. Otherwise the drainer would not
// plan the drain when they are placed.
func TestJudgeEnd_NamesAwaitedJobs(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 2)
	w.StartDrain("n1", 0)
	for _, a := range w.Allocs {
		a.NodeID, a.ClientStatus, a.DesiredStatus = "n1", cluster.ClientComplete, cluster.DesiredStop
		a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d-n1", Class: cluster.MarkPaced}
	}
	w.Evals = append(w.Evals, &cluster.Evaluation{ID: "e", Namespace: "default", JobID: "web", Status: cluster.EvalPending})
	end := NewPlanner(w, fixture.Epoch, Policy{Completion: CompletionReplaced}).judgeEnd(w.Node("n1"))
	must.Eq(t, []cluster.JobKey{fixture.Group.Job}, end.waitsFor)
	must.False(t, end.done)
}

// A drain waits for a stop time that overflows with the margin.
func TestWaitEnd_EndlessStopTime(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 1)
	w.TaskGroup().Tasks[0].KillTimeout = 1<<63 - 1
	w.StartDrain("n1", -1)
	a := w.Alloc("a1")
	a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d-n1", Class: cluster.MarkForced, MarkedAt: fixture.Epoch}
	end := NewPlanner(w, fixture.Epoch.Add(time.Hour), Policy{}).judgeEnd(w.Node("n1"))
	must.False(t, end.done)
	must.True(t, end.waitEnds.After(fixture.Epoch.AddDate(200, 0, 0)))
	report, _ := Explain(w, TermState{WriteTime: func() time.Duration { return time.Second }}, "n1", fixture.Epoch, Policy{})
	must.True(t, report.EndsBy.After(fixture.Epoch.AddDate(200, 0, 0)))
}

// Under PluginsAfterStop storage plugins wait for stopping allocations that have to leave, but not
// for those that the drain leaves.
func TestTurn_PluginsDoNotWaitForAllocationsLeftByRequest(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 0)
	w.Place("p1", w.AddJob("disk", cluster.JobSystem), "n1").Job.TaskGroups[0].Tasks[0].StoragePlugin = true
	s1 := w.Place("s1", w.AddJob("logs", cluster.JobSystem), "n1")
	s1.DesiredStatus, s1.StoppedAt = cluster.DesiredStop, fixture.Epoch
	d := w.StartDrain("n1", -1)
	turn := func(ignore bool) bool {
		d.Strategy.IgnoreSystemJobs = ignore
		return NewPlanner(w, fixture.Epoch.Add(time.Hour), Policy{PluginsAfterDeadline: PluginsAfterStop}).turnHasCome(w.Node("n1"), cluster.StagePlugins)
	}
	must.False(t, turn(false))
	must.True(t, turn(true))
}
