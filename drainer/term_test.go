package drainer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// finish lets the scheduler and time do their work until nothing drains, and
// reports whether that came to pass.
func (r *rig) finish() bool {
	for range 200 {
		r.settle()
		r.schedule()
		r.settle()
		if len(r.state.now().draining()) == 0 {
			return true
		}
		if slices.ContainsFunc(r.state.now().evals, func(e *cluster.Evaluation) bool { return e.Status == cluster.EvalPending }) {
			continue
		}
		if r.wakeAt.IsZero() {
			return false
		}
		r.now = latest(r.now, r.wakeAt)
	}
	return false
}

// everyKind is a town in which n1 and n2 run something of every stage.
func everyKind() *town {
	w := newTown(4, 4)
	for i, n := range []cluster.NodeID{"n1", "n2"} {
		w.place(cluster.AllocID(fmt.Sprintf("s%d", i)), w.job(cluster.JobID(fmt.Sprintf("logs%d", i)), cluster.JobSystem), n)
		plugin := w.job(cluster.JobID(fmt.Sprintf("disk%d", i)), []cluster.JobType{cluster.JobSystem, cluster.JobService}[i])
		plugin.TaskGroups[0].Tasks[0].StoragePlugin = true
		w.place(cluster.AllocID(fmt.Sprintf("p%d", i)), plugin, n)
	}
	return w
}

// A drain from its first mark to its end: stage by stage, one of the group at a
// time, over two nodes; and at the end nobody is followed any more.
func TestTerm_DrainsStageByStage(t *testing.T) {
	t.Parallel()
	for name, vague := range map[string]bool{"told where": false, "told that something changed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := everyKind()
			w.drain("n1", 0)
			w.drain("n2", 0)
			r := newRig(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = Migrated })
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
			must.Eq(t, epoch, r.now)
			must.MapEmpty(t, r.term.nodes)
			must.MapEmpty(t, r.term.waiting)
			must.Eq(t, 0, r.term.alarms.Len())
			must.MapEmpty(t, r.term.ready)
			must.MapEmpty(t, r.term.gathered)
			must.MapEmpty(t, r.term.writer.marks)
			must.MapEmpty(t, r.term.writer.nodes)
		})
	}
}

// With nothing changing nothing is written, looked at or stepped before the next
// stated time.
func TestTerm_Quiet(t *testing.T) {
	t.Parallel()
	w := newTown(2, 0)
	w.place("b1", w.job("batch", cluster.JobBatch), "n1")
	w.drain("n1", time.Hour)
	w.place("c1", w.job("endless", cluster.JobBatch), "n2")
	w.drain("n2", 0)
	r := newRig(t, w, nil)
	r.settle()
	steps, looks, writes := r.steps, r.state.taken(), len(r.raft.written())
	must.Eq(t, epoch.Add(time.Hour), r.wakeAt)
	r.advance(time.Hour - 1)
	must.Eq(t, []int{steps, looks, writes}, []int{r.steps, r.state.taken(), len(r.raft.written())})
	r.advance(1)
	must.Eq(t, []cluster.AllocID{"b1"}, r.raft.written()[writes].marked())
	must.Eq(t, cluster.MarkDeadline, r.raft.written()[writes].marks.Marks[0].Class)
}

// Without any drain there is nothing to wait for at all.
func TestTerm_Idle(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(3, 5), nil)
	r.settle()
	must.True(t, r.wakeAt.IsZero())
	steps := r.steps
	r.commit(func(w *town) { w.alloc("a1").ModifyTime = epoch; w.node("n2").StatusUpdatedAt = 5; w.group().Count = 7 })
	r.settle()
	must.Eq(t, steps, r.steps, must.Sprint("stepped for what is nobody's business"))
}

// A step for nothing costs no look at the state.
func TestTerm_StepForNothing(t *testing.T) {
	t.Parallel()
	w := newTown(1, 1)
	w.drain("n1", time.Hour)
	r := newRig(t, w, nil)
	r.settle()
	looks := r.state.taken()
	for range 10 {
		r.step()
	}
	must.Eq(t, looks, r.state.taken())
}

// The limiter of state queries delays looks and loses nothing.
func TestTerm_LimiterDelays(t *testing.T) {
	t.Parallel()
	const perSecond, burst, changes = 30, 3, 20
	r := newRig(t, jobsOnOneNode(1), func(c *NodeDrainerConfig) { c.StateQueriesPerSecond = perSecond })
	for i := range changes {
		r.commit(func(w *town) {
			id := fmt.Sprintf("late%d", i)
			w.place(cluster.AllocID(id), w.job(cluster.JobID(id), cluster.JobService), "n1")
		})
		r.settle()
	}
	must.Eq(t, burst, r.state.taken(), must.Sprint("the burst"))
	must.Eq(t, epoch.Add(time.Second/perSecond), r.wakeAt)
	for looks := range 10 {
		r.advance(time.Second / perSecond)
		must.LessEq(t, burst+looks+1, r.state.taken())
	}
	for _, a := range r.state.now().allocs {
		must.True(t, a.Marked(), must.Sprintf("%s", a.ID))
	}
}

