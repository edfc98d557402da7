package drainer

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// jobsOnOneNode is a cluster whose node n1 drains and runs one allocation of each of the jobs. n2
// and n3 are empty.
func jobsOnOneNode(jobs int) *fixture.Cluster {
	w := fixture.NewCluster(3, 0)
	w.Jobs = nil
	for i := range jobs {
		w.Place(cluster.AllocID(fmt.Sprintf("a%02d", i)), w.AddJob(cluster.JobID(fmt.Sprintf("job%02d", i)), cluster.JobService), "n1")
	}
	w.StartDrain("n1", 0)
	return w
}

// The first write begins immediately. While it is in flight the drainer does not read the state.
// Items that become due then are written in the next round.
func TestOutbox_GatherWhileInFlight(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	for i := range 3 {
		w.Place(cluster.AllocID(fmt.Sprintf("b%d", i)), w.AddJob(cluster.JobID(fmt.Sprintf("more%d", i)), cluster.JobService), "n2")
	}
	r := newHarness(t, w, nil)
	r.run()
	must.True(t, r.raft.answer(), must.Sprint("the barrier of the term"))
	r.run()
	must.Len(t, 1, r.raft.written())
	must.Eq(t, []cluster.AllocID{"a00"}, r.raft.written()[0].marked())
	reads := r.state.taken()

	r.commit(func(w *fixture.Cluster) { w.StartDrain("n2", 0) })
	r.run()
	r.commit(func(w *fixture.Cluster) { w.StartDrain("n3", 0) })
	r.run()
	must.Len(t, 1, r.raft.written(), must.Sprint("a second round began while the first was in flight"))
	must.Eq(t, reads, r.state.taken(), must.Sprint("the state was read while the first round was in flight"))
	must.True(t, r.raft.answer())
	r.run()
	must.Len(t, 3, r.raft.written(), must.Sprint("the empty node, and the allocations on the other"))
	must.Eq(t, []rules.Completion{{Node: "n3", Drain: "d-n3", Revision: 7}}, r.raft.written()[1].completions.Completions)
	must.Eq(t, []cluster.AllocID{"b0", "b1", "b2"}, r.raft.written()[2].marked())
	must.Eq(t, fixture.Epoch, r.now, must.Sprint("nothing waited for a timer"))
}

// Entries stay within their bound, and no more are in flight than allowed. All marks are
// written.
func TestOutbox_KeepBounds(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(9), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry, c.MaxInFlight = 2, 3 })
	r.settle()
	marked := map[cluster.AllocID]bool{}
	for _, write := range r.raft.written() {
		must.LessEq(t, 2, len(write.marks.Marks)+len(write.marks.Evals))
		for _, id := range write.marked() {
			must.False(t, marked[id], must.Sprintf("%s was marked twice", id))
			marked[id] = true
		}
	}
	must.Eq(t, 9, len(marked))
	must.Eq(t, 3, r.raft.inFlight)
}

// An applier has room for one write. Each further write begins when an answer comes.
func TestOutbox_PartialRoom(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(5), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = 2 })
	r.raft.room = 1
	r.settle()
	must.Len(t, 5, r.raft.written())
	must.Eq(t, 1, r.raft.inFlight)
	must.Eq(t, fixture.Epoch, r.now)
}

// Other proposers have filled the queue. No write begins and no answer comes, so the drainer
// retries after a wait that doubles each time.
func TestOutbox_FullQueue(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.raft.script = []fate{full, full, full}
	r.settle()
	must.SliceEmpty(t, r.raft.written())
	must.Eq(t, fixture.Epoch.Add(DefaultRetryBase), r.wakeAt)
	r.advance(DefaultRetryBase * 7) // one, two and four times the first wait
	must.Len(t, 1, r.raft.written())
}

func TestOutbox_FullQueueAtTheBarrier(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.restart()
	r.raft.waiting, r.raft.queuedBarriers = nil, 0
	r.raft.barriers = []fate{full, full}
	r.restart()
	must.Eq(t, fixture.Epoch.Add(DefaultRetryBase), r.wakeAt)
	r.advance(DefaultRetryBase)
	must.Eq(t, 0, r.raft.barriersQueued())
	r.advance(DefaultRetryBase * 2)
	must.Eq(t, 1, r.raft.barriersQueued())
	must.Len(t, 1, r.raft.written())
}

