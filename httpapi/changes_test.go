package httpapi_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// purge deletes a job with all of its rows, as a purge of a cluster version below that of confirmation.
func purge(w *fixture, id cluster.JobID) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	x := begin(w)
	err := x.DeleteJob(cluster.JobKey{Namespace: "default", ID: id}, true)
	x.Commit()
	must.NoError(w, err)
}

// begin begins a transaction without a message, as the next entry.
func begin(w *fixture) *statestore.Txn {
	w.Index++
	x := w.FSM.Store().Begin(w.Index)
	w.written++
	statestore.Extend(x, []byte(fmt.Sprint("direct write ", w.written)))
	return x
}

// changesPath is for the changes of the first node.
const changesPath = "/v1/node/a0000001-aaaa-bbbb-cccc-000000000000/allocations?changes="

// idsOf are the ids of an answer's allocations.
func idsOf(c wire.AllocChanges) []string {
	ids := []string{}
	for _, a := range c.Allocs {
		ids = append(ids, a.ID)
	}
	return ids
}

// A node's client receives what the servers change, each change once, and sleeps through its own
// reports and the work of other nodes.
func TestChanges(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(2)
		web := w.job("web", cluster.JobService, 9)
		w.place(1, w.job("one", cluster.JobService, 1), nodeID(1))
		w.place(2, w.job("over", cluster.JobService, 1), nodeID(1))
		w.report(2, cluster.ClientComplete)
		w.place(3, web, nodeID(2))

		first := decode[wire.AllocChanges](t, w.reads(h, changesPath).answer)
		must.True(t, first.Complete)
		must.Eq(t, "c1", first.ClusterID)
		must.Eq(t, w.Index, first.Index)
		must.Eq(t, []string{uuid('b', 1)}, idsOf(first), must.Sprint("what has ended is no concern of the client"))
		must.Eq(t, "one", *first.Allocs[0].Job.ID)

		r := w.reads(h, at(changesPath+"c1", first.Index))
		w.report(1, cluster.ClientRunning)
		w.place(4, web, nodeID(2))
		must.True(t, r.waits())
		w.drain(nodeID(1), cluster.DrainSpec{})
		must.True(t, r.waits())
		index := w.mark(1, cluster.MarkPaced)
		must.False(t, r.waits())
		must.Eq(t, index, r.answer.index(t))
		marked := decode[wire.AllocChanges](t, r.answer)
		must.False(t, marked.Complete)
		must.Nil(t, marked.Live)
		must.Eq(t, []string{uuid('b', 1)}, idsOf(marked))
		must.True(t, *marked.Allocs[0].DesiredTransition.Migrate)

		r = w.reads(h, at(changesPath+"c1", index)+"&wait=10s")
		w.report(1, cluster.ClientComplete)
		w.end(nodeID(1))
		purge(w, "over")
		must.True(t, r.waits(), must.Sprint("the client has ended all that was purged"))
		w.drain(nodeID(2), cluster.DrainSpec{}) // no row of the first node
		<-r.answered
		late := decode[wire.AllocChanges](t, r.answer)
		must.SliceEmpty(t, late.Allocs)
		must.False(t, late.Complete)
		must.Less(t, late.Index, index, must.Sprint("the next question is about less"))
	})
}

// stop1 applies a plan with one stop.
func (w *fixture) stop1(s cluster.PlanStop) { w.plan([]cluster.PlanStop{s}) }

// plan writes a plan of the job as it is. The scheduler's check at apply would refuse stops without a
// cause.
func (w *fixture) plan(stops []cluster.PlanStop, places ...*cluster.Allocation) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	x := begin(w)
	dropped, err := x.ApplyPlan(&cluster.Plan{At: w.Now(), Stops: stops, Places: places})
	x.Commit()
	must.NoError(w, err)
	must.SliceEmpty(w, dropped)
}

