package drainer

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// jobsOnOneNode is a town whose node n1 runs one allocation of each of so many
// jobs, and drains; n2 and n3 are empty.
func jobsOnOneNode(jobs int) *town {
	w := newTown(3, 0)
	w.jobs = nil
	for i := range jobs {
		w.place(cluster.AllocID(fmt.Sprintf("a%02d", i)), w.job(cluster.JobID(fmt.Sprintf("job%02d", i)), cluster.JobService), "n1")
	}
	w.drain("n1", 0)
	return w
}

// The first write goes out at once. What becomes due while it is in flight is
// gathered, and leaves together in the next.
func TestRounds_GatherWhileInFlight(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	for i := range 3 {
		w.place(cluster.AllocID(fmt.Sprintf("b%d", i)), w.job(cluster.JobID(fmt.Sprintf("more%d", i)), cluster.JobService), "n2")
	}
	r := newRig(t, w, nil)
	r.run()
	must.True(t, r.raft.answer(), must.Sprint("the barrier of the term"))
	r.run()
	must.Len(t, 1, r.raft.written())
	must.Eq(t, []cluster.AllocID{"a00"}, r.raft.written()[0].marked())

	r.commit(func(w *town) { w.drain("n2", 0) })
	r.run()
	r.commit(func(w *town) { w.drain("n3", 0) })
	r.run()
	must.Len(t, 1, r.raft.written(), must.Sprint("a second round began while the first was in flight"))
	must.True(t, r.raft.answer())
	r.run()
	must.Len(t, 3, r.raft.written(), must.Sprint("the empty node, and what is on the other"))
	must.Eq(t, []Completion{{Node: "n3", Drain: "d-n3", Revision: 7}}, r.raft.written()[1].completions.Completions)
	must.Eq(t, []cluster.AllocID{"b0", "b1", "b2"}, r.raft.written()[2].marked())
	must.Eq(t, epoch, r.now, must.Sprint("nothing waited for a timer"))
}

// What lands on a node after its deadline, while a write is in flight, is marked in the
// next round, though nothing changes on the node any more.
func TestRounds_NodesGatherWhileInFlight(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.drain("n1", time.Minute)
	w.place("b0", w.job("more", cluster.JobService), "n2")
	r := newRig(t, w, nil)
	r.advance(time.Minute)
	before := len(r.raft.written())
	r.commit(func(w *town) { w.drain("n2", 0) })
	r.run()
	must.Len(t, before+1, r.raft.written())
	r.commit(func(w *town) { w.place("c0", w.Job(cluster.JobKey{Namespace: "default", ID: "job00"}), "n1") })
	r.run()
	must.Len(t, before+1, r.raft.written(), must.Sprint("a write is in flight"))
	must.True(t, r.raft.answer())
	r.run()
	must.Len(t, before+2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"c0"}, r.raft.written()[before+1].marked())
}

// waitWithWriteInFlight is a forced drain of n1 whose one allocation stops, and a write of
// another drain that is in flight.
func waitWithWriteInFlight(t *testing.T) *rig {
	w := jobsOnOneNode(1)
	w.drain("n1", -1)
	w.place("b0", w.job("more", cluster.JobService), "n2")
	r := newRig(t, w, nil)
	r.settle()
	must.True(t, r.wakeAt.After(r.now), must.Sprint("n1 waits for what stops"))
	r.commit(func(w *town) { w.drain("n2", 0) })
	r.run()
	must.Eq(t, 1, r.raft.inFlight)
	return r
}

// A node is gathered that waits for what stops after its deadline, of which nothing has
// come: it goes on waiting for that, and its drain ends.
func TestRounds_GatheredNodeKeepsItsWait(t *testing.T) {
	t.Parallel()
	r := waitWithWriteInFlight(t)
	r.commit(func(w *town) { w.alloc("a00").ModifyTime = r.now })
	r.run()
	r.settle()
	r.advance(20*time.Second + DefaultStopMargin)
	must.SliceNotContains(t, r.state.now().draining(), "n1")
}

