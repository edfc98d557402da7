package drainer

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func TestRecheckCompletions_AgreesWithTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		entry := &Completions{At: now, Policy: anyPolicy(t)}
		for i := range 5 {
			c := Completion{Node: cluster.NodeID("n" + string(rune('0'+i))), Revision: 1}
			c.Drain = drainOf(c.Node)
			if n := w.Node(c.Node); n != nil && n.Drain != nil {
				c.Revision = n.Drain.Revision
			}
			switch rapid.IntRange(0, 9).Draw(t, "what is wrong") {
			case 0:
				c.Drain = "of another day"
			case 1:
				c.Revision++
			case 2:
				entry.Completions = append(entry.Completions, c)
			}
			entry.Completions = append(entry.Completions, c)
		}
		state := &twin{world: w, now: now, policy: entry.Policy}
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
			// Complete is what keeps its promise: with something left, the deadline
			// or force has ended it.
			if e.Outcome == "complete" && e.StillStopping > 0 && entry.Policy.Completion != Asked {
				e.Outcome = "deadline reached"
				if n.Drain.Strategy.Deadline < 0 {
					e.Outcome = "forced"
				}
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

// Before the deadline a completion promises that nothing is left; counted here
// without any rule but that.
func TestRecheckCompletions_StoppedMeansNothingIsLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		policy := anyPolicy(t)
		policy.Completion = oneOf(t, "contract", Stopped, Replaced, Migrated)
		entry := &Completions{At: now, Policy: policy}
		for n := range w.DrainingNodes() {
			entry.Completions = append(entry.Completions, Completion{Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision})
		}
		ended, _ := RecheckCompletions(w, entry)
		state := &twin{world: w, now: now}
		for _, e := range ended {
			n := w.Node(e.Node)
			if state.deadlineMet(n) {
				continue
			}
			must.Zero(t, e.StillStopping)
			for _, a := range w.allocs {
				must.True(t, a.NodeID != n.ID || hasEnded(a) || !state.mustLeave(a), must.Sprintf("%s is left on %s", a.ID, n.ID))
			}
		}
	})
}

func TestRecheckCompletions_SaysWhy(t *testing.T) {
	t.Parallel()
	done := Completion{Node: "n1", Drain: "d-n1", Revision: 7}
	for name, test := range map[string]struct {
		edit func(*town)
		c    Completion
		want string
	}{
		"it is done":      {nil, done, ""},
		"node deleted":    {func(w *town) { w.nodes = w.nodes[1:] }, done, "the node is gone"},
		"cancelled":       {func(w *town) { w.node("n1").Drain = nil }, done, "the node does not drain"},
		"drained again":   {func(w *town) { w.node("n1").Drain.ID = "d2" }, done, "the drain is over and another has begun"},
		"changed":         {func(w *town) { w.node("n1").Drain.Revision = 8 }, done, "the drain was changed since"},
		"a late arrival":  {func(w *town) { w.alloc("a1").NodeID = "n1" }, done, "the drain is not done"},
		"nobody's node":   {nil, Completion{}, "the node is gone"},
		"revision of old": {nil, Completion{Node: "n1", Drain: "d-n1", Revision: 6}, "the drain was changed since"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(2, 1)
			w.alloc("a1").NodeID = "n2"
			w.drain("n1", 0)
			if test.edit != nil {
				test.edit(w)
			}
			ended, refused := RecheckCompletions(w, &Completions{At: epoch, Completions: []Completion{test.c}})
			if test.want == "" {
				must.Eq(t, []Ending{{Completion: done, Outcome: cluster.OutcomeComplete}}, ended)
				return
			}
			must.SliceEmpty(t, ended)
			must.Eq(t, []Refusal{{Node: test.c.Node, Why: test.want}}, refused)
		})
	}
}

// A drain that appears twice in an entry ends once.
func TestRecheckCompletions_Twice(t *testing.T) {
	t.Parallel()
	w := newTown(1, 0)
	w.drain("n1", 0)
	c := Completion{Node: "n1", Drain: "d-n1", Revision: 7}
	ended, refused := RecheckCompletions(w, &Completions{At: epoch, Completions: []Completion{c, c}})
	must.Len(t, 1, ended)
	must.Eq(t, []Refusal{{Node: "n1", Why: "the node is in the entry twice"}}, refused)
}

