package drainer

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

const (
	placedThere = "allocations were placed on a draining node: the scheduler must place nothing there, and the drain waits for them too"
	markedThere = "allocations on a draining node are marked, but not by the drain: it does not count them, and a cancel does not withdraw the marks"
)

// foreignHarness drains n1 under entry 5, and keeps the messages of the drainer.
func foreignHarness(t *testing.T, edit func(*fixture.Cluster)) (*harness, *journal) {
	t.Helper()
	w := fixture.NewCluster(2, 1)
	w.StartDrain("n1", 0).CreateIndex = 5
	w.Alloc("a1").CreateIndex = 3
	if edit != nil {
		edit(w)
	}
	written := &journal{}
	r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Logger = slog.New(written) })
	r.settle()
	return r, written
}

// A scheduler that places replacements on the draining node keeps the drain from ending. Nothing
// named it: every reason was true, and changed with each replacement.
func TestForeign_placedOnADrainingNode(t *testing.T) {
	t.Parallel()
	r, written := foreignHarness(t, nil)
	replacements := 0
	// replace stops what is marked, and places it on the draining node again.
	replace := func() {
		r.commit(func(w *fixture.Cluster) {
			for _, a := range w.Allocs {
				if a.Marked() && !a.Terminal() {
					a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientComplete
					replacements++
					next := w.Place(cluster.AllocID(fmt.Sprintf("b%03d", replacements)), w.Jobs[0], "n1")
					next.CreateIndex = w.LastIndex
				}
			}
			for _, e := range w.Evals {
				e.Status = cluster.EvalComplete
			}
		})
		r.settle()
	}
	for range 100 {
		replace()
		r.advance(100 * time.Millisecond)
	}
	must.Eq(t, 100, replacements)
	must.Eq(t, []string{"WARN ... node=n1 drain=d-n1 count=1 newest=b001 job=default/web group=g"}, written.with(placedThere))
	r.advance(time.Minute)
	for range 3 {
		replace()
	}
	must.Eq(t, "WARN ... node=n1 drain=d-n1 count=101 newest=b101 job=default/web group=g", written.with(placedThere)[1])
	must.SliceLen(t, 2, written.with(placedThere))
	r.advance(time.Minute)
	replace()
	must.SliceLen(t, 2, written.with(placedThere), must.Sprint("the wait grows"))
	r.advance(time.Minute)
	replace()
	must.SliceLen(t, 3, written.with(placedThere))

	report, err := r.term.Explain("n1", r.now)
	must.NoError(t, err)
	must.Eq(t, 105, report.Placed)
	must.Eq(t, cluster.AllocID("b105"), report.NewestPlaced.ID)
	must.Eq(t, fixture.Group, report.NewestPlaced.GroupKey())
	must.StrHasPrefix(t, "placed here after the drain began: a scheduler must place nothing on a draining node; ", report.Allocs[0].Detail)
	must.Eq(t, report.Status, r.term.Status(r.now)[0])
	// A server that does not lead counts those that are there. So does a new leader.
	follower, err := rules.Explain(r.state.now(), rules.TermState{}, "n1", r.now, rules.Policy{})
	must.NoError(t, err)
	must.Eq(t, 1, follower.Placed)
	must.Eq(t, report.NewestPlaced, follower.NewestPlaced)
	r.restart()
	r.settle()
	must.Eq(t, 1, r.term.Status(r.now)[0].Placed)
	must.SliceLen(t, 4, written.with(placedThere))

	r.schedule()
	r.advance(time.Minute)
	must.Eq(t, []string{"INFO ... node=n1 name=node-1 drain=d-n1 placed=1"}, written.with("drain ended"))
}

// Allocations that were there before the drain began are no fault of the scheduler, also if the
// drain is changed, and another drain of the node counts from its own beginning.
func TestForeign_placedBefore(t *testing.T) {
	t.Parallel()
	r, written := foreignHarness(t, func(w *fixture.Cluster) { w.Alloc("a1").CreateIndex = 5 })
	r.commit(func(w *fixture.Cluster) { w.Node("n1").Drain.Revision = 20 })
	r.settle()
	must.SliceEmpty(t, written.with(placedThere))
	r.commit(func(w *fixture.Cluster) { w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1").CreateIndex = 30 })
	r.settle()
	must.Eq(t, 1, r.term.Status(r.now)[0].Placed)
	must.SliceLen(t, 1, written.with(placedThere))
	r.commit(func(w *fixture.Cluster) {
		d := w.StartDrain("n1", 0)
		d.ID, d.Revision, d.CreateIndex = "another", 31, 31
	})
	r.settle()
	must.Eq(t, 0, r.term.Status(r.now)[0].Placed)
	must.Nil(t, r.term.Status(r.now)[0].NewestPlaced)
	r.commit(func(w *fixture.Cluster) { w.Place("b2", w.AddJob("more", cluster.JobBatch), "n1").CreateIndex = 40 })
	r.settle()
	must.Eq(t, "WARN ... node=n1 drain=another count=1 newest=b2 job=default/more group=g", written.with(placedThere)[1])
}

// Allocations that another program has marked without the id of the drain leave, but the drain does
// not count them, and a cancel does not withdraw the marks. Nothing named them.
func TestForeign_markedWithoutADrain(t *testing.T) {
	t.Parallel()
	r, written := foreignHarness(t, func(w *fixture.Cluster) { w.TaskGroup().Migrate.MaxParallel = 0 })
	must.SliceEmpty(t, written.with(markedThere))
	r.commit(func(w *fixture.Cluster) { w.Alloc("a1").DesiredTransition.Migrate = true })
	r.settle()
	r.advance(time.Hour)
	must.Eq(t, []string{"INFO ... node=n1 drain=d-n1 count=1 newest=a1 job=default/web group=g"}, written.with(markedThere))
	report, err := r.term.Explain("n1", r.now)
	must.NoError(t, err)
	must.StrHasPrefix(t, "its mark has no drain, so another program or an operator set it; marked, ", report.Allocs[0].Detail)
}

// The usual case costs nothing: no plan keeps anything.
func TestForeign_nothing(t *testing.T) {
	t.Parallel()
	r, written := foreignHarness(t, nil)
	watcher, is := r.term.nodes.jobs.(*jobWatcher)
	must.True(t, is)
	must.Nil(t, watcher.found)
	must.Nil(t, watcher.groups.get(fixture.Group).foreign)
	must.Nil(t, r.term.nodes.placements())
	must.SliceEmpty(t, written.with(placedThere))
	must.SliceEmpty(t, written.with(markedThere))
}