// A rejected write is planned again with backoff. An applied write resets the backoff.
func TestOutbox_RejectedBacksOff(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.raft.script = []fate{rejected, rejected, rejected}
	var times []time.Duration
	for len(times) < 4 {
		before := len(r.raft.written())
		r.settle()
		if len(r.raft.written()) > before {
			times = append(times, r.now.Sub(fixture.Epoch))
		}
		if r.wakeAt.IsZero() {
			break
		}
		r.now = r.wakeAt
	}
	must.Eq(t, []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond}, times)
	must.Eq(t, attempts{}, r.term.outbox.failures)
	must.Eq(t, 1, len(r.state.now().Evals))
}

// A write of unknown outcome is never sent again. The state is read behind a barrier first.
// If the write was applied, nothing is left to write.
func TestOutbox_UnknownWasApplied(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.raft.script = []fate{vanished}
	r.advance(time.Hour)
	must.Len(t, 1, r.raft.written())
	must.Eq(t, 2, r.raft.barriersQueued())
	must.True(t, r.state.now().Alloc("a00").Marked())
}

// If the write was lost, the marks are planned again from the state behind the barrier, with
// backoff.
func TestOutbox_UnknownWasLost(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.raft.script = []fate{lost, lost, lost}
	r.settle()
	must.Len(t, 1, r.raft.written(), must.Sprint("a lost write was written again without a wait"))
	r.advance(time.Second)
	must.Len(t, 4, r.raft.written())
	must.Eq(t, 4, r.raft.barriersQueued())
	must.True(t, r.state.now().Alloc("a00").Marked())
}

// Nothing is planned before the state is read behind a barrier. A barrier that fails is retried
// with backoff.
func TestOutbox_BarrierRetried(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.settle()
	r.raft.script = []fate{lost}
	r.raft.barriers = []fate{rejected, lost, rejected}
	r.commit(func(w *fixture.Cluster) { w.Place("b", w.AddJob("more", cluster.JobService), "n1") })
	r.settle()
	written := len(r.raft.written())
	r.commit(func(w *fixture.Cluster) { w.Place("c", w.AddJob("most", cluster.JobService), "n1") })
	r.settle()
	must.Len(t, written, r.raft.written(), must.Sprint("planned from a state that may be old"))
	for failures := range 4 { // the write and three barriers
		must.Eq(t, 1+failures, r.raft.barriersQueued())
		r.advance(DefaultRetryBase<<failures - 1)
		must.Eq(t, 1+failures, r.raft.barriersQueued(), must.Sprint("the barrier was retried without a wait"))
		r.advance(1)
	}
	must.Eq(t, 5, r.raft.barriersQueued())
	must.True(t, r.state.now().Alloc("b").Marked())
	must.True(t, r.state.now().Alloc("c").Marked())
}

// A new term reads the state behind a barrier before it plans.
func TestOutbox_NothingBeforeTheBarrier(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.run()
	must.Eq(t, 0, r.state.taken(), must.Sprint("the state was read"))
	must.SliceEmpty(t, r.raft.written())
	r.settle()
	must.Len(t, 1, r.raft.written())
}

// With a minimum interval the next round waits, and takes all items that became due.
func TestOutbox_MinWriteInterval(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), func(c *NodeDrainerConfig) { c.MinWriteInterval = time.Second })
	r.settle()
	must.Len(t, 1, r.raft.written())
	for i := range 5 {
		r.now = r.now.Add(time.Millisecond)
		r.commit(func(w *fixture.Cluster) {
			id := fmt.Sprintf("late%d", i)
			w.Place(cluster.AllocID(id), w.AddJob(cluster.JobID(id), cluster.JobService), "n1")
		})
		r.settle()
	}
	must.Len(t, 1, r.raft.written())
	must.Eq(t, fixture.Epoch.Add(time.Second), r.wakeAt)
	r.advance(time.Second)
	must.Len(t, 2, r.raft.written())
	must.Len(t, 5, r.raft.written()[1].marked())
}