// What a gathered node waited for has come: nobody wakes when it would have been waited
// for no longer.
func TestRounds_GatheredNodeHasNoAlarm(t *testing.T) {
	t.Parallel()
	r := waitWithWriteInFlight(t)
	r.commit(func(w *town) { w.alloc("a00").ClientStatus = cluster.ClientComplete })
	r.run()
	must.True(t, r.wakeAt.IsZero(), must.Sprintf("%v", r.wakeAt))
}

// The consumers of a node are gone while writes are in flight: what its storage plugins
// wish is written in the very next round.
func TestRounds_PluginsTurnComesInFlight(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(3)
	w.node("n1").Drain = nil
	disk := w.job("disk", cluster.JobService)
	disk.TaskGroups[0].Tasks[0].StoragePlugin = true
	w.place("d0", disk, "n2")
	w.place("work", w.job("batch", cluster.JobBatch), "n2")
	w.drain("n2", 0)
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.MaxIDsPerEntry, c.MaxInFlight = 2, 2 })
	r.settle()
	r.commit(func(w *town) { w.drain("n1", 0) })
	r.run()
	must.Eq(t, 2, r.raft.inFlight, must.Sprint("a02 waits behind them"))
	r.commit(func(w *town) { w.alloc("work").ClientStatus = cluster.ClientComplete })
	r.run()
	must.True(t, r.raft.answer())
	must.True(t, r.raft.answer())
	r.run()
	must.Len(t, 4, r.raft.written())
	must.Eq(t, []cluster.AllocID{"d0"}, r.raft.written()[2].marked())
	must.Eq(t, []cluster.AllocID{"a02"}, r.raft.written()[3].marked())
}

// The turn of a storage plugin comes and is taken back while writes are in flight: it does
// not wish to leave any more, and nobody is told that it does.
func TestRounds_PluginsTurnTakenBackInFlight(t *testing.T) {
	t.Parallel()
	r, batch := pluginBehindWork(t)
	for _, edit := range []func(*town){
		func(w *town) { w.alloc("work").ClientStatus = cluster.ClientComplete },
		func(w *town) { w.alloc("d2").ModifyTime = r.now }, // its group is judged
		func(w *town) { w.place("more", batch, "n2") },
	} {
		r.commit(edit)
		r.run()
	}
	mustNotWishForD1(t, r)
}

// So it is where the view in which the turn has come is newer than what was told: the node
// is told of a step later.
func TestRounds_PluginsTurnSeenBeforeTold(t *testing.T) {
	t.Parallel()
	r, batch := pluginBehindWork(t)
	r.commit(func(w *town) { w.alloc("d2").ModifyTime = r.now }) // its group is judged
	r.state.beforeSnapshot = func() {
		r.commit(func(w *town) { w.alloc("work").ClientStatus = cluster.ClientComplete })
	}
	r.run()
	r.commit(func(w *town) { w.place("more", batch, "n2") })
	r.run()
	mustNotWishForD1(t, r)
}

// A turn that is taken back in a view newer than what was told is found by whatever has the
// node planned: the group wishes no more, though the node, told of later, has forgotten it.
func TestRounds_PluginsTurnTakenBackBeforeTold(t *testing.T) {
	t.Parallel()
	r, batch := pluginBehindWork(t)
	r.commit(func(w *town) { w.alloc("work").ClientStatus = cluster.ClientComplete })
	r.commit(func(w *town) { w.alloc("d2").ModifyTime = r.now }) // its group is judged
	r.run()
	must.True(t, r.term.nodes["n2"].pluginsTurn)
	r.state.beforeSnapshot = func() { r.commit(func(w *town) { w.place("more", batch, "n2") }) }
	r.term.dirty["n2"] = true
	r.commit(func(w *town) { w.alloc("b0").ModifyTime = r.now }) // which is on another
	r.run()
	mustNotWishForD1(t, r)
}

