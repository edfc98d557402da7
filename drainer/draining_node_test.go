package drainer

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// No client reports that an allocation stopped. The drain waits for each stage until its stop time,
// then the next stage begins. The drain ends by the time in its report.
func TestTerm_DeadlineGoesThroughTheStages(t *testing.T) {
	t.Parallel()
	w := everyKind()
	w.StartDrain("n1", -1)
	r := newHarness(t, w, nil)
	r.settle()
	report, _ := r.term.Explain("n1", r.now)
	bound := report.EndsBy
	wait := 20*time.Second + rules.DefaultStopMargin
	var at []time.Duration
	var ids [][]cluster.AllocID
	for range 10 {
		for _, write := range r.raft.written()[len(ids):] {
			ids, at = append(ids, write.marked()), append(at, r.now.Sub(fixture.Epoch))
		}
		if r.wakeAt.IsZero() {
			break
		}
		r.now = r.wakeAt
		r.settle()
	}
	must.Eq(t, [][]cluster.AllocID{{"a1"}, {"s0"}, {"p0"}, nil}, ids)
	must.Eq(t, []time.Duration{0, wait, 2 * wait, 3 * wait}, at)
	must.SliceEmpty(t, r.state.draining())
	must.False(t, bound.Before(r.now), must.Sprintf("stated %s, ended %s", bound, r.now))
}

// A changed strategy takes effect.
func TestTerm_StrategyChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after time.Duration
		want          time.Duration // when the batch is marked, or -1
	}{
		"sooner":      {time.Hour, time.Minute, time.Minute},
		"later":       {time.Minute, time.Hour, time.Hour},
		"none":        {time.Minute, 0, -1},
		"force":       {time.Hour, -1, 30 * time.Second},
		"from none":   {0, time.Minute, time.Minute},
		"in the past": {time.Hour, 10 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(1, 0)
			w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
			w.StartDrain("n1", test.before)
			r := newHarness(t, w, nil)
			r.advance(30 * time.Second)
			r.commit(func(w *fixture.Cluster) {
				w.StartDrain("n1", test.after).Revision = 8
				w.Node("n1").Drain.UpdatedAt = r.now
			})
			marked := time.Duration(-1)
			for end := fixture.Epoch.Add(2 * time.Hour); r.now.Before(end); r.now = r.wakeAt {
				r.settle()
				if writes := r.raft.written(); len(writes) > 0 {
					must.Eq(t, 8, writes[0].marks.Marks[0].Revision)
					marked = writes[0].marks.At.Sub(fixture.Epoch)
					break
				}
				if r.wakeAt.IsZero() {
					break
				}
			}
			must.Eq(t, test.want, marked)
		})
	}
}

// A drain follows the jobs whose replacements its completion policy waits for. It ends when
// they are placed or blocked.
func TestTerm_WaitsForReplacements(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 1)
	w.StartDrain("n1", 0)
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = rules.CompletionReplaced })
	r.settle()
	r.commit(func(w *fixture.Cluster) { w.Alloc("a1").ClientStatus = cluster.ClientComplete }) // it ended without a scheduler
	r.settle()
	must.Eq(t, []cluster.NodeID{"n1"}, r.state.draining())
	must.Eq(t, map[cluster.JobKey]int{fixture.Group.Job: 1}, r.state.feed().follows())
	must.True(t, r.wakeAt.IsZero())
	r.commit(func(w *fixture.Cluster) { w.Evals[0].Status = cluster.EvalBlocked })
	r.settle()
	must.SliceEmpty(t, r.state.draining())
	must.MapEmpty(t, r.state.feed().follows())
}

// A cancelled drain follows no job and needs no wake-up.
func TestTerm_CancelledWhileItWaits(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 1)
	w.StartDrain("n1", 0)
	w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n2")
	w.StartDrain("n2", -1)
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = rules.CompletionReplaced })
	r.settle()
	r.commit(func(w *fixture.Cluster) { w.Alloc("a1").ClientStatus = cluster.ClientComplete })
	r.settle()
	must.Eq(t, fixture.Epoch.Add(20*time.Second+rules.DefaultStopMargin), r.wakeAt)
	r.commit(func(w *fixture.Cluster) { w.Node("n1").Drain, w.Node("n2").Drain = nil, nil })
	r.settle()
	must.True(t, r.wakeAt.IsZero())
	must.MapEmpty(t, r.state.feed().follows())
	must.MapEmpty(t, r.term.nodes.byID)
}

// A change in the group of a replacement shows that the data has moved.
func TestTerm_WaitsForData(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 1)
	w.TaskGroup().EphemeralDisk.Migrate = true
	w.StartDrain("n1", 0)
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = rules.CompletionMigrated })
	r.settle()
	r.schedule()
	r.commit(func(w *fixture.Cluster) { w.Alloc("a1'").ClientStatus = cluster.ClientPending })
	r.settle()
	must.Eq(t, []cluster.NodeID{"n1"}, r.state.draining())
	r.commit(func(w *fixture.Cluster) { w.Alloc("a1'").ClientStatus = cluster.ClientRunning })
	r.settle()
	must.SliceEmpty(t, r.state.draining())
}