// The contracts, on one allocation that the drain marked and that has stopped.
func TestJudgeEnd_Contracts(t *testing.T) {
	t.Parallel()
	evaluation := func(status cluster.EvalStatus, id cluster.EvalID, index uint64) *cluster.Evaluation {
		return &cluster.Evaluation{ID: id, Namespace: "default", JobID: "web", Status: status, CreateIndex: index}
	}
	replace := func(w *town, status cluster.ClientStatus) {
		w.alloc("a1").NextAllocation = "r1"
		r := w.place("r1", w.jobs[0], "n2")
		r.PreviousAllocation, r.ClientStatus = "a1", status
	}
	for name, test := range map[string]struct {
		edit func(*town)
		want map[Contract]bool
	}{
		"stopped, evaluation pending": {
			func(w *town) { w.evals = append(w.evals, evaluation(cluster.EvalPending, "e1", 1)) },
			map[Contract]bool{Stopped: true, Replaced: false, Migrated: false, Asked: true},
		},
		"stopped, evaluation blocked": {
			func(w *town) { w.evals = append(w.evals, evaluation(cluster.EvalBlocked, "e1", 1)) },
			map[Contract]bool{Stopped: true, Replaced: true, Migrated: false, Asked: true},
		},
		// The blocked one is of another day: the scheduler has not spoken of this
		// allocation yet.
		"stopped, an older evaluation blocked": {
			func(w *town) {
				w.evals = append(w.evals, evaluation(cluster.EvalBlocked, "e1", 1), evaluation(cluster.EvalPending, "e2", 2))
			},
			map[Contract]bool{Stopped: true, Replaced: false, Migrated: false, Asked: true},
		},
		"stopped, no evaluation": {
			func(w *town) {}, map[Contract]bool{Stopped: true, Replaced: true, Migrated: true, Asked: true},
		},
		"replacement waits for its data": {
			func(w *town) { replace(w, cluster.ClientPending) },
			map[Contract]bool{Stopped: true, Replaced: true, Migrated: false, Asked: true},
		},
		"replacement runs": {
			func(w *town) { replace(w, cluster.ClientRunning) },
			map[Contract]bool{Stopped: true, Replaced: true, Migrated: true, Asked: true},
		},
		"no data to move": {
			func(w *town) { w.group().EphemeralDisk.Migrate = false; replace(w, cluster.ClientPending) },
			map[Contract]bool{Stopped: true, Replaced: true, Migrated: true, Asked: true},
		},
		"the data is lost": {
			func(w *town) { replace(w, cluster.ClientPending); w.alloc("a1").ClientStatus = cluster.ClientLost },
			map[Contract]bool{Stopped: true, Replaced: true, Migrated: true, Asked: true},
		},
		"the job is stopped": {
			func(w *town) {
				w.jobs[0].Stop = true
				w.evals = append(w.evals, evaluation(cluster.EvalPending, "e1", 1))
			},
			map[Contract]bool{Stopped: true, Replaced: true, Migrated: false, Asked: true},
		},
		"not to be placed again": {
			func(w *town) {
				w.alloc("a1").DesiredTransition.MigrateDisablePlacement = true
				w.evals = append(w.evals, evaluation(cluster.EvalPending, "e1", 1))
			},
			map[Contract]bool{Stopped: true, Replaced: true, Migrated: false, Asked: true},
		},
		"the replacement's record is gone": {
			func(w *town) { w.alloc("a1").NextAllocation = "r1" },
			map[Contract]bool{Stopped: true, Replaced: true, Migrated: true, Asked: true},
		},
		"still stopping": {
			func(w *town) { w.alloc("a1").ClientStatus = cluster.ClientRunning },
			map[Contract]bool{Stopped: false, Replaced: false, Migrated: false, Asked: true},
		},
		"not asked": {
			func(w *town) {
				w.alloc("a1").ClientStatus, w.alloc("a1").DesiredStatus = cluster.ClientRunning, cluster.DesiredRun
				w.alloc("a1").DesiredTransition = cluster.DesiredTransition{}
			},
			map[Contract]bool{Stopped: false, Replaced: false, Migrated: false, Asked: false},
		},
		"the deadline ends every contract but the first": {
			func(w *town) {
				w.drain("n1", -1)
				w.evals = append(w.evals, evaluation(cluster.EvalPending, "e1", 1))
			},
			map[Contract]bool{Stopped: true, Replaced: true, Migrated: true, Asked: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(2, 1)
			w.group().EphemeralDisk.Migrate = true
			w.drain("n1", 0)
			a := w.alloc("a1")
			a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d-n1", Class: cluster.MarkPaced, MarkedAt: epoch}
			a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientComplete
			test.edit(w)
			for contract, want := range test.want {
				end := newMoment(w, epoch, Policy{Completion: contract}).judgeEnd(w.node("n1"))
				must.Eq(t, want, end.done, must.Sprintf("contract %s", contract))
			}
		})
	}
}

