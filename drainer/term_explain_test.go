package drainer

import (
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// The reason of an allocation whose mark is planned or in flight is the write, with its failures.
// An allocation that waits for room has that reason.
func TestTerm_ExplainsItsWrites(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(3, 2)
	batch := w.AddJob("batch", cluster.JobBatch) // so that no drain ends for now
	w.Place("b1", batch, "n1")
	w.Place("b2", batch, "n2")
	w.StartDrain("n1", 0)
	w.StartDrain("n2", 0)
	r := newHarness(t, w, nil)
	r.settle()
	r.restart() // marks of the first term are in the state
	r.settle()
	explain := func(n cluster.NodeID) rules.AllocExplanation {
		report, err := r.term.Explain(n, r.now)
		must.NoError(t, err)
		return report.Allocs[0]
	}
	must.Eq(t, rules.ReasonWaitingForScheduler, explain("n1").Reason)
	must.Eq(t, rules.ReasonWaitingForRoom, explain("n2").Reason)
	must.Eq(t, []cluster.AllocID{"a1"}, explain("n2").Outstanding)

	// The first is replaced. The other is marked, and its writes fail.
	r.raft.script = []fate{rejected, lost, rejected}
	r.schedule()
	since := r.now
	r.settle()
	for failures := 1; failures <= 3; failures++ {
		got := explain("n2")
		must.Eq(t, rules.ReasonWritePending, got.Reason)
		must.Eq(t, failures, got.Attempts)
		must.Eq(t, errFake, got.LastError)
		must.Eq(t, rules.Since{At: since, Observed: true}, got.Since)
		r.now = r.wakeAt
		r.settle()
	}
	must.Eq(t, rules.ReasonWaitingForScheduler, explain("n2").Reason)
	_, err := r.term.Explain("unknown", r.now)
	must.ErrorIs(t, err, rules.ErrNotDraining)
}

// While the leader cannot write, the reason of an allocation of a second drain, which waits for a
// mark of the same group, names the writes that fail. It named only "1 of the group leaves or arrives".
func TestTerm_ExplainsTheWritesOfAnotherDrain(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(3, 2)
	w.StartDrain("n1", 0)
	w.StartDrain("n2", 0)
	r := newHarness(t, w, nil)
	explain := func() (got rules.AllocExplanation) {
		report, err := r.term.Explain("n2", r.now)
		must.NoError(t, err)
		return report.Allocs[0]
	}
	r.raft.always = rejected
	r.settle()
	r.advance(2 * DefaultRetryBase)
	got := explain()
	must.Eq(t, rules.ReasonWaitingForRoom, got.Reason)
	must.Eq(t, "2 of 2 healthy, max_parallel 1; 1 of the group leaves or arrives, marks not written: 1; the last 2 writes have failed: no quorum", got.Detail)
	must.Eq(t, 2, got.Attempts)
	must.Eq(t, errFake, got.LastError)

	r.raft.always = applied
	r.advance(time.Minute)
	must.Eq(t, "1 of 2 healthy, max_parallel 1; 1 of the group leaves or arrives", explain().Detail)
}

// Status and Reports have every running drain, by node, and agree with Explain.
func TestTerm_Status(t *testing.T) {
	t.Parallel()
	w := everyKind()
	for i, n := range []cluster.NodeID{"n3", "n1", "n2"} {
		w.StartDrain(n, time.Duration(i)*time.Hour)
	}
	r := newHarness(t, w, nil)
	r.settle()
	var ids []cluster.NodeID
	reports := r.term.Reports(r.now)
	for i, s := range r.term.Status(r.now) {
		ids = append(ids, s.Drain.NodeID)
		report, _ := r.term.Explain(s.Drain.NodeID, r.now)
		must.Eq(t, report.Status, s)
		must.Eq(t, report, reports[i])
	}
	must.Len(t, len(ids), reports)
	must.Eq(t, []cluster.NodeID{"n1", "n2", "n3"}, ids)
}

// Until its barrier is applied a term plans nothing, and its reports show it.
func TestTerm_ExplainsBehindABarrier(t *testing.T) {
	t.Parallel()
	r := newHarness(t, jobsOnOneNode(1), nil)
	explain := func() rules.AllocExplanation {
		report, _ := r.term.Explain("n1", r.now)
		return report.Allocs[0]
	}
	want := rules.AllocExplanation{
		Alloc: "a00", Group: cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: "job00"}, Name: "g"},
		Reason: rules.ReasonWritePending, Since: rules.Since{Observed: true}, Detail: "its mark is planned when a barrier is applied", Healthy: 1, Count: 1, MaxParallel: 1,
	}
	must.Eq(t, want, explain())
	r.raft.waiting, r.raft.barriers = nil, []fate{lost, rejected}
	r.restart()
	r.settle()
	want.Attempts, want.LastError = 1, errFake
	want.Detail += "; the last write has failed: no quorum"
	must.Eq(t, want, explain())
}