// Where each look at the state finds that the turn of another node's plugins has come, what
// else is to be written waits for one of them, not for all.
func TestRounds_TurnsInTurn(t *testing.T) {
	t.Parallel()
	w := newTown(6, 0)
	disk, batch := w.job("disk", cluster.JobService), w.job("batch", cluster.JobBatch)
	disk.TaskGroups[0].Tasks[0].StoragePlugin = true
	for i := range 5 {
		n := cluster.NodeID(fmt.Sprint("n", i+1))
		w.place(cluster.AllocID(fmt.Sprint("d", i)), disk, n)
		w.place(cluster.AllocID(fmt.Sprint("w", i)), batch, n)
		w.drain(n, 0)
	}
	w.place("last", batch, "n6")
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.StateQueriesPerSecond = 1 })
	r.advance(time.Minute)
	must.SliceEmpty(t, r.raft.written())
	r.commit(func(w *town) { w.drain("n6", -1) })
	for i := range 3 {
		r.commit(func(w *town) { w.alloc(cluster.AllocID(fmt.Sprint("w", i))).ClientStatus = cluster.ClientComplete })
		r.run()
		r.now = r.now.Add(time.Second)
	}
	must.SliceNotEmpty(t, r.raft.written())
	must.SliceContains(t, r.raft.written()[0].marked(), "last")
}

// pluginBehindWork are three drains: the marks of n3's three allocations are in flight, that
// of n1's storage plugin d0 waits behind them, and n2's plugin d1 waits for the work of a
// batch job, which is returned too.
func pluginBehindWork(t *testing.T) (*rig, *cluster.Job) {
	t.Helper()
	w := newTown(4, 0)
	service := func(id cluster.JobID) *cluster.Job {
		j := w.job(id, cluster.JobService)
		j.TaskGroups[0].Count = 3
		j.TaskGroups[0].Migrate = &cluster.MigrateStrategy{MaxParallel: 3, HealthyDeadline: time.Minute}
		return j
	}
	before, disk := service("before"), service("disk")
	disk.TaskGroups[0].Tasks[0].StoragePlugin = true
	for i, n := range []cluster.NodeID{"n1", "n2", "n4"} {
		w.place(cluster.AllocID(fmt.Sprint("b", i)), before, "n3")
		w.place(cluster.AllocID(fmt.Sprint("d", i)), disk, n)
	}
	batch := w.job("batch", cluster.JobBatch)
	w.place("work", batch, "n2")
	for _, n := range []cluster.NodeID{"n1", "n2", "n3"} {
		w.drain(n, 0)
	}
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.MaxIDsPerEntry, c.MaxInFlight = 2, 3 })
	r.run()
	must.True(t, r.raft.answer(), must.Sprint("the barrier of the term"))
	r.run()
	must.Eq(t, 3, r.raft.inFlight, must.Sprint("d0 waits behind them"))
	return r, batch
}

// mustNotWishForD1: it waits for its stage, and is not marked.
func mustNotWishForD1(t *testing.T, r *rig) {
	t.Helper()
	report, _ := r.term.Explain("n2", r.now)
	must.Eq(t, ReasonWaitingForStage, report.Allocs[len(report.Allocs)-1].Reason)
	r.settle()
	for _, write := range r.raft.written() {
		must.SliceNotContains(t, write.marked(), "d1")
	}
}

// A node that drains anew has its marks wanted since then, though one of the drain before
// is still in flight.
func TestRounds_RedrainedWhileInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.run()
	must.True(t, r.raft.answer(), must.Sprint("the barrier of the term"))
	r.run()
	r.now = r.now.Add(time.Second)
	r.commit(func(w *town) { w.node("n1").Drain = nil })
	r.run()
	r.now = r.now.Add(time.Second)
	r.commit(func(w *town) {
		d := w.drain("n1", 0)
		d.ID, d.Revision, d.UpdatedAt, d.Strategy.StartedAt = "another", 9, r.now, r.now
	})
	r.run()
	report, _ := r.term.Explain("n1", r.now)
	must.Eq(t, ReasonWritePending, report.Allocs[0].Reason)
	must.Eq(t, Since{At: r.now, Seen: true}, report.Allocs[0].Since)
}