// Entries carry the time and the policy of the plan.
func TestOutbox_EntriesCarryTimeAndPolicy(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.StartDrain("n2", 0)
	policy := rules.Policy{HealthGrace: 3 * time.Second, StopMargin: 4 * time.Second, BelowBudget: rules.BelowBudgetProceed, PluginsAfterDeadline: rules.PluginsAfterStop, Completion: rules.CompletionReplaced}
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Policy = policy })
	r.settle()
	must.Len(t, 2, r.raft.written())
	must.Eq(t, &rules.Completions{At: fixture.Epoch, Policy: policy, Completions: []rules.Completion{{Node: "n2", Drain: "d-n2", Revision: 7}}}, r.raft.written()[0].completions)
	marks := r.raft.written()[1].marks
	must.Eq(t, fixture.Epoch, marks.At)
	must.Eq(t, policy, marks.Policy)
}

// A mark was planned with its group, and then the deadline passes. It is written once, with the
// class of the deadline.
func TestOutbox_DeadlineGoesBeforePace(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.StartDrain("n1", 20*time.Millisecond)
	r := newHarness(t, w, nil)
	r.raft.script = []fate{rejected}
	r.advance(DefaultRetryBase)
	must.Len(t, 2, r.raft.written())
	marks := r.raft.written()[1].marks.Marks
	must.Len(t, 1, marks)
	must.Eq(t, cluster.MarkDeadline, marks[0].Class)
}

// A deadline mark uses the room of a mark that failed and is planned again. If that mark were
// written too, it would be refused.
func TestOutbox_DeadlineTakesRoomOfWaitingMark(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 2)
	w.StartDrain("n2", 0)
	r := newHarness(t, w, nil)
	r.raft.script = []fate{rejected}
	r.settle()
	must.Eq(t, []cluster.AllocID{"a2"}, r.raft.written()[0].marked())
	r.commit(func(w *fixture.Cluster) { w.StartDrain("n1", DefaultRetryBase/2) })
	r.advance(DefaultRetryBase)
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"a1"}, r.raft.written()[1].marked())
}

// The wait for a stage ends after the deadline. The storage plugin that then leaves uses the room
// of another plugin of its group, whose mark failed and is planned again.
func TestOutbox_EndOfAWaitTakesRoomOfWaitingMark(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 2)
	stops := w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1")
	wait := stops.StopTime() + rules.DefaultStopMargin
	r := pluginsBehindForce(t, w, wait)
	r.advance(wait)
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"a1"}, r.raft.written()[1].marked())
}

// pluginsBehindForce drains both nodes of the cluster, whose group is storage plugins. n1 is forced
// and its batch work is stopping. The mark of a2 on n2 was rejected and waits for its retry.
func pluginsBehindForce(t *testing.T, w *fixture.Cluster, retry time.Duration) *harness {
	t.Helper()
	w.TaskGroup().Tasks[0].StoragePlugin = true
	w.StartDrain("n1", -1)
	w.StartDrain("n2", 0)
	for _, a := range w.Allocs {
		if a.JobType() == cluster.JobBatch {
			a.DesiredStatus = cluster.DesiredStop
			a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: fixture.DrainID("n1"), Class: cluster.MarkForced, MarkedAt: fixture.Epoch}
		}
	}
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Retry.Base, c.Retry.Max = retry, retry })
	r.raft.script = []fate{rejected}
	r.settle()
	must.Eq(t, []cluster.AllocID{"a2"}, r.raft.written()[0].marked())
	return r
}

// A mark in flight keeps its room when a forced drain uses some. A more urgent allocation waits
// instead, and its reason shows it.
func TestOutbox_InFlightKeepsItsRoom(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(3, 3)
	w.TaskGroup().Migrate.MaxParallel = 2
	w.StartDrain("n1", 0)
	r := newHarness(t, w, nil)
	r.raft.answer() // the barrier
	r.run()
	must.Eq(t, []cluster.AllocID{"a1"}, r.raft.written()[0].marked())
	explain := func() rules.AllocExplanation {
		r.run()
		report, _ := r.term.Explain("n2", r.now)
		return report.Allocs[0]
	}
	r.commit(func(w *fixture.Cluster) { w.StartDrain("n2", time.Hour) })
	must.Eq(t, rules.ReasonWritePending, explain().Reason)
	r.commit(func(w *fixture.Cluster) { w.StartDrain("n3", -1) })
	must.Eq(t, rules.ReasonWaitingForRoom, explain().Reason)
	must.Eq(t, []cluster.AllocID{"a1", "a3"}, explain().Outstanding)
	r.settle()
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"a3"}, r.raft.written()[1].marked())
}

