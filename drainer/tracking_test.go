package drainer

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The client of everything on the node never says that it stopped: each stage is
// waited for as long as it may take, then the next begins, and the drain ends by
// the time that was stated.
func TestTerm_DeadlineGoesThroughTheStages(t *testing.T) {
	t.Parallel()
	w := everyKind()
	w.drain("n1", -1)
	r := newRig(t, w, nil)
	r.settle()
	report, _ := r.term.Explain("n1", r.now)
	bound := report.EndsBy
	wait := 20*time.Second + DefaultStopMargin
	var at []time.Duration
	var ids [][]cluster.AllocID
	for range 10 {
		for _, write := range r.raft.written()[len(ids):] {
			ids, at = append(ids, write.marked()), append(at, r.now.Sub(epoch))
		}
		if r.wakeAt.IsZero() {
			break
		}
		r.now = r.wakeAt
		r.settle()
	}
	must.Eq(t, [][]cluster.AllocID{{"a1"}, {"s0"}, {"p0"}, nil}, ids)
	must.Eq(t, []time.Duration{0, wait, 2 * wait, 3 * wait}, at)
	must.SliceEmpty(t, r.state.now().draining())
	must.False(t, bound.Before(r.now), must.Sprintf("stated %s, ended %s", bound, r.now))
}

// However a strategy is changed, what it says then is what happens.
func TestTerm_StrategyChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after time.Duration
		want          time.Duration // when the batch is marked, or -1
	}{
		"sooner":       {time.Hour, time.Minute, time.Minute},
		"later":        {time.Minute, time.Hour, time.Hour},
		"none":         {time.Minute, 0, -1},
		"force":        {time.Hour, -1, 30 * time.Second},
		"some at last": {0, time.Minute, time.Minute},
		"past already": {time.Hour, 10 * time.Second, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(1, 0)
			w.place("b1", w.job("batch", cluster.JobBatch), "n1")
			w.drain("n1", test.before)
			r := newRig(t, w, nil)
			r.advance(30 * time.Second)
			r.commit(func(w *town) {
				w.drain("n1", test.after).Revision = 8
				w.node("n1").Drain.UpdatedAt = r.now
			})
			marked := time.Duration(-1)
			for end := epoch.Add(2 * time.Hour); r.now.Before(end); r.now = r.wakeAt {
				r.settle()
				if writes := r.raft.written(); len(writes) > 0 {
					must.Eq(t, 8, writes[0].marks.Marks[0].Revision)
					marked = writes[0].marks.At.Sub(epoch)
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

// The jobs a drain's contract waits for are followed as long as it waits, and
// what comes of them ends it.
func TestTerm_WaitsForReplacements(t *testing.T) {
	t.Parallel()
	w := newTown(2, 1)
	w.drain("n1", 0)
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = Replaced })
	r.settle()
	r.commit(func(w *town) { w.alloc("a1").ClientStatus = cluster.ClientComplete }) // it ended by itself
	r.settle()
	must.Eq(t, []cluster.NodeID{"n1"}, r.state.now().draining())
	must.Eq(t, map[cluster.JobKey]int{web.Job: 1}, r.state.feed().follows())
	must.True(t, r.wakeAt.IsZero())
	r.commit(func(w *town) { w.evals[0].Status = cluster.EvalBlocked })
	r.settle()
	must.SliceEmpty(t, r.state.now().draining())
	must.MapEmpty(t, r.state.feed().follows())
}

// A drain that waits for replacements lets go of its jobs when it is cancelled,
// and of its timers.
func TestTerm_CancelledWhileItWaits(t *testing.T) {
	t.Parallel()
	w := newTown(2, 1)
	w.drain("n1", 0)
	w.place("b1", w.job("batch", cluster.JobBatch), "n2")
	w.drain("n2", -1)
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = Replaced })
	r.settle()
	r.commit(func(w *town) { w.alloc("a1").ClientStatus = cluster.ClientComplete })
	r.settle()
	must.Eq(t, epoch.Add(20*time.Second+DefaultStopMargin), r.wakeAt)
	r.commit(func(w *town) { w.node("n1").Drain, w.node("n2").Drain = nil, nil })
	r.settle()
	must.True(t, r.wakeAt.IsZero())
	must.MapEmpty(t, r.state.feed().follows())
	must.MapEmpty(t, r.term.nodes)
}

