package drainer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// finish runs the scheduler and lets time pass until no node drains, and reports whether this was
// reached.
func (h *harness) finish() bool {
	for range 200 {
		h.settle()
		h.schedule()
		h.settle()
		if len(h.state.draining()) == 0 {
			return true
		}
		if slices.ContainsFunc(h.state.now().Evals, func(e *cluster.Evaluation) bool { return e.Status == cluster.EvalPending }) {
			continue
		}
		if h.wakeAt.IsZero() {
			return false
		}
		h.wait()
	}
	return false
}

// everyKind is a cluster in which n1 and n2 run an allocation of every stage.
func everyKind() *fixture.Cluster {
	w := fixture.NewCluster(4, 4)
	for i, n := range []cluster.NodeID{"n1", "n2"} {
		w.Place(cluster.AllocID(fmt.Sprintf("s%d", i)), w.AddJob(cluster.JobID(fmt.Sprintf("logs%d", i)), cluster.JobSystem), n)
		plugin := w.AddJob(cluster.JobID(fmt.Sprintf("disk%d", i)), []cluster.JobType{cluster.JobSystem, cluster.JobService}[i])
		plugin.TaskGroups[0].Tasks[0].StoragePlugin = true
		w.Place(cluster.AllocID(fmt.Sprintf("p%d", i)), plugin, n)
	}
	return w
}

// Two nodes drain from the first mark to the end: stage by stage, one of the group at a
// time. At the end no job is followed.
func TestTerm_DrainsStageByStage(t *testing.T) {
	t.Parallel()
	for name, vague := range map[string]bool{"the feed names rows": false, "the feed reports All": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := everyKind()
			w.StartDrain("n1", 0)
			w.StartDrain("n2", 0)
			r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = rules.CompletionMigrated })
			r.state.vague = vague
			must.True(t, r.finish())
			var order [][]cluster.AllocID
			for _, write := range r.raft.written() {
				if ids := write.marked(); ids != nil {
					order = append(order, ids)
				}
			}
			must.Eq(t, [][]cluster.AllocID{{"a1"}, {"s0", "a2"}, {"p0", "s1"}, {"p1"}}, order)
			must.MapEmpty(t, r.state.feed().follows())
			must.Eq(t, fixture.Epoch, r.now)
			must.MapEmpty(t, r.term.nodes.byID)
			must.MapEmpty(t, r.term.nodes.waiting)
			must.SliceEmpty(t, r.term.nodes.writing)
			must.False(t, r.term.nodes.agenda.Pending())
			must.True(t, r.term.nodes.agenda.First().IsZero())
			must.MapEmpty(t, r.term.outbox.round.marks)
		})
	}
}

// While nothing changes the term writes nothing, does not read the state, and is not stepped
// before the time that it returned.
func TestTerm_Quiet(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 0)
	w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
	w.StartDrain("n1", time.Hour)
	w.Place("c1", w.AddJob("endless", cluster.JobBatch), "n2")
	w.StartDrain("n2", 0)
	r := newHarness(t, w, nil)
	r.settle()
	steps, reads, writes := r.steps, r.state.taken(), len(r.raft.written())
	must.Eq(t, fixture.Epoch.Add(time.Hour), r.wakeAt)
	r.advance(time.Hour - 1)
	must.Eq(t, []int{steps, reads, writes}, []int{r.steps, r.state.taken(), len(r.raft.written())})
	r.advance(1)
	must.Eq(t, []cluster.AllocID{"b1"}, r.raft.written()[writes].marked())
	must.Eq(t, cluster.MarkDeadline, r.raft.written()[writes].marks.Marks[0].Class)
}

// Without a drain the term needs no wake-up.
func TestTerm_Idle(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fixture.NewCluster(3, 5), nil)
	r.settle()
	must.True(t, r.wakeAt.IsZero())
	steps := r.steps
	r.commit(func(w *fixture.Cluster) {
		w.Alloc("a1").ModifyTime = fixture.Epoch
		w.Node("n2").StatusUpdatedAt = 5
		w.TaskGroup().Count = 7
	})
	r.settle()
	must.Eq(t, steps, r.steps, must.Sprint("stepped for changes that concern no drain"))
}

// An unneeded step costs no read of the state.
func TestTerm_UnneededStep(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 1)
	w.StartDrain("n1", time.Hour)
	r := newHarness(t, w, nil)
	r.settle()
	reads := r.state.taken()
	for range 10 {
		r.step()
	}
	must.Eq(t, reads, r.state.taken())
}

