package drainer

import (
	"fmt"
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Since when a mark was wanted that nobody wants any more is forgotten: wanted again,
// it is wanted since then. Since when others are wanted is not forgotten.
func TestTerm_ForgetsDates(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(2), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry, c.MaxInFlight = 2, 1 })
	r.run()
	r.raft.answer()
	r.run() // one mark is in flight, one planned
	for i := range 1000 {
		r.term.date([]Mark{{Alloc: cluster.AllocID(fmt.Sprint(i))}}, epoch.Add(time.Hour))
		r.term.withdrawn = true
		r.term.undate()
		must.LessEq(t, 2, len(r.term.wanted))
	}
	report, _ := r.term.Explain("n1", epoch.Add(time.Hour))
	for _, a := range report.Allocs {
		must.Eq(t, ReasonWritePending, a.Reason)
		must.Eq(t, "its mark is planned or in flight", a.Detail)
		must.Eq(t, Since{At: epoch, Seen: true}, a.Since)
	}
}

// What is in flight or planned is why an allocation is still there, with the
// failures of its writes; and what waits behind it says so.
func TestTerm_ExplainsItsWrites(t *testing.T) {
	t.Parallel()
	w := newTown(3, 2)
	batch := w.job("batch", cluster.JobBatch) // so that no drain ends for now
	w.place("b1", batch, "n1")
	w.place("b2", batch, "n2")
	w.drain("n1", 0)
	w.drain("n2", 0)
	r := newRig(t, w, nil)
	r.settle()
	r.restart() // marks of the first term are in the state
	r.settle()
	explain := func(n cluster.NodeID) AllocReport {
		report, draining := r.term.Explain(n, r.now)
		must.True(t, draining)
		return report.Allocs[0]
	}
	must.Eq(t, ReasonWaitingForScheduler, explain("n1").Reason)
	must.Eq(t, ReasonWaitingForRoom, explain("n2").Reason)
	must.Eq(t, []cluster.AllocID{"a1"}, explain("n2").Outstanding)

	// The first is replaced: it is the other's turn, and its write fails.
	r.raft.script = []fate{rejected, lost, rejected}
	r.schedule()
	since := r.now
	r.settle()
	for failures := 1; failures <= 3; failures++ {
		got := explain("n2")
		must.Eq(t, ReasonWritePending, got.Reason)
		must.Eq(t, failures, got.Attempts)
		must.Eq(t, errFake, got.LastError)
		must.Eq(t, Since{At: since, Seen: true}, got.Since)
		r.now = r.wakeAt
		r.settle()
	}
	must.Eq(t, ReasonWaitingForScheduler, explain("n2").Reason)
	_, draining := r.term.Explain("nobody", r.now)
	must.False(t, draining)
}

// Status and Reports have every running drain, by node, and say what Explain says.
func TestTerm_Status(t *testing.T) {
	t.Parallel()
	w := everyKind()
	for i, n := range []cluster.NodeID{"n3", "n1", "n2"} {
		w.drain(n, time.Duration(i)*time.Hour)
	}
	r := newRig(t, w, nil)
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

// Until its barrier is answered a term plans nothing, and says so.
func TestTerm_ExplainsBehindABarrier(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	report, _ := r.term.Explain("n1", r.now)
	must.Eq(t, AllocReport{
		Alloc: "a00", Group: cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: "job00"}, Name: "g"},
		Reason: ReasonWritePending, Since: Since{Seen: true}, Detail: "its mark is to be planned behind a barrier", Healthy: 1, Count: 1, MaxParallel: 1,
	}, report.Allocs[0])
	r.raft.waiting, r.raft.barriers = nil, []fate{lost, rejected}
	r.restart()
	r.settle()
	report, _ = r.term.Explain("n1", r.now)
	must.Eq(t, 1, report.Allocs[0].Attempts)
	must.Eq(t, errFake, report.Allocs[0].LastError)
	must.Eq(t, "its mark is to be planned behind a barrier, of which 1 in a row have failed, the last: no quorum", report.Allocs[0].Detail)
}