// A job whose evaluations always fail is evaluated again after growing waits, in separate writes.
func TestOutbox_Reevaluations(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.settle()
	var at []time.Duration
	for range 5 {
		r.commit(func(w *fixture.Cluster) {
			for _, e := range w.Evals {
				e.Status = cluster.EvalFailed
			}
		})
		written := len(r.raft.written())
		r.settle()
		if len(r.raft.written()) == written {
			r.now = r.wakeAt
			r.settle()
		}
		last := r.raft.written()[len(r.raft.written())-1].marks
		must.Eq(t, 1, len(last.Reevaluate))
		must.SliceEmpty(t, last.Marks)
		at = append(at, last.At.Sub(fixture.Epoch))
	}
	const ms = time.Millisecond
	must.Eq(t, []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms}, at)
}

// Items that are always refused are written again after growing waits: a mark of a group, a mark of
// a node, a completion.
func TestOutbox_RefusedBacksOff(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*fixture.Cluster){
		"a group's mark": func(w *fixture.Cluster) {},
		"a node's mark":  func(w *fixture.Cluster) { w.StartDrain("n1", -1) },
		"a completion":   func(w *fixture.Cluster) { w.Allocs = nil },
		"a completion while others stop": func(w *fixture.Cluster) {
			w.StartDrain("n1", -1)
			w.Alloc("a00").DesiredStatus, w.Alloc("a00").StoppedAt = cluster.DesiredStop, fixture.Epoch.Add(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := jobsOnOneNode(1)
			edit(w)
			r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = rules.CompletionMarked })
			r.raft.always = refused
			r.advance(time.Minute)
			// 50 ms, 100 ms, ... 12.8 s, then every 15 s.
			must.Between(t, 10, len(r.raft.written()), 12)
			r.raft.always = applied
			r.advance(DefaultRetryMax)
			w = r.state.now()
			must.True(t, len(r.state.draining()) == 0 || w.Alloc("a00").Marked())
		})
	}
}

// Consecutive refusals are counted. A success in between resets the count.
func TestOutbox_RefusalsAreCountedInARow(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.StartDrain("n1", -1)
	r := newHarness(t, w, nil)
	for i := range 4 {
		r.raft.script = []fate{refused}
		r.settle()
		must.Eq(t, r.now.Add(DefaultRetryBase), r.wakeAt, must.Sprintf("refusal %d", i+1))
		r.advance(DefaultRetryBase)
		must.True(t, r.state.now().Alloc("a00").Marked())
		r.advance(time.Second)
		r.commit(func(w *fixture.Cluster) { // the mark is removed
			w.Alloc("a00").DesiredTransition = cluster.DesiredTransition{}
		})
	}
}

// One mark of many is refused. The others of the node are written without delay.
func TestOutbox_RefusedMarkDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(6)
	w.StartDrain("n1", -1)
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.MaxIDsPerEntry, c.MaxInFlight = 2, 1 })
	r.raft.script = []fate{refused}
	r.settle()
	must.Eq(t, fixture.Epoch, r.now)
	must.Len(t, 6, r.raft.written())
	r.advance(DefaultRetryBase)
	must.Len(t, 7, r.raft.written())
	for _, a := range r.state.now().Allocs {
		must.True(t, a.Marked(), must.Sprintf("%s", a.ID))
	}
}