// A purge takes allocations away that have no index any more: the client gets the ids of those that
// are left, also of those whose data it keeps. A client that was away gets them, too. A collection of what
// the client has ended changes nothing for it. Bug: the client deleted data that a replacement waited for.
func TestChanges_removals(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(2)
		web, old := w.job("web", cluster.JobService, 9), w.job("old", cluster.JobService, 9)
		w.place(1, web, nodeID(1))
		w.place(2, old, nodeID(1))
		w.place(3, old, nodeID(2))
		w.place(4, web, nodeID(1))
		keepsData(w, 4)
		index := w.Index

		r, away := w.reads(h, at(changesPath+"c1", index)), w.reads(h, at("/v1/node/"+uuid('a', 2)+"/allocations?changes=c1", index))
		must.True(t, r.waits())
		must.True(t, away.waits())
		purge(w, "old")
		must.False(t, r.waits())
		left := decode[wire.AllocChanges](t, r.answer)
		must.False(t, left.Complete)
		must.SliceEmpty(t, left.Allocs)
		must.Eq(t, []string{uuid('b', 1), uuid('b', 4)}, left.Live)
		must.False(t, away.waits())
		must.StrContains(t, away.answer.body, `"Live":[]`)

		r = w.reads(h, at(changesPath+"c1", index))
		must.False(t, r.waits(), must.Sprint("the purge was between two questions"))
		must.Eq(t, []string{uuid('b', 1), uuid('b', 4)}, decode[wire.AllocChanges](t, r.answer).Live)

		r = w.reads(h, at(changesPath+"c1", w.Index))
		w.stop1(cluster.PlanStop{Alloc: allocID(1), Lost: true, Description: "gone"})
		must.False(t, r.waits())
		must.Eq(t, "lost", decode[wire.AllocChanges](t, r.answer).Allocs[0].ClientStatus)
	})
}

// The answer is complete where a list of changes would be wrong.
func TestChanges_complete(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(1)
		web := w.job("web", cluster.JobService, 9)
		w.place(1, web, nodeID(1))
		saved := w.State()
		w.stop1(cluster.PlanStop{Alloc: allocID(1), Description: "not wanted"})
		index := w.Index
		must.True(t, decode[wire.AllocChanges](t, w.reads(h, at(changesPath+"c2", index)).answer).Complete, must.Sprint("of another cluster"))
		must.True(t, decode[wire.AllocChanges](t, w.reads(h, at(changesPath, index)).answer).Complete, must.Sprint("of an older server"))

		r := w.reads(h, at(changesPath+"c1", index))
		must.True(t, r.waits())
		w.restoreAbove(saved)
		must.False(t, r.waits())
		again := decode[wire.AllocChanges](t, r.answer)
		must.True(t, again.Complete)
		must.Eq(t, "run", again.Allocs[0].DesiredStatus)
		must.Eq(t, w.Index, again.Index)
		must.Greater(t, index, again.Index)
		must.True(t, decode[wire.AllocChanges](t, w.reads(h, at(changesPath+"c1", index)).answer).Complete, must.Sprint("it was away during the restore"))
		r = w.reads(h, at(changesPath+"c1", again.Index))
		must.True(t, r.waits())
		w.stop1(cluster.PlanStop{Alloc: allocID(1), Description: "not wanted"})
		must.False(t, r.waits())
		must.False(t, decode[wire.AllocChanges](t, r.answer).Complete)
	})
}