// Entries are cut to their bound, no more are in flight than may be, and all of
// them get there.
func TestRounds_KeepBounds(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(9), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry, c.MaxInFlight = 2, 3 })
	r.settle()
	seen := map[cluster.AllocID]bool{}
	for _, write := range r.raft.written() {
		must.LessEq(t, 2, len(write.marks.Marks)+len(write.marks.Evals))
		for _, id := range write.marked() {
			must.False(t, seen[id], must.Sprintf("%s was marked twice", id))
			seen[id] = true
		}
	}
	must.Eq(t, 9, len(seen))
	must.Eq(t, 3, r.raft.inFlight)
}

// An applier with room for one takes what it can; the rest stays wanted and goes
// as soon as an answer comes.
func TestRounds_PartialRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(5), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = 2 })
	r.raft.room = 1
	r.settle()
	must.Len(t, 5, r.raft.written())
	must.Eq(t, 1, r.raft.inFlight)
	must.Eq(t, epoch, r.now)
}

// With a queue that others have filled nothing can be begun and no answer will
// come: the drainer looks again after a while, and not before.
func TestRounds_FullQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.raft.script = []fate{full, full, full}
	r.settle()
	must.SliceEmpty(t, r.raft.written())
	must.Eq(t, epoch.Add(DefaultRetryBase), r.wakeAt)
	r.advance(DefaultRetryBase * 3)
	must.Len(t, 1, r.raft.written())
}

func TestRounds_FullQueueAtTheBarrier(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.restart()
	r.raft.waiting, r.raft.asked = nil, 0
	r.raft.barriers = []fate{full, full}
	r.restart()
	must.Eq(t, epoch.Add(DefaultRetryBase), r.wakeAt)
	r.advance(DefaultRetryBase)
	must.Eq(t, 0, r.raft.barriersAsked())
	r.advance(DefaultRetryBase * 2)
	must.Eq(t, 1, r.raft.barriersAsked())
	must.Len(t, 1, r.raft.written())
}

// A rejected write is planned again with backoff, and the wait starts over after
// one that was applied.
func TestRounds_RejectedBacksOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.raft.script = []fate{rejected, rejected, rejected}
	var times []time.Duration
	for len(times) < 4 {
		before := len(r.raft.written())
		r.settle()
		if len(r.raft.written()) > before {
			times = append(times, r.now.Sub(epoch))
		}
		if r.wakeAt.IsZero() {
			break
		}
		r.now = r.wakeAt
	}
	must.Eq(t, []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond}, times)
	must.Eq(t, attempts{}, r.term.writer.failed)
	must.Eq(t, 1, len(r.state.now().evals))
}

// A write of unknown outcome is never sent again: the state is read behind a
// barrier first. If it was applied after all, nothing is left to write.
func TestRounds_UnknownWasApplied(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.raft.script = []fate{vanished}
	r.advance(time.Hour)
	must.Len(t, 1, r.raft.written())
	must.Eq(t, 2, r.raft.barriersAsked())
	must.True(t, r.state.now().alloc("a00").Marked())
}

// If it was not, it is planned again from the state behind the barrier, and a log
// that never tells is not asked without a pause.
func TestRounds_UnknownWasLost(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.raft.script = []fate{lost, lost, lost}
	r.settle()
	must.Len(t, 1, r.raft.written(), must.Sprint("a write that keeps being lost is written hot"))
	r.advance(time.Second)
	must.Len(t, 4, r.raft.written())
	must.Eq(t, 4, r.raft.barriersAsked())
	must.True(t, r.state.now().alloc("a00").Marked())
}