// A view older than an answered entry is not planned from.
func TestTerm_StaleView(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.run()
	r.raft.answer() // the barrier
	r.run()
	r.state.lag(true)
	r.raft.answer() // the mark: applied, and not to be seen
	r.commit(func(w *town) { w.place("late", w.job("late", cluster.JobService), "n1") })
	r.advance(time.Second)
	must.Len(t, 1, r.raft.written())
	r.state.lag(false)
	r.advance(DefaultRetryBase)
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"late"}, r.raft.written()[1].marked())
}

// Nor is one older than the term's barrier.
func TestTerm_StaleViewBehindTheBarrier(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.state.lag(true)
	r.commit(func(w *town) { w.node("n1").Drain = nil }) // cancelled by the leader before
	r.advance(time.Second)
	must.SliceEmpty(t, r.raft.written())
	r.state.lag(false)
	r.advance(DefaultRetryBase)
	must.SliceEmpty(t, r.raft.written())
	must.True(t, r.wakeAt.IsZero())
}

// On a store that was replaced nothing is decided any more, whatever it says.
func TestTerm_AbandonedStore(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(1, 1), nil)
	r.settle()
	r.state.abandon()
	r.commit(func(w *town) { w.drain("n1", -1) })
	r.advance(time.Hour)
	must.SliceEmpty(t, r.raft.written())
	must.True(t, r.wakeAt.IsZero())
	r.restart()
	must.True(t, r.wakeAt.IsZero())
}

// When a term has ended it writes nothing, and an answer that comes then is
// nobody's business.
func TestTerm_Close(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(2), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry, c.MaxInFlight = 2, 1 })
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

// Everything a term remembers can be lost at any of its steps: the next one reads
// the state and goes on to the same end.
func TestTerm_RestartedAtEveryStep(t *testing.T) {
	t.Parallel()
	begin := func() *rig {
		w := everyKind()
		w.drain("n1", 0)
		w.drain("n2", time.Minute)
		w.place("b1", w.job("batch", cluster.JobBatch), "n2")
		w.jobs[len(w.jobs)-1].TaskGroups[0].Tasks[0].KillTimeout = time.Hour
		return newRig(t, w, nil)
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
					r.now = latest(r.now, r.wakeAt)
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

// A clock that is set back makes no wait longer: not the backoff of a write, not
// that of a barrier, not the interval between rounds, not the state queries'.
func TestTerm_ClockSetBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config func(*NodeDrainerConfig)
		script []fate
		asked  []fate
	}{
		"after a rejected write": {script: []fate{rejected}},
		"after a lost write":     {script: []fate{lost}},
		"after a refused one":    {script: []fate{refused}},
		"after a lost barrier":   {asked: []fate{lost}},
		"between rounds":         {config: func(c *NodeDrainerConfig) { c.MinWriteInterval = time.Minute }},
		"before the next query":  {config: func(c *NodeDrainerConfig) { c.StateQueriesPerSecond = 0.1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, jobsOnOneNode(1), func(c *NodeDrainerConfig) {
				if test.config != nil {
					test.config(c)
				}
			})
			r.raft.waiting = nil // the barrier of a term that ends here
			r.raft.script, r.raft.barriers = test.script, test.asked
			r.restart()
			r.settle()
			r.commit(func(w *town) { w.place("late", w.job("late", cluster.JobService), "n1") })
			r.settle()
			r.now = r.now.Add(-time.Hour)
			r.step() // as the shell does once it sees the clock
			r.advance(time.Minute)
			must.True(t, r.state.now().alloc("a00").Marked())
			must.True(t, r.state.now().alloc("late").Marked())
		})
	}
}

// A deadline that comes to pass, by a clock that is then set back before it, has
// not passed: what it has marked stays, and it comes to pass again.
func TestTerm_ClockSetBackBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	w := newTown(1, 0)
	w.place("b1", w.job("batch", cluster.JobBatch), "n1")
	w.drain("n1", time.Minute)
	r := newRig(t, w, nil)
	r.advance(time.Minute)
	must.Len(t, 1, r.raft.written())
	must.True(t, r.term.nodes["n1"].passed)
	r.now = epoch
	r.step()
	r.settle()
	must.False(t, r.term.nodes["n1"].passed, must.Sprint("its groups would not be judged when it passes again"))
	must.Eq(t, epoch.Add(time.Minute), r.wakeAt)
	must.Len(t, 1, r.raft.written())
	r.advance(time.Minute + 20*time.Second + DefaultStopMargin)
	must.SliceEmpty(t, r.state.now().draining())
}