// Bug: a server started from an older copy of its data. A client with a newer index waited for the lost
// entries, and if the new ones had overtaken its index, it got only changes. So it did not register what the
// servers had lost, and a drain was complete beside it.
func TestChanges_lostStates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// lost and written are the numbers of entries that the servers have lost and written after it.
		lost, written int
		// edit changes the history that the client sends. stale permits the answer of any server.
		edit     func(string) string
		stale    string
		complete bool
	}{
		"nothing":                    {},
		"nothing, and later entries": {written: 3},
		"one":                        {lost: 1, complete: true},
		"one, and overtaken at once": {lost: 1, written: 1, complete: true},
		"few, and overtaken":         {lost: 3, written: 5, complete: true},
		"many":                       {lost: 50, written: 2, complete: true},
		"of an older client":         {lost: 3, edit: func(string) string { return "" }},
		"overtaken, of an older one": {lost: 3, written: 5, edit: func(string) string { return "" }},
		"of a server that is behind": {lost: 3, stale: "&stale"},
		"another history":            {edit: func(h string) string { return h[1:] }, complete: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
				w.nodes(1)
				write := func(n int) {
					for range n {
						begin(w).Commit()
					}
				}
				saved := w.State()
				write(c.lost)
				first := decode[wire.AllocChanges](t, w.reads(h, changesPath).answer)
				if c.lost > 0 {
					w.Restore(saved)
				}
				write(c.written)
				history := first.History
				if c.edit != nil {
					history = c.edit(history)
				}
				r := w.reads(h, at(changesPath+"c1", first.Index)+"&history="+history+"&wait=10s"+c.stale)
				must.EqOp(t, !c.complete, r.waits())
				<-r.answered
				answer := decode[wire.AllocChanges](t, r.answer)
				must.EqOp(t, c.complete, answer.Complete)
				must.EqOp(t, w.State().Index(), answer.Index)

				r = w.reads(h, at(changesPath+"c1", answer.Index)+"&wait=10s&history="+answer.History)
				must.True(t, r.waits(), must.Sprint("the client has the new history"))
				<-r.answered
			})
		})
	}
}

// restoreAbove replaces the state by a saved one, as the restore of an operator does: with an index
// above all that were used.
func (w *fixture) restoreAbove(saved *statestore.Snapshot) {
	w.Helper()
	var b bytes.Buffer
	must.NoError(w, statestore.Persist(&b, saved))
	store := result.Of(statestore.Restore(&b)).OK(w)
	store.Advance(w.Index+1024, 0)
	w.Restore(store.Snapshot())
}

// One change on a node with five hundred allocations is one row, and a small part of the list.
func TestChanges_size(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.full()
		whole := w.reads(h, "/v1/node/"+uuid('a', 1)+"/allocations").answer
		r := w.reads(h, at(changesPath+"c1", w.Index))
		w.stop1(cluster.PlanStop{Alloc: allocID(250), Description: "not wanted"})
		must.False(t, r.waits())
		must.Len(t, 1, decode[wire.AllocChanges](t, r.answer).Allocs)
		must.Less(t, len(whole.body)/400, len(r.answer.body))
		t.Logf("one change: %d bytes; the whole list: %d bytes", len(r.answer.body), len(whole.body))
	})
}

// full fills a node with 500 allocations that run and 1000 that have ended.
func (w *fixture) full() {
	w.Helper()
	w.must(&shims.NodeRegister{At: w.Now(), Node: clustertest.Node(nodeID(1))})
	j := w.job("web", cluster.JobService, 1500)
	var allocs []*cluster.Allocation
	var reports []cluster.AllocReport
	for n := range 1500 {
		a := clustertest.Alloc(j, allocID(n), nodeID(1), w.Now())
		allocs = append(allocs, a)
		status := cluster.ClientRunning
		if n >= 500 {
			status = cluster.ClientComplete
		}
		reports = append(reports, clustertest.Report(a, status, w.Now()))
	}
	w.plan(nil, allocs...)
	w.must(&shims.AllocClientUpdate{Reports: reports})
}

// Two clients of one node agree at all times on what must run and what must stop: one reads the whole
// list each time, the other reads changes. Meanwhile jobs are placed, stopped and purged, ended
// work is collected, servers start again from snapshots and from older copies of their data, and are set
// back to a saved state, and the client reports, starts again, and gets answers that are older than its reports.
//
//race:skip one request after the other
func TestChanges_twin(t *testing.T) {
	t.Parallel()
	var lists, lost, copies, older atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(12) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				w := newTwins(t, seed)
				for range 200 {
					w.steps[w.IntN(len(w.steps))]()
					if w.IntN(3) == 0 {
						w.agree()
					}
				}
				w.agree()
				must.Less(t, w.answers/2, w.complete)
				lists.Add(int64(w.lists))
				copies.Add(int64(w.copies))
				older.Add(int64(w.older))
				lost.Add(int64(w.lost))
			})
		}
	})
	must.Positive(t, lists.Load())
	must.Positive(t, lost.Load())
	must.Positive(t, older.Load())
	must.Greater(t, older.Load(), copies.Load(), must.Sprint("entries overtook the index of the client"))
}