// Reasons for which the state holds no time are dated by the term, and a new term
// begins to count anew.
func TestTerm_DatesHolds(t *testing.T) {
	t.Parallel()
	w := newTown(1, 1)
	w.group().Migrate.MaxParallel = 0
	w.drain("n1", 0)
	r := newRig(t, w, nil)
	r.settle()
	r.advance(time.Hour)
	since := func() Since {
		report, _ := r.term.Explain("n1", r.now)
		must.Eq(t, ReasonNoPacedMoves, report.Allocs[0].Reason)
		return report.Allocs[0].Since
	}
	must.Eq(t, Since{At: epoch, Seen: true}, since())
	r.restart()
	must.Eq(t, Since{Seen: true}, since(), must.Sprint("it has not looked yet"))
	r.settle()
	must.Eq(t, Since{At: r.now, Seen: true}, since())
}

// How long the drainer takes to have something written: one wait before it is
// tried again, and the rounds that it takes if there is an interval between them. Looks
// at the state that had to wait for the one before, what fits into the bytes of an entry,
// and the ends of drains were once forgotten.
func TestConfig_WriteTime(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(10)
	w.drain("n2", 0)
	w.place("b", w.job("batch", cluster.JobBatch), "n2")
	config := func(edit func(*NodeDrainerConfig)) NodeDrainerConfig {
		c := NodeDrainerConfig{Raft: &fakeRaft{}}
		edit(&c)
		return c.withDefaults()
	}
	const looks = 2 * 2 * time.Second / DefaultStateQueriesPerSecond // two rounds, with two looks each
	must.Eq(t, DefaultRetryMax+DefaultDeadlineCoalesce+looks, config(func(*NodeDrainerConfig) {}).writeTime(w))
	must.Eq(t, DefaultRetryMax+looks, config(func(c *NodeDrainerConfig) { c.DeadlineCoalesce = -1 }).writeTime(w))
	c := config(func(c *NodeDrainerConfig) {
		c.DeadlineCoalesce, c.MinWriteInterval, c.MaxIDsPerEntry, c.MaxInFlight = -1, time.Minute, 4, 1
	})
	// Eleven marks, each with an evaluation, four ids at a time, and two ends.
	const least, most = DefaultRetryMax + 7*time.Minute, DefaultRetryMax + 9*time.Minute
	must.Between(t, least, c.writeTime(w), most)
	c.MaxIDsPerEntry, c.MaxBytesPerEntry = math.MaxInt, 2*minBytesPerEntry
	must.Between(t, least, c.writeTime(w), most)
	c.MinWriteInterval, c.StateQueriesPerSecond = 0, 1.0/30
	must.Between(t, least, c.writeTime(w), most)
	c.StateQueriesPerSecond, c.RetryMax = 20, time.Second
	must.Eq(t, time.Second+8*100*time.Millisecond, c.writeTime(w), must.Sprint("though two looks may follow each other at once"))
	for _, ids := range []int{math.MaxInt, 1 << (bits.UintSize - 2)} {
		c.MaxIDsPerEntry, c.MaxBytesPerEntry, c.MaxInFlight = ids, math.MaxInt, 4
		must.Eq(t, time.Second+2*100*time.Millisecond, c.writeTime(w))
	}
	c.MinWriteInterval, c.StateQueriesPerSecond, c.RetryMax = math.MaxInt64, 1e-300, math.MaxInt64
	must.Greater(t, 24*365*time.Hour, c.writeTime(w))
}

// A mark that is wanted a second time, after it was withdrawn, is wanted since
// then.
func TestTerm_DatesAMarkAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(1), nil)
	r.settle()
	r.advance(time.Hour)
	r.raft.always = rejected
	r.commit(func(w *town) { w.alloc("a00").DesiredTransition = cluster.DesiredTransition{} })
	r.settle()
	report, _ := r.term.Explain("n1", r.now)
	must.Eq(t, ReasonWritePending, report.Allocs[0].Reason)
	must.Eq(t, Since{At: epoch.Add(time.Hour), Seen: true}, report.Allocs[0].Since)
}