// What waits for a job's replacements says so, or a drain with the contract
// would not notice that they came.
func TestJudgeEnd_NamesTheJobsItWaitsFor(t *testing.T) {
	t.Parallel()
	w := newTown(2, 2)
	w.drain("n1", 0)
	for _, a := range w.allocs {
		a.NodeID, a.ClientStatus, a.DesiredStatus = "n1", cluster.ClientComplete, cluster.DesiredStop
		a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d-n1", Class: cluster.MarkPaced}
	}
	w.evals = append(w.evals, &cluster.Evaluation{ID: "e", Namespace: "default", JobID: "web", Status: cluster.EvalPending})
	end := newMoment(w, epoch, Policy{Completion: Replaced}).judgeEnd(w.node("n1"))
	must.Eq(t, []cluster.JobKey{web.Job}, end.waitsFor)
	must.False(t, end.done)
}

// A stop time so long that a margin on top of it wraps around is waited for, not
// passed over.
func TestWaitEnd_EndlessStopTime(t *testing.T) {
	t.Parallel()
	w := newTown(1, 1)
	w.group().Tasks[0].KillTimeout = 1<<63 - 1
	w.drain("n1", -1)
	a := w.alloc("a1")
	a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d-n1", Class: cluster.MarkForced, MarkedAt: epoch}
	end := newMoment(w, epoch.Add(time.Hour), Policy{}).judgeEnd(w.node("n1"))
	must.False(t, end.done)
	must.True(t, end.wait.ends.After(epoch.AddDate(200, 0, 0)))
	must.True(t, EndBound(w, w.node("n1"), epoch, Policy{}, time.Second).After(epoch.AddDate(200, 0, 0)))
}

// What the job watcher tells of an allocation that has left, by the facts of each
// contract.
func TestMigrationOf(t *testing.T) {
	t.Parallel()
	w := newTown(2, 1)
	must.Eq(t, Migration{Alloc: "x", Node: "n1", Asked: true, Stopped: true, Replaced: true, Migrated: true},
		migrationOf(w, "x", "n1", nil), must.Sprint("nothing is known of a record that is gone but that it is gone"))

	a := w.alloc("a1")
	a.ClientStatus = cluster.ClientFailed
	w.evals = append(w.evals, &cluster.Evaluation{ID: "e", Namespace: "default", JobID: "web", Status: cluster.EvalPending})
	must.Eq(t, Migration{Alloc: "a1", Node: "n1", Stopped: true, Migrated: true}, migrationOf(w, "a1", "n1", a))
}

// Storage plugins that wait to the end wait for what had to leave, not for what
// is left by request and happens to stop.
func TestTurn_PluginsDoNotWaitForWhatIsLeftByRequest(t *testing.T) {
	t.Parallel()
	w := newTown(1, 0)
	w.place("p1", w.job("disk", cluster.JobSystem), "n1").Job.TaskGroups[0].Tasks[0].StoragePlugin = true
	s1 := w.place("s1", w.job("logs", cluster.JobSystem), "n1")
	s1.DesiredStatus, s1.StoppedAt = cluster.DesiredStop, epoch
	d := w.drain("n1", -1)
	turn := func(ignore bool) bool {
		d.Strategy.IgnoreSystemJobs = ignore
		return newMoment(w, epoch.Add(time.Hour), Policy{PluginsAfterDeadline: AfterStop}).turnHasCome(w.node("n1"), cluster.StagePlugins)
	}
	must.False(t, turn(false))
	must.True(t, turn(true))
}