// twins are a cluster and the two clients of its first node.
type twins struct {
	*fixture
	*rand.Rand
	steps   []func()
	api     *client.Client
	changes client.NodeAllocs
	saved   []*statestore.Snapshot
	// placed counts the allocations, answers the answers, complete and lists those that were complete and
	// those with a list of ids. lost counts the lost allocations in complete answers.
	placed, answers, complete, lists, lost int
	// copies counts the starts from older copies, and older the answers that were older than the one before.
	copies, older int
}

func newTwins(t *testing.T, seed uint64) *twins {
	w := &twins{fixture: newFixture(t).nodes(2), Rand: rand.New(rand.NewPCG(seed, 17))}
	var err error
	w.api, err = client.New(client.Config{Address: w.serve(httpapi.Options{}).URL})
	must.NoError(t, err)
	t.Cleanup(w.api.Close)
	w.saved = append(w.saved, w.State())
	w.steps = []func(){
		w.placeOne, w.placeOne, w.placeOne, w.stopOne, w.stopOne, w.loseOne, w.purgeOne, w.report, w.report, w.lateAnswer, w.lateAnswer, w.mark,
		func() { _, _ = w.writer().Collect(t.Context()) },
		func() { w.Restore(w.State()) },
		func() { w.saved = append(w.saved, w.State()) },
		func() {
			if w.IntN(4) == 0 {
				w.Restore(w.saved[w.IntN(len(w.saved))])
				w.copies++
			}
		},
		func() {
			if w.IntN(4) == 0 {
				w.restoreAbove(w.saved[w.IntN(len(w.saved))])
			}
		},
		func() { w.changes = client.NodeAllocs{} },
	}
	return w
}

func (w *twins) anyJob() *cluster.Job {
	id := fmt.Sprint("job", w.IntN(3))
	if j := w.State().Job(cluster.JobKey{Namespace: "default", ID: cluster.JobID(id)}); j != nil {
		return j
	}
	return w.job(id, cluster.JobService, 5)
}

// anyAlloc is an allocation of the first node, or nil.
func (w *twins) anyAlloc() *cluster.Allocation {
	var all []*cluster.Allocation
	for a := range w.State().AllocsByNode(nodeID(1)) {
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil
	}
	return all[w.IntN(len(all))]
}

func (w *twins) placeOne() {
	j := w.anyJob()
	w.placed++
	w.plan(nil, clustertest.Alloc(j, allocID(w.placed), nodeID(1+w.IntN(5)/4), w.Now()))
}

func (w *twins) stopOne() {
	if a := w.anyAlloc(); a != nil {
		w.stop1(cluster.PlanStop{Alloc: a.ID, Description: "not wanted"})
	}
}

func (w *twins) loseOne() {
	if a := w.anyAlloc(); a != nil {
		lost := w.IntN(2) == 0
		w.stop1(cluster.PlanStop{Alloc: a.ID, Lost: lost, Unknown: !lost, Description: cluster.DescLost})
	}
}

func (w *twins) purgeOne() {
	if a := w.anyAlloc(); a != nil {
		purge(w.fixture, a.JobID)
	}
}

// mark marks an allocation for a drain, which is cancelled.
func (w *twins) mark() {
	if a := w.anyAlloc(); a != nil {
		w.drain(nodeID(1), cluster.DrainSpec{Deadline: -1})
		w.Mark(cluster.MarkForced, a.ID)
		w.must(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: nodeID(1), At: w.Now(), MarkEligible: true}})
	}
}