// While the state behind an unknown write has not been read nothing is planned,
// whatever changes; a barrier that fails is asked again, with backoff.
func TestRounds_BarrierAskedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.settle()
	r.raft.script = []fate{lost}
	r.raft.barriers = []fate{rejected, lost, rejected}
	r.commit(func(w *town) { w.place("b", w.job("more", cluster.JobService), "n1") })
	r.settle()
	written := len(r.raft.written())
	must.Eq(t, 2, r.raft.barriersAsked())
	r.commit(func(w *town) { w.place("c", w.job("most", cluster.JobService), "n1") })
	r.settle()
	must.Len(t, written, r.raft.written(), must.Sprint("planned from a state that may be old"))
	must.Eq(t, 2, r.raft.barriersAsked(), must.Sprint("asked for without a pause"))
	r.advance(50 * time.Millisecond)
	must.Eq(t, 3, r.raft.barriersAsked())
	r.advance(100 * time.Millisecond)
	must.Eq(t, 4, r.raft.barriersAsked())
	r.advance(200 * time.Millisecond)
	must.Eq(t, 5, r.raft.barriersAsked())
	must.True(t, r.state.now().alloc("b").Marked())
	must.True(t, r.state.now().alloc("c").Marked())
}

// A new term reads its state behind a barrier of its own before it plans.
func TestRounds_NothingBeforeTheBarrier(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.run()
	must.Eq(t, 0, r.state.taken(), must.Sprint("the state was looked at"))
	must.SliceEmpty(t, r.raft.written())
	r.settle()
	must.Len(t, 1, r.raft.written())
}

// With a least time between rounds the next one waits for it, and gathers.
func TestRounds_MinWriteInterval(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), func(c *NodeDrainerConfig) { c.MinWriteInterval = time.Second })
	r.settle()
	must.Len(t, 1, r.raft.written())
	for i := range 5 {
		r.now = r.now.Add(time.Millisecond)
		r.commit(func(w *town) {
			id := fmt.Sprintf("late%d", i)
			w.place(cluster.AllocID(id), w.job(cluster.JobID(id), cluster.JobService), "n1")
		})
		r.settle()
	}
	must.Len(t, 1, r.raft.written())
	must.Eq(t, epoch.Add(time.Second), r.wakeAt)
	r.advance(time.Second)
	must.Len(t, 2, r.raft.written())
	must.Len(t, 5, r.raft.written()[1].marked())
}

// Entries carry the proposer's time and the policy of the plan.
func TestRounds_EntriesCarryWhatTheyWerePlannedBy(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.drain("n2", 0)
	policy := Policy{HealthGrace: 3 * time.Second, StopMargin: 4 * time.Second, BelowBudget: Proceed, PluginsAfterDeadline: AfterStop, Completion: Replaced}
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.Policy = policy })
	r.settle()
	must.Len(t, 2, r.raft.written())
	must.Eq(t, &Completions{At: epoch, Policy: policy, Completions: []Completion{{Node: "n2", Drain: "d-n2", Revision: 7}}}, r.raft.written()[0].completions)
	marks := r.raft.written()[1].marks
	must.Eq(t, epoch, marks.At)
	must.Eq(t, policy, marks.Policy)
}

// What its group wants marked at its pace and its node by its deadline is written
// once, as the node wants it.
func TestRounds_TheNodesWishGoesBeforeTheGroups(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.drain("n1", 20*time.Millisecond)
	r := newRig(t, w, nil)
	r.raft.script = []fate{rejected}
	r.advance(DefaultRetryBase)
	must.Len(t, 2, r.raft.written())
	marks := r.raft.written()[1].marks.Marks
	must.Len(t, 1, marks)
	must.Eq(t, cluster.MarkDeadline, marks[0].Class)
}

// What a deadline takes takes the room of a mark that waits to be written: that one
// would only be refused.
func TestRounds_DeadlineTakesRoomOfWhatWaits(t *testing.T) {
	t.Parallel()
	w := newTown(2, 2)
	w.drain("n2", 0)
	r := newRig(t, w, nil)
	r.raft.script = []fate{rejected}
	r.settle()
	must.Eq(t, []cluster.AllocID{"a2"}, r.raft.written()[0].marked())
	r.commit(func(w *town) { w.drain("n1", DefaultRetryBase/2) })
	r.advance(DefaultRetryBase)
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"a1"}, r.raft.written()[1].marked())
}