// An allocation ends while its forced mark is in flight, and another never stops. The retry of the
// refused mark does not replace the wait for the other, and the drain ends after this wait.
func TestOutbox_RefusalKeepsTheWaitForOthers(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(2)
	w.StartDrain("n1", -1)
	r := newHarness(t, w, nil)
	r.run()
	r.raft.answer()
	r.run()
	must.Len(t, 1, r.raft.written())
	r.commit(func(w *fixture.Cluster) { w.Alloc("a00").ClientStatus = cluster.ClientFailed })
	r.advance(20*time.Second + rules.DefaultStopMargin)
	must.SliceEmpty(t, r.state.draining())
}

// Under CompletionMarked a completion is refused while marked allocations still stop. It is
// written again.
func TestOutbox_RefusedCompletionIsRetriedWhileOthersStop(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.StartDrain("n1", -1)
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = rules.CompletionMarked })
	r.raft.script = []fate{applied, refused}
	r.advance(time.Second)
	must.SliceEmpty(t, r.state.draining())
}

// Several failed writes of a round count as one failure. One applied write does not make the round
// succeed.
func TestOutbox_OneFailureARound(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(4), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = 2 })
	r.raft.script = []fate{rejected, lost, rejected, rejected}
	r.settle()
	must.Eq(t, fixture.Epoch.Add(DefaultRetryBase), r.wakeAt)
	r.raft.script = []fate{applied, applied, rejected, applied}
	r.now = r.wakeAt
	r.settle()
	must.Eq(t, r.now.Add(2*DefaultRetryBase), r.wakeAt)
	r.advance(2 * DefaultRetryBase)
	must.Len(t, 9, r.raft.written())
	for _, a := range r.state.now().Allocs {
		must.True(t, a.Marked(), must.Sprintf("%s", a.ID))
	}
}

// An item that was answered as applied and is still needed is logged as an error. It is written
// again with backoff: a mark of a group, a mark of a node, a completion.
func TestOutbox_AppliedAndNotShown(t *testing.T) {
	t.Parallel()
	const lost = "a write was answered as applied, but the state does not show it"
	for name, edit := range map[string]func(*fixture.Cluster){
		"a group's mark": func(w *fixture.Cluster) {},
		"a node's mark":  func(w *fixture.Cluster) { w.StartDrain("n1", -1) },
		"a completion":   func(w *fixture.Cluster) { w.Allocs = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := jobsOnOneNode(1)
			edit(w)
			r := newHarness(t, w, nil)
			r.raft.script = []fate{hidden, hidden}
			r.settle()
			must.Eq(t, fixture.Epoch.Add(DefaultRetryBase), r.wakeAt)
			r.advance(DefaultRetryBase)
			must.Eq(t, r.now.Add(2*DefaultRetryBase), r.wakeAt)
			r.advance(2 * DefaultRetryBase)
			must.Len(t, 3, r.raft.written())
			must.Eq(t, []string{lost, lost}, r.errors.messages)
		})
	}
}

// An applier must not answer a write twice, or one that it did not queue. Such an answer is
// logged and changes nothing.
func TestOutbox_UnexpectedAnswers(t *testing.T) {
	t.Parallel()
	const logged = "the applier answered a write twice, or one that it did not queue: the answer is ignored"
	for name, test := range map[string]struct {
		script, barriers []fate
	}{
		"a mark twice":              {script: []fate{twice}},
		"a rejected mark twice":     {script: []fate{rejected, twice}},
		"a mark that found no room": {script: []fate{fullAndAnswered}},
		"a barrier twice":           {barriers: []fate{twice}},
		"a barrier without room":    {barriers: []fate{fullAndAnswered}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, jobsOnOneNode(2), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = 2 })
			r.raft.waiting = nil // writes of the first term, which ends here
			r.raft.script, r.raft.barriers = test.script, test.barriers
			r.restart()
			r.advance(time.Minute)
			must.Eq(t, []string{logged}, r.errors.messages)
			must.Eq(t, 0, r.term.outbox.round.inFlight)
			for _, a := range r.state.now().Allocs {
				must.True(t, a.Marked(), must.Sprintf("%s", a.ID))
			}
		})
	}
}