// A term over a store that was replaced decides nothing.
func TestTerm_AbandonedStore(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fixture.NewCluster(1, 1), nil)
	r.settle()
	r.state.abandon()
	r.commit(func(w *fixture.Cluster) { w.StartDrain("n1", -1) })
	r.advance(time.Hour)
	must.SliceEmpty(t, r.raft.written())
	must.True(t, r.wakeAt.IsZero())
}

// A term that has ended writes nothing, and ignores answers.
func TestTerm_Close(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(2), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry, c.MaxInFlight = 2, 1 })
	r.run()
	r.raft.answer()
	r.run()
	must.Len(t, 1, r.raft.written())
	r.term.Close()
	r.term.Close()
	must.True(t, r.state.feed().closed)
	must.True(t, r.raft.answer())
	r.step()
	must.True(t, r.wakeAt.IsZero())
	must.Len(t, 1, r.raft.written())
}

// A term can end at any of its steps. The next term reads the state and reaches the same end.
func TestTerm_RestartedAtEveryStep(t *testing.T) {
	t.Parallel()
	begin := func() *harness {
		w := everyKind()
		w.StartDrain("n1", 0)
		w.StartDrain("n2", time.Minute)
		w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n2")
		w.Jobs[len(w.Jobs)-1].TaskGroups[0].Tasks[0].KillTimeout = time.Hour
		return newHarness(t, w, nil)
	}
	whole := begin()
	must.True(t, whole.finish())
	for at := range whole.steps {
		r := begin()
		for range 1000 {
			if r.steps >= at {
				break
			}
			if !r.due() {
				if !r.raft.answer() {
					r.schedule()
				}
				if len(r.wake) == 0 && !r.wakeAt.IsZero() {
					r.wait()
				}
				continue
			}
			r.step()
		}
		r.restart()
		must.True(t, r.finish(), must.Sprintf("restarted at step %d", at))
		must.MapEmpty(t, r.state.feed().follows())
	}
}

// A clock that is set back makes no wait longer: of a write, of a barrier, of an interval between
// rounds, or of the limiter.
func TestTerm_ClockSetBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config   func(*NodeDrainerConfig)
		script   []fate
		barriers []fate
	}{
		"after a rejected write": {script: []fate{rejected}},
		"after a lost write":     {script: []fate{lost}},
		"after a refused write":  {script: []fate{refused}},
		"after a lost barrier":   {barriers: []fate{lost}},
		"between rounds":         {config: func(c *NodeDrainerConfig) { c.MinWriteInterval = time.Minute }},
		"before the next query":  {config: func(c *NodeDrainerConfig) { c.StateQueriesPerSecond = 0.1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, jobsOnOneNode(1), func(c *NodeDrainerConfig) {
				if test.config != nil {
					test.config(c)
				}
			})
			r.raft.waiting = nil // the barrier of a term that ends here
			r.raft.script, r.raft.barriers = test.script, test.barriers
			r.restart()
			r.settle()
			r.commit(func(w *fixture.Cluster) { w.Place("late", w.AddJob("late", cluster.JobService), "n1") })
			r.settle()
			r.now = r.now.Add(-time.Hour)
			r.step() // as the goroutine does when it reads the clock
			r.advance(time.Minute)
			must.True(t, r.state.now().Alloc("a00").Marked())
			must.True(t, r.state.now().Alloc("late").Marked())
		})
	}
}

// A deadline passes, and the clock is set back to before it. The marks stay, and the
// deadline passes again.
func TestTerm_ClockSetBackBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 0)
	w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
	w.StartDrain("n1", time.Minute)
	r := newHarness(t, w, nil)
	r.advance(time.Minute)
	must.Len(t, 1, r.raft.written())
	must.True(t, r.term.nodes.byID["n1"].passed)
	r.now = fixture.Epoch
	r.step()
	r.settle()
	must.False(t, r.term.nodes.byID["n1"].passed, must.Sprint("its groups would not be planned when the deadline passes again"))
	must.Eq(t, fixture.Epoch.Add(time.Minute), r.wakeAt)
	must.Len(t, 1, r.raft.written())
	r.advance(time.Minute + 20*time.Second + rules.DefaultStopMargin)
	must.SliceEmpty(t, r.state.draining())
}