// A removal of other rows does not take away the kept data of an ended allocation. Bug: the ids of an answer with removals
// were without it, and its client deleted data that a replacement could still copy.
func TestChanges_removalsAndKeptData(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(2)
		moving(w, 1, nodeID(1), nodeID(2))
		w.place(3, w.job("old", cluster.JobService, 9), nodeID(2))
		keepsData(w, 1)
		index := w.Index
		purge(w, "old")
		r := w.reads(h, at(changesPath+"c1", index))
		must.False(t, r.waits())
		must.Eq(t, []string{uuid('b', 1)}, decode[wire.AllocChanges](t, r.answer).Live)
	})
}

// report reports some of what the client holds, by its own knowledge.
func (w *twins) report() {
	var reports []cluster.AllocReport
	for _, a := range w.changes.All() {
		if w.IntN(2) == 0 {
			status := []cluster.ClientStatus{cluster.ClientRunning, cluster.ClientRunning, cluster.ClientComplete, cluster.ClientFailed}[w.IntN(4)]
			reports = append(reports, clustertest.Report(a, status, w.Now()))
		}
	}
	answer := result.Of(w.api.NodeSide(nodeID(1)).ReportAllocs(w.Context(), reports)).OK(w)
	w.changes.Reported(reports, answer.Index)
}

func (w *twins) requestChanges() client.Changes {
	changes := result.Of(w.api.NodeSide(nodeID(1)).Changes(w.Context(), w.changes.Since(), time.Millisecond)).OK(w)
	w.answers++
	if changes.Complete {
		w.complete++
		checkComplete(w, changes)
	}
	if changes.Live != nil {
		w.lists++
	}
	return changes
}

// checkComplete checks that a complete answer has the allocations that a client without records needs: those
// that have not ended, and the lost ones whose end only their client can report. Bug: an answer without the
// lost ones, whose ends nothing confirmed.
func checkComplete(w *twins, answer client.Changes) {
	w.Helper()
	found, needed := map[cluster.AllocID]cluster.ClientStatus{}, map[cluster.AllocID]cluster.ClientStatus{}
	for _, a := range answer.Allocs {
		found[a.ID] = a.ClientStatus
	}
	for a := range w.State().AllocsByNode(nodeID(1)) {
		lost := a.ClientStatus == cluster.ClientLost && a.ConfirmedAt.IsZero()
		if lost {
			w.lost++
		}
		if lost || !a.ClientTerminal() {
			needed[a.ID] = a.ClientStatus
		}
	}
	must.Eq(w, needed, found)
}

// lateAnswer takes in an answer that was made before a report.
func (w *twins) lateAnswer() {
	late := w.requestChanges()
	w.report()
	w.merge(late)
}

// merge merges an answer. If the servers have lost a state that the client has, it returns false, and the next
// answer has all allocations.
func (w *twins) merge(c client.Changes) bool {
	_, err := w.changes.Merge(c)
	if errors.Is(err, client.ErrOlder) {
		w.older++
		return false
	}
	must.NoError(w, err)
	return w.changes.Since() != client.Since{}
}

// row is what a client needs of an allocation.
type row struct {
	desired        cluster.DesiredStatus
	status         cluster.ClientStatus
	marked, judged bool
	index          uint64
}

func rowOf(a *cluster.Allocation) row {
	return row{a.DesiredStatus, a.ClientStatus, a.Marked(), a.JudgedHealthy(), a.AllocModifyIndex}
}

func (w *twins) agree() {
	w.Helper()
	if !w.merge(w.requestChanges()) {
		must.True(w, w.merge(w.requestChanges()))
	}
	found := map[cluster.AllocID]row{}
	for _, a := range w.changes.All() {
		found[a.ID] = rowOf(a)
	}
	list := result.Read(w.api.NodeAllocations(w.Context(), string(nodeID(1)), client.Query{})).OK(w)
	want := map[cluster.AllocID]row{}
	for _, one := range list {
		a := result.Of(one.Allocation()).OK(w)
		if !a.ClientTerminal() {
			want[a.ID] = rowOf(a)
		}
	}
	must.Eq(w, want, found)
}