// A write without an answer, a barrier without an answer, and an applier that never has room are
// logged once after StalledAfter, and reported until they end.
func TestOutbox_Stalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stall, mend func(*harness)
		want        string
	}{
		"a write": {
			func(r *harness) { r.raft.answer(); r.run() }, func(r *harness) {},
			"1 of the newest writes have had no answer since 2030-01-01T00:00:00Z",
		},
		"a barrier": {
			func(r *harness) {}, func(r *harness) {}, "1 of the newest writes have had no answer since 2030-01-01T00:00:00Z",
		},
		"no room": {
			func(r *harness) { r.raft.always = full }, func(r *harness) { r.raft.always = applied },
			"the applier has had no room for a write since 2030-01-01T00:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, jobsOnOneNode(1), nil)
			test.stall(r)
			// pass lets time pass without answers. A full queue has none.
			pass := func(until time.Time) {
				for r.now.Before(until) {
					if r.raft.always == full {
						r.settle()
					} else {
						r.run()
					}
					r.now = until
					if r.wakeAt.Before(until) && !r.wakeAt.IsZero() {
						r.now = r.wakeAt
					}
				}
				r.run()
			}
			stalled := func() string {
				report, _ := r.term.Explain("n1", r.now)
				must.Eq(t, report.Status, r.term.Status(r.now)[0])
				must.Eq(t, report.Stalled != "", strings.HasSuffix(report.Allocs[0].Detail, "; "+report.Stalled))
				return report.Stalled
			}
			pass(fixture.Epoch.Add(StalledAfter - 1))
			must.Eq(t, "", stalled())
			must.SliceEmpty(t, r.errors.messages)
			pass(fixture.Epoch.Add(StalledAfter))
			must.Eq(t, test.want, stalled())
			pass(fixture.Epoch.Add(10 * StalledAfter))
			must.Eq(t, test.want, stalled())
			must.Eq(t, []string{"the drainer cannot write"}, r.errors.messages)

			test.mend(r)
			r.settle()
			r.advance(time.Minute)
			must.True(t, r.state.now().Alloc("a00").Marked())
			must.Eq(t, "", stalled())
			must.Len(t, 1, r.errors.messages)
		})
	}
}

// An index that the state does not reach stops the drainer: an embedder's barrier or write answers
// raft's applied index, which counts entries that no state machine gets. After ten seconds the
// drainer logs it once, with both indexes and the remedy, and reports it until it ends. Until then
// the bound of the drain moved with the time, and no message was written for 30 seconds.
func TestOutbox_IndexThatTheStateDoesNotReach(t *testing.T) {
	t.Parallel()
	const (
		remedy = "the applier must answer with the index of the write's own entry, and a barrier with the index of the state, not with the log's applied index"
		want   = "the applier has answered a write with index 14, and since 2030-01-01T00:00:00Z the state has not reached it: it has index "
	)
	for name, test := range map[string]struct {
		edit  func(*harness)
		index string
	}{
		"a barrier": {func(r *harness) { r.raft.ahead = 4 }, "10"},
		"a write":   {func(r *harness) { r.run(); r.raft.answer(); r.raft.ahead = 3 }, "11"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := jobsOnOneNode(2)
			w.StartDrain("n1", time.Second)
			written := &journal{}
			r := newHarness(t, w, func(c *NodeDrainerConfig) {
				c.Logger, c.MaxIDsPerEntry, c.MaxInFlight = slog.New(written), 2, 1
			})
			test.edit(r)
			report := func() rules.Report {
				report, _ := r.term.Explain("n1", r.now)
				must.Eq(t, report.Status, r.term.Status(r.now)[0])
				return report
			}
			r.settle()
			bound := report().EndsBy
			r.advance(unreachedAfter - 1)
			must.Eq(t, "", report().Stalled)
			must.SliceEmpty(t, written.with(remedy))
			for range 3 {
				r.advance(time.Minute)
				got := report()
				must.Eq(t, want+test.index, got.Stalled)
				must.StrHasSuffix(t, "; "+got.Stalled, got.Allocs[len(got.Allocs)-1].Detail)
				must.Eq(t, bound, got.EndsBy, must.Sprint("it is a bound that moves"))
				must.Eq(t, []string{"WARN the drainer waits for the index of an answer, which the state does not reach: ... answered=14 state=" + test.index + " since=2030-01-01 00:00:00 +0000 UTC"},
					written.with(remedy))
			}
			for range 4 { // entries of other proposers
				r.commit(func(*fixture.Cluster) {})
			}
			r.raft.ahead = 0
			r.settle()
			r.advance(time.Minute)
			must.True(t, r.state.now().Alloc("a00").Marked() && r.state.now().Alloc("a01").Marked())
			must.SliceLen(t, 1, written.with(remedy))
			must.SliceEmpty(t, r.term.Status(r.now))
		})
	}
}