// Data that has moved is told of by the group of the replacement.
func TestTerm_WaitsForData(t *testing.T) {
	t.Parallel()
	w := newTown(2, 1)
	w.group().EphemeralDisk.Migrate = true
	w.drain("n1", 0)
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = Migrated })
	r.settle()
	r.schedule()
	r.commit(func(w *town) { w.alloc("a1'").ClientStatus = cluster.ClientPending })
	r.settle()
	must.Eq(t, []cluster.NodeID{"n1"}, r.state.now().draining())
	r.commit(func(w *town) { w.alloc("a1'").ClientStatus = cluster.ClientRunning })
	r.settle()
	must.SliceEmpty(t, r.state.now().draining())
}

// What happens to a job between the look that showed it had to be waited for and
// the moment it is followed is seen by a second look.
func TestTerm_LooksAgainAtWhatItFollows(t *testing.T) {
	t.Parallel()
	w := newTown(2, 1)
	a := w.alloc("a1")
	a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientComplete
	a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d-n1", Class: cluster.MarkPaced}
	w.evals = append(w.evals, &cluster.Evaluation{ID: "e", Namespace: "default", JobID: "web", Status: cluster.EvalPending})
	w.drain("n1", 0)
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = Replaced })
	r.state.feed().beforeFollow = func() {
		r.commit(func(w *town) { w.evals[0].Status = cluster.EvalBlocked })
		r.state.feed().beforeFollow = nil
	}
	r.settle()
	must.SliceEmpty(t, r.state.now().draining())
}

// What was refused under one strategy is not held back under the next.
func TestTerm_NewStrategyHoldsNothingBack(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.drain("n1", -1)
	r := newRig(t, w, nil)
	r.raft.always = refused
	r.advance(time.Minute)
	r.raft.always = applied
	r.commit(func(w *town) { w.node("n1").Drain.Revision = 8 })
	r.settle()
	must.True(t, r.state.now().alloc("a00").Marked())
}

// Of two that stop, the one that may take longest is there no more: the other is
// waited for no longer than itself. Nor is anything that went out of touch.
func TestTerm_TheLongestStopIsOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		happens func(*town)
		want    time.Duration
	}{
		"nothing happens":  {func(w *town) {}, 100*time.Second + DefaultStopMargin},
		"it stops":         {func(w *town) { w.alloc("a01").ClientStatus = cluster.ClientComplete }, 20*time.Second + DefaultStopMargin},
		"it is unknown":    {func(w *town) { w.alloc("a01").ClientStatus = cluster.ClientUnknown }, 20*time.Second + DefaultStopMargin},
		"its record goes":  {func(w *town) { w.allocs = w.allocs[:1] }, 20*time.Second + DefaultStopMargin},
		"the node is down": {func(w *town) { w.node("n1").Status = cluster.NodeDown }, time.Second},
		"another one lands": {func(w *town) {
			late := w.job("late", cluster.JobBatch)
			late.TaskGroups[0].Tasks[0].KillTimeout = 200 * time.Second
			w.place("late", late, "n1")
		}, time.Second + 200*time.Second + DefaultStopMargin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := jobsOnOneNode(2)
			w.jobs[1].TaskGroups[0].Tasks[0].KillTimeout = 100 * time.Second
			w.drain("n1", -1)
			r := newRig(t, w, nil)
			r.advance(time.Second)
			r.commit(test.happens)
			r.settle()
			for len(r.state.now().draining()) > 0 && !r.wakeAt.IsZero() {
				r.now = r.wakeAt
				r.settle()
			}
			must.SliceEmpty(t, r.state.now().draining())
			must.Eq(t, test.want, r.now.Sub(epoch))
		})
	}
}