// For reasons without a time in the state, the term records the time. A new term records it again.
// A reason of a group that changed since its last plan has no time until the next plan.
func TestTerm_DatesHolds(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 1)
	w.TaskGroup().Migrate.MaxParallel = 0
	w.StartDrain("n1", 0)
	r := newHarness(t, w, nil)
	r.settle()
	r.advance(time.Hour)
	since := func() rules.Since {
		report, _ := r.term.Explain("n1", r.now)
		must.Eq(t, rules.ReasonNoPacedMoves, report.Allocs[0].Reason)
		return report.Allocs[0].Since
	}
	must.Eq(t, rules.Since{At: fixture.Epoch, Observed: true}, since())
	for _, edit := range []func(*fixture.Cluster){
		func(w *fixture.Cluster) { w.Alloc("a1").ModifyTime = r.now },
		func(w *fixture.Cluster) { w.Jobs[0].Priority++ },
	} {
		r.commit(edit)
		must.Eq(t, rules.Since{Observed: true}, since(), must.Sprint("the group has changed"))
		r.settle()
		must.Eq(t, rules.Since{At: fixture.Epoch, Observed: true}, since())
	}
	r.state.feed().add(Changes{Nodes: []cluster.NodeID{"n2"}})
	must.Eq(t, rules.Since{Observed: true}, since(), must.Sprint("a drain that was cancelled may have changed the reason"))
	r.settle()
	must.Eq(t, rules.Since{At: fixture.Epoch, Observed: true}, since())
	r.state.feed().add(Changes{All: true})
	must.Eq(t, rules.Since{Observed: true}, since(), must.Sprint("anything may have changed"))
	r.settle()
	must.Eq(t, rules.Since{At: r.now, Observed: true}, since(), must.Sprint("the reason may have ended and begun again"))
	r.advance(time.Hour)
	r.restart()
	must.Eq(t, rules.Since{Observed: true}, since(), must.Sprint("the term has not read the state yet"))
	r.settle()
	must.Eq(t, rules.Since{At: r.now, Observed: true}, since())
}

// The time until a write is applied: one wait before a retry, and the rounds that it takes, with
// their intervals and their reads of the state.
func TestConfig_WriteTime(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(10)
	w.StartDrain("n2", 0)
	w.Place("b", w.AddJob("batch", cluster.JobBatch), "n2")
	config := func(edit func(*NodeDrainerConfig)) NodeDrainerConfig {
		c := NodeDrainerConfig{Raft: &fakeRaft{}}
		edit(&c)
		return c.withDefaults()
	}
	const reads = 2 * 2 * time.Second / DefaultStateQueriesPerSecond // two rounds, with two reads each
	must.Eq(t, DefaultRetryMax+DefaultDeadlineCoalesce+reads, config(func(*NodeDrainerConfig) {}).writeTime(w))
	must.Eq(t, DefaultRetryMax+reads, config(func(c *NodeDrainerConfig) { c.DeadlineCoalesce = -1 }).writeTime(w))
	c := config(func(c *NodeDrainerConfig) {
		c.DeadlineCoalesce, c.MinWriteInterval, c.MaxIDsPerEntry, c.MaxInFlight = -1, time.Minute, 4, 1
	})
	// Eleven marks, each with an evaluation, four ids at a time, and two completions.
	const least, most = DefaultRetryMax + 7*time.Minute, DefaultRetryMax + 9*time.Minute
	must.Between(t, least, c.writeTime(w), most)
	c.MaxIDsPerEntry, c.MaxBytesPerEntry = math.MaxInt, 2*minBytesPerEntry
	must.Between(t, least, c.writeTime(w), most)
	c.MinWriteInterval, c.StateQueriesPerSecond = 0, 1.0/30
	must.Between(t, least, c.writeTime(w), most)
	c.StateQueriesPerSecond, c.Retry.Max = 20, time.Second
	must.Eq(t, time.Second+8*100*time.Millisecond, c.writeTime(w), must.Sprint("although the limiter allows two reads without a wait"))
	for _, ids := range []int{math.MaxInt, 1 << (bits.UintSize - 2)} {
		c.MaxIDsPerEntry, c.MaxBytesPerEntry, c.MaxInFlight = ids, math.MaxInt, 4
		must.Eq(t, time.Second+2*100*time.Millisecond, c.writeTime(w))
	}
	c.MinWriteInterval, c.StateQueriesPerSecond, c.Retry.Max = math.MaxInt64, 1e-300, math.MaxInt64
	must.Greater(t, 24*365*time.Hour, c.writeTime(w))
}