// A write that found no room and is no longer needed is not a stall.
func TestOutbox_DroppedMarkIsNotAStall(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(2)
	w.Alloc("a01").NodeID = "n2"
	w.StartDrain("n2", 0)
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = 2 })
	r.raft.script = []fate{applied, full}
	r.raft.answer()
	r.run()
	r.commit(func(w *fixture.Cluster) { w.Node("n2").Drain = nil })
	r.advance(2 * StalledAfter)
	r.step()
	must.Eq(t, "", r.term.Status(r.now)[0].Stalled)
	must.SliceEmpty(t, r.errors.messages)
}

// Requested items for which a round has no room are rejected immediately.
func TestOutbox_WriteWithoutRoomIsRejected(t *testing.T) {
	t.Parallel()
	var o outbox
	raft := &fakeRaft{script: []fate{applied, full}}
	o.config = NodeDrainerConfig{Raft: raft, NewEvalID: func() cluster.EvalID { return "e" }, MaxIDsPerEntry: 2}.withDefaults()
	o.wake = func() {}
	mark := func(id cluster.AllocID, class cluster.MarkClass) rules.Mark {
		return rules.Mark{Alloc: id, Group: cluster.GroupKey{Job: cluster.JobKey{ID: cluster.JobID(id)}}, Class: class}
	}
	paced := []rules.Mark{mark("a", cluster.MarkPaced), mark("b", cluster.MarkPaced), mark("c", cluster.MarkForced), mark("d", cluster.MarkPaced)}
	groups := []cluster.GroupKey{fixture.Group}
	var replies []DrainReply
	again := o.begin(writes{marks: paced, reevaluate: groups}, Reading{Now: fixture.Epoch, View: &fixture.World{}}, func(r DrainReply) { replies = append(replies, r) })
	must.True(t, again.IsZero(), must.Sprint("one write is in flight, and its answer is a wake-up"))
	none := Answer{Outcome: raftwrite.Rejected, Err: errNoRoom}
	must.Eq(t, []DrainReply{
		{Answer: none, At: fixture.Epoch, Marks: paced[1:2]},
		{Answer: none, At: fixture.Epoch, Marks: paced[3:]},
		{Answer: none, At: fixture.Epoch, Reevaluated: groups},
	}, replies, must.Cmp())
	must.Len(t, 1, raft.written())
}

// The Since of a mark is its first plan, also after failed writes. It is set again for another
// drain, and after a time in which the mark was not needed.
func TestOutbox_DatesMarks(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	r.raft.always = rejected
	since := func() time.Duration {
		report, _ := r.term.Explain("n1", r.now)
		must.Eq(t, rules.ReasonWritePending, report.Allocs[0].Reason)
		must.True(t, report.Allocs[0].Since.Observed)
		return report.Allocs[0].Since.At.Sub(fixture.Epoch)
	}
	r.settle()
	r.advance(time.Minute)
	must.Eq(t, 0, since())
	r.commit(func(w *fixture.Cluster) { w.TaskGroup().Migrate = &cluster.MigrateStrategy{} }) // no paced moves
	r.advance(time.Minute)
	r.commit(func(w *fixture.Cluster) { w.TaskGroup().Migrate = nil })
	r.advance(time.Minute)
	must.Eq(t, 2*time.Minute, since())
	r.commit(func(w *fixture.Cluster) {
		d := w.StartDrain("n1", 0)
		d.ID, d.Revision, d.UpdatedAt, d.Strategy.StartedAt = "another", 9, r.now, r.now
	})
	r.advance(time.Minute)
	must.Between(t, 3*time.Minute, since(), 3*time.Minute+DefaultRetryMax) // the next round plans it
}