// When what a node waits for past its deadline has had its time, a storage plugin leaves
// with it, and takes the room of another of its group that waits to be written: that one
// would only be refused. It was written together with it.
func TestRounds_EndOfAWaitTakesRoomOfWhatWaits(t *testing.T) {
	t.Parallel()
	w := newTown(2, 2)
	stops := w.place("b1", w.job("batch", cluster.JobBatch), "n1")
	wait := stops.StopTime() + DefaultStopMargin
	r := pluginsBehindForce(t, w, wait)
	r.advance(wait)
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"a1"}, r.raft.written()[1].marked())
}

// The same where it is not the time that was stated which brings the plugin's turn: of two
// that were waited for one is overdue, and the other stops before its time.
func TestRounds_EarlyEndOfAWaitTakesRoomOfWhatWaits(t *testing.T) {
	t.Parallel()
	w := newTown(2, 2)
	long := w.job("long", cluster.JobBatch)
	long.TaskGroups[0].Tasks[0].KillTimeout = time.Hour
	hangs := w.place("b1", w.job("batch", cluster.JobBatch), "n1")
	w.place("b2", long, "n1")
	retry := hangs.StopTime() + DefaultStopMargin + time.Second
	r := pluginsBehindForce(t, w, retry)
	r.advance(retry - 1)
	r.commit(func(w *town) { w.alloc("b2").ClientStatus = cluster.ClientComplete })
	r.now = r.now.Add(1)
	r.settle()
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"a1"}, r.raft.written()[1].marked())
}

// pluginsBehindForce drains both nodes of the town, whose group is storage plugins: n1 is
// forced, and its batch work asked to stop, and the mark of a2 on n2 was rejected and is
// written again when the retry is due.
func pluginsBehindForce(t *testing.T, w *town, retry time.Duration) *rig {
	t.Helper()
	w.group().Tasks[0].StoragePlugin = true
	w.drain("n1", -1)
	w.drain("n2", 0)
	for _, a := range w.allocs {
		if a.JobType() == cluster.JobBatch {
			a.DesiredStatus = cluster.DesiredStop
			a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: drainOf("n1"), Class: cluster.MarkForced, MarkedAt: epoch}
		}
	}
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.RetryBase, c.RetryMax = retry, retry })
	r.raft.script = []fate{rejected}
	r.settle()
	must.Eq(t, []cluster.AllocID{"a2"}, r.raft.written()[0].marked())
	return r
}

// What is in flight keeps its room when a forced drain takes some: it is another, though
// more urgent, that waits, and is said to.
func TestRounds_InFlightKeepsItsRoom(t *testing.T) {
	t.Parallel()
	w := newTown(3, 3)
	w.group().Migrate.MaxParallel = 2
	w.drain("n1", 0)
	r := newRig(t, w, nil)
	r.raft.answer() // the barrier
	r.run()
	must.Eq(t, []cluster.AllocID{"a1"}, r.raft.written()[0].marked())
	explain := func() AllocReport {
		r.run()
		report, _ := r.term.Explain("n2", r.now)
		return report.Allocs[0]
	}
	r.commit(func(w *town) { w.drain("n2", time.Hour) })
	must.Eq(t, ReasonWritePending, explain().Reason)
	r.commit(func(w *town) { w.drain("n3", -1) })
	must.Eq(t, ReasonWaitingForRoom, explain().Reason)
	must.Eq(t, []cluster.AllocID{"a1", "a3"}, explain().Outstanding)
	r.settle()
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.AllocID{"a3"}, r.raft.written()[1].marked())
}

// A job whose evaluation fails again and again is evaluated again, less and less
// often, in writes of their own.
func TestRounds_Reevaluations(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.settle()
	var at []time.Duration
	for range 5 {
		r.commit(func(w *town) {
			for _, e := range w.evals {
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
		at = append(at, last.At.Sub(epoch))
	}
	const ms = time.Millisecond
	must.Eq(t, []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms}, at)
}