// A drain whose policy is the default follows the jobs for whose data it waits: a write to the row of the
// replacement, or of the ended allocation, may end the wait.
func TestTerm_WaitsForKeptData(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]func(w *fixture.Cluster){
		"the data is copied": func(w *fixture.Cluster) {
			w.Alloc("a1").DataOut = &cluster.DataMove{State: cluster.DataCopied, Peer: "a1'"}
			w.Alloc("a1'").DataIn = &cluster.DataMove{State: cluster.DataCopied, Peer: "a1"}
		},
		"only the row of the replacement has the end": func(w *fixture.Cluster) {
			w.Alloc("a1'").DataIn = &cluster.DataMove{State: cluster.DataGivenUp}
		},
		"only the row of the ended allocation has the end": func(w *fixture.Cluster) {
			w.Alloc("a1").DataOut = &cluster.DataMove{State: cluster.DataGivenUp}
		},
		"the replacement is lost, and no other one comes": func(w *fixture.Cluster) {
			w.Alloc("a1'").ClientStatus, w.Evals = cluster.ClientLost, nil
		},
		"the node is down": func(w *fixture.Cluster) { w.Node("n1").Status = cluster.NodeDown },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(2, 1)
			w.TaskGroup().EphemeralDisk.Migrate = true
			w.StartDrain("n1", 0)
			r := newHarness(t, w, nil)
			r.settle()
			r.schedule()
			r.commit(func(w *fixture.Cluster) {
				w.Alloc("a1").DataOut = &cluster.DataMove{State: cluster.DataKept}
				w.Alloc("a1'").ClientStatus, w.Alloc("a1'").DataIn = cluster.ClientPending, &cluster.DataMove{State: cluster.DataWaiting}
			})
			r.settle()
			must.Eq(t, []cluster.NodeID{"n1"}, r.state.draining())
			must.Eq(t, map[cluster.JobKey]int{fixture.Group.Job: 1}, r.state.feed().follows())
			must.True(t, r.wakeAt.IsZero(), must.Sprint("only a write ends the wait"))
			r.commit(moved)
			r.settle()
			must.SliceEmpty(t, r.state.draining())
			must.MapEmpty(t, r.state.feed().follows())
		})
	}
}

// A job changes after the step took its view and before it follows the job. The next step reads the
// change.
func TestTerm_RereadsFollowedGroups(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 1)
	a := w.Alloc("a1")
	a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientComplete
	a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d-n1", Class: cluster.MarkPaced}
	w.Evals = append(w.Evals, &cluster.Evaluation{ID: "e", Namespace: "default", JobID: "web", Status: cluster.EvalPending})
	w.StartDrain("n1", 0)
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = rules.CompletionReplaced })
	r.state.feed().beforeFollow = func() {
		r.commit(func(w *fixture.Cluster) { w.Evals[0].Status = cluster.EvalBlocked })
		r.state.feed().beforeFollow = nil
	}
	r.settle()
	must.SliceEmpty(t, r.state.draining())
}

// A mark that was refused under one strategy is written without delay under the next.
func TestTerm_NewStrategyEndsBackoff(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.StartDrain("n1", -1)
	r := newHarness(t, w, nil)
	r.raft.always = refused
	r.advance(time.Minute)
	r.raft.always = applied
	r.commit(func(w *fixture.Cluster) { w.Node("n1").Drain.Revision = 8 })
	r.settle()
	must.True(t, r.state.now().Alloc("a00").Marked())
}

// Of two stopping allocations, the one with the longest stop time ends or cannot be reached. The
// drain waits only for the other.
func TestTerm_UnreachableAllocationIsNotAwaited(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happens func(*fixture.Cluster)
		want    time.Duration
	}{
		"nothing happens":  {func(w *fixture.Cluster) {}, 100*time.Second + rules.DefaultStopMargin},
		"it stops":         {func(w *fixture.Cluster) { w.Alloc("a01").ClientStatus = cluster.ClientComplete }, 20*time.Second + rules.DefaultStopMargin},
		"it is unknown":    {func(w *fixture.Cluster) { w.Alloc("a01").ClientStatus = cluster.ClientUnknown }, 20*time.Second + rules.DefaultStopMargin},
		"its row is gone":  {func(w *fixture.Cluster) { w.Allocs = w.Allocs[:1] }, 20*time.Second + rules.DefaultStopMargin},
		"the node is down": {func(w *fixture.Cluster) { w.Node("n1").Status = cluster.NodeDown }, time.Second},
		"another one lands": {func(w *fixture.Cluster) {
			late := w.AddJob("late", cluster.JobBatch)
			late.TaskGroups[0].Tasks[0].KillTimeout = 200 * time.Second
			w.Place("late", late, "n1")
		}, time.Second + 200*time.Second + rules.DefaultStopMargin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := jobsOnOneNode(2)
			w.Jobs[1].TaskGroups[0].Tasks[0].KillTimeout = 100 * time.Second
			w.StartDrain("n1", -1)
			r := newHarness(t, w, nil)
			r.advance(time.Second)
			r.commit(test.happens)
			r.settle()
			for len(r.state.draining()) > 0 && !r.wakeAt.IsZero() {
				r.now = r.wakeAt
				r.settle()
			}
			must.SliceEmpty(t, r.state.draining())
			must.Eq(t, test.want, r.now.Sub(fixture.Epoch))
		})
	}
}

// The groups on a node are registered when their plans may change because of the node: when its
// drain or its strategy is new, when the deadline passes, when the turn of its storage plugins
// begins or ends, and when it stops draining.
func TestTerm_RegistersGroupsOfNode(t *testing.T) {
	t.Parallel()
	jobs := &scriptJobs{}
	w := fixture.NewCluster(1, 0)
	batch, disk := w.AddJob("batch", cluster.JobBatch), w.AddJob("disk", cluster.JobService)
	disk.TaskGroups[0].Tasks[0].StoragePlugin = true
	w.Place("d1", disk, "n1")
	w.Place("b1", batch, "n1")
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.JobWatcher = func(Env) DrainingJobWatcher { return jobs } })
	r.raft.always = rejected
	for _, test := range []struct {
		what     string
		change   func(*fixture.Cluster)
		advance  time.Duration
		register []cluster.JobID
	}{
		{"a new drain", func(w *fixture.Cluster) { w.StartDrain("n1", time.Hour) }, 0, []cluster.JobID{"batch", "disk"}},
		{"an irrelevant change", func(w *fixture.Cluster) { w.Alloc("b1").ModifyTime = fixture.Epoch }, 0, nil},
		{"a new strategy", func(w *fixture.Cluster) { w.StartDrain("n1", time.Minute).Revision = 8 }, 0, []cluster.JobID{"batch", "disk"}},
		{"the plugins' turn", func(w *fixture.Cluster) { w.Alloc("b1").ClientStatus = cluster.ClientComplete }, 0, []cluster.JobID{"disk"}},
		{"not their turn", func(w *fixture.Cluster) { w.Place("b2", batch, "n1") }, 0, []cluster.JobID{"batch", "disk"}},
		{"the deadline", func(*fixture.Cluster) {}, time.Minute, []cluster.JobID{"batch", "disk"}},
		{"the end", func(w *fixture.Cluster) { w.Node("n1").Drain = nil }, DefaultRetryMax, []cluster.JobID{"batch", "disk"}},
	} {
		jobs.registered = nil
		r.commit(test.change)
		r.settle()
		r.advance(test.advance)
		var ids []cluster.JobID
		for _, g := range jobs.registered {
			ids = append(ids, g.Job.ID)
		}
		must.Eq(t, test.register, ids, must.Sprint(test.what))
	}
}

// The end of another job's allocation begins the turn of a node's storage plugins. Their group is
// planned in the same step, although it did not change.
func TestTerm_PluginsTurn(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 0)
	disk := w.AddJob("disk", cluster.JobService)
	disk.TaskGroups[0].Tasks[0].StoragePlugin = true
	w.Place("d1", disk, "n1")
	w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
	w.StartDrain("n1", 0)
	r := newHarness(t, w, nil)
	r.settle()
	must.SliceEmpty(t, r.raft.written())
	steps := r.steps
	r.commit(func(w *fixture.Cluster) { w.Alloc("b1").ClientStatus = cluster.ClientComplete })
	r.run()
	must.Eq(t, steps+1, r.steps)
	must.Len(t, 1, r.raft.written())
	must.Eq(t, []cluster.AllocID{"d1"}, r.raft.written()[0].marked())
}

// A storage plugin stays for a system job that the drain ignores. When this job has ended, the
// plugin's group is planned in the same step, although the group did not change and the turn of
// storage plugins had begun before.
func TestTerm_PluginServesNoLonger(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 0)
	disk, nfs := w.AddJob("disk", cluster.JobService), w.AddJob("nfs", cluster.JobSystem)
	disk.TaskGroups[0].Tasks[0].StoragePlugin, nfs.TaskGroups[0].Tasks[0].StoragePlugin = true, true
	disk.TaskGroups[0].Tasks[0].CSIPlugin = &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginNode}
	w.Place("d1", disk, "n1")
	w.Place("p1", nfs, "n1")
	w.Place("s1", w.AddJob("backup", cluster.JobSystem), "n1")
	w.Plugins = map[cluster.AllocID][]cluster.PluginID{"s1": {"disks"}}
	w.StartDrain("n1", 0).Strategy.IgnoreSystemJobs = true
	r := newHarness(t, w, nil)
	r.settle()
	must.Len(t, 1, r.raft.written())
	must.Eq(t, []cluster.AllocID{"p1"}, r.raft.written()[0].marked())
	steps := r.steps
	r.commit(func(w *fixture.Cluster) { w.Alloc("s1").ClientStatus = cluster.ClientComplete })
	r.run()
	must.Eq(t, steps+1, r.steps)
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"d1"}, r.raft.written()[1].marked())
}
