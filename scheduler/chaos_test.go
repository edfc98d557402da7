package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	collection "github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// chaos is a cell to which things happen, with a scheduler whose writes meet any
// fate.
type chaos struct {
	*log
	draw  *rapid.T
	s     *scheduler.Scheduler
	nodes []cluster.NodeID
	jobs  []cluster.JobKey
	// placed is how many allocations the state held when it was last read.
	placed map[cluster.AllocID]bool
	// done are the allocations of batch jobs that have completed, also those that were
	// deleted, until the job is stopped.
	done map[cluster.JobKey]map[cluster.AllocID]bool
}

func newChaos(rt *rapid.T) *chaos {
	c := newCell(rt)
	w := &chaos{draw: rt, placed: make(map[cluster.AllocID]bool), done: make(map[cluster.JobKey]map[cluster.AllocID]bool)}
	w.s, w.log = c.leader(w.config)
	for i := range rapid.IntRange(1, 5).Draw(rt, "nodes") {
		w.nodes = append(w.nodes, c.node(fmt.Sprintf("n%d", i), func(n *cluster.Node) {
			n.NodeClass = rapid.SampledFrom([]string{"", "big"}).Draw(rt, "class")
			n.MaxAllocs = rapid.SampledFrom([]int{0, 0, 4}).Draw(rt, "max")
		}))
	}
	for i := range rapid.IntRange(1, 5).Draw(rt, "jobs") {
		kind := rapid.SampledFrom([]cluster.JobType{cluster.JobService, cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch}).Draw(rt, "type")
		w.jobs = append(w.jobs, c.job(fmt.Sprintf("j%d", i), kind, rapid.IntRange(0, 5).Draw(rt, "count"), func(j *cluster.Job) {
			g := j.TaskGroups[0]
			g.Disconnect.LostAfter = rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(rt, "lost after")
			if rapid.IntRange(0, 3).Draw(rt, "classes") == 0 {
				g.NodeClasses = []string{"big"}
			}
		}))
	}
	return w
}

// config makes everything small, so that every bound is met.
func (w *chaos) config(c *scheduler.Config) { c.MaxInFlight, c.MaxPlanParts = 2, 3 }

func (w *chaos) aNode() cluster.NodeID { return rapid.SampledFrom(w.nodes).Draw(w.draw, "node") }
func (w *chaos) aJob() cluster.JobKey  { return rapid.SampledFrom(w.jobs).Draw(w.draw, "job") }

// anAlloc draws one allocation that matches, or nil.
func (w *chaos) anAlloc(match func(*cluster.Allocation) bool) *cluster.Allocation {
	var found []*cluster.Allocation
	for a := range w.view().Allocs() {
		if match(a) {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return rapid.SampledFrom(found).Draw(w.draw, "allocation")
}

// happen is one thing that happens.
func (w *chaos) happen() {
	switch rapid.IntRange(0, 16).Draw(w.draw, "what") {
	case 0:
		w.status(w.aNode(), rapid.SampledFrom([]cluster.NodeStatus{cluster.NodeDown, cluster.NodeDisconnected, cluster.NodeReady, cluster.NodeReady}).Draw(w.draw, "status"))
	case 1:
		if n := w.aNode(); !w.view().Node(n).Draining() {
			w.drain(n)
		}
	case 2:
		w.cancel(w.aNode())
	case 3, 4:
		draining := func(a *cluster.Allocation) bool {
			return !a.Terminal() && !a.Marked() && w.view().Node(a.NodeID).Draining()
		}
		if a := w.anAlloc(draining); a != nil {
			w.mark(rapid.SampledFrom([]cluster.MarkClass{cluster.MarkPaced, cluster.MarkDeadline}).Draw(w.draw, "mark"), a)
		}
	case 5:
		count := rapid.IntRange(0, 5).Draw(w.draw, "count")
		if k := w.aJob(); w.view().Job(k) != nil {
			w.edit(k, func(j *cluster.Job) { j.TaskGroups[0].Count, j.Stop = count, false })
		}
	case 6:
		if k := w.aJob(); rapid.IntRange(0, 3).Draw(w.draw, "stop") == 0 {
			w.stopJob(k, false)
			delete(w.done, k)
		}
	case 7:
		touch := func(a *cluster.Allocation) bool { return !a.ClientTerminal() && w.view().Node(a.NodeID).Ready() }
		if a := w.anAlloc(touch); a != nil {
			w.report(w.statusReport(a, rapid.SampledFrom([]cluster.ClientStatus{cluster.ClientFailed, cluster.ClientComplete}).Draw(w.draw, "end")))
		}
	case 8:
		w.progress()
	case 9:
		w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute}).Draw(w.draw, "time"))
	case 10:
		w.s = w.successor(w.config)
	case 11:
		if len(w.queue) > 0 {
			w.answer(rapid.SampledFrom([]fate{rejected, vanished, silent, late}).Draw(w.draw, "fate"))
		}
	case 12:
		w.collect()
	case 13, 14:
		unrequested := func(a *cluster.Allocation) bool {
			return a.JobType() == cluster.JobService && !a.Terminal() && !a.Marked() && a.DesiredTransition.Surge == "" && a.NextAllocation == "" && w.view().Node(a.NodeID).Draining()
		}
		if a := w.anAlloc(unrequested); a != nil {
			request(w.cell, a)
		}
	default:
		w.s.Step(w.now)
		w.answerAll(fine)
	}
	w.recount()
}

// collect deletes every ended row that nothing needs.
func (w *chaos) collect() {
	w.now = w.now.Add(time.Second)
	for round := collection.Everything(w.now); ; {
		request := round.Next(w.view().WorkView())
		if request == nil {
			return
		}
		if len(request.Jobs) >= len(w.jobs) {
			request.Jobs = nil // the others need one
		}
		w.write(func(txn *statestore.Txn) error {
			deleted, err := collection.Apply(txn.State().WorkView(), txn, request)
			must.Eq(w.t, request.Len(), deleted.Len(), must.Sprint("nothing has changed since the request"))
			return err
		})
		w.jobs = slices.DeleteFunc(w.jobs, func(k cluster.JobKey) bool { return slices.Contains(request.Jobs, k) })
	}
}

// recount counts, without any of the scheduler's own code, what must hold in
// every state: nodes hold no more than they have, and what was placed last did
// not make a group larger than its job needs.
func (w *chaos) recount() {
	view := w.view()
	use, number := make(map[cluster.NodeID]int64), make(map[cluster.NodeID]int)
	run, fresh := make(map[cluster.JobKey]int), make(map[cluster.JobKey]bool)
	for a := range view.Allocs() {
		live := a.ClientStatus == cluster.ClientPending || a.ClientStatus == cluster.ClientRunning || a.ClientStatus == cluster.ClientUnknown
		if live {
			use[a.NodeID] += a.Resources.CPU
			number[a.NodeID]++
		}
		node := view.Node(a.NodeID)
		away := a.ClientStatus == cluster.ClientUnknown && (node.Status == cluster.NodeDisconnected || node.Status == cluster.NodeDown)
		if live && a.DesiredStatus == cluster.DesiredRun && !away && !a.Standby {
			run[a.JobKey()]++
		}
		if a.JobType() == cluster.JobBatch && a.DesiredStatus == cluster.DesiredRun && a.ClientStatus == cluster.ClientComplete && !view.Job(a.JobKey()).Stopped() {
			if w.done[a.JobKey()] == nil {
				w.done[a.JobKey()] = make(map[cluster.AllocID]bool)
			}
			w.done[a.JobKey()][a.ID] = true
		}
		fresh[a.JobKey()] = fresh[a.JobKey()] || !w.placed[a.ID]
		w.placed[a.ID] = true
	}
	for n := range view.Nodes() {
		must.LessEq(w.t, n.Resources.CPU, use[n.ID], must.Sprintf("CPU of node %s", n.ID))
		if n.MaxAllocs > 0 {
			must.LessEq(w.t, n.MaxAllocs, number[n.ID], must.Sprintf("allocations of node %s", n.ID))
		}
	}
	for _, k := range w.jobs {
		j := view.Job(k)
		if fresh[k] && (j.Type == cluster.JobService || j.Type == cluster.JobBatch) {
			must.LessEq(w.t, j.TaskGroups[0].Count, run[k]+len(w.done[k]), must.Sprintf("allocations of job %s", k))
		}
		blocked := 0
		for e := range view.WorkView().OpenEvals(k) {
			lastID := w.lastID
			w.schedule(e) // as with all allocations
			w.lastID = lastID
			if e.Status == cluster.EvalBlocked {
				blocked++
			}
		}
		must.LessEq(w.t, 1, blocked, must.Sprintf("blocked evaluations of job %s", k))
	}
}

// calm ends all trouble: every node is back, every write succeeds, and there is
// room for everything.
func (w *chaos) calm() {
	for _, id := range w.nodes {
		class := w.view().Node(id).NodeClass
		w.cancel(id)
		w.node(string(id), func(n *cluster.Node) { n.NodeClass, n.Resources.CPU, n.Resources.MemoryMB = class, 10_000, 10_000 })
	}
	for i := range 10 {
		w.nodes = append(w.nodes, w.node(fmt.Sprintf("spare-%d", i), func(n *cluster.Node) { n.NodeClass = "big" }))
	}
	for quiet := 0; quiet < 3; quiet++ {
		before := w.index
		w.now = w.now.Add(scheduler.DefaultRetryMax)
		w.lead(w.s)
		w.recount()
		w.progress()
		if w.index != before {
			quiet = 0
		}
	}
}

// settled checks that every job has what it needs, no more and no less.
func (w *chaos) settled() {
	view := w.view()
	for _, k := range w.jobs {
		j := view.Job(k)
		must.SliceEmpty(w.t, collect(w.cell, k), must.Sprintf("open evaluations of job %s", k))
		want := 0
		if !j.Stop {
			want = w.slots(j)
		}
		have := w.wanted(k)
		switch j.Type {
		case cluster.JobService, cluster.JobSystem:
			must.Len(w.t, want, have, must.Sprintf("job %s", k))
		default: // less what is done
			must.LessEq(w.t, want, len(have), must.Sprintf("job %s", k))
			done := w.allocs(k, func(a *cluster.Allocation) bool {
				return a.ClientTerminal() && (a.ClientStatus == cluster.ClientComplete || a.DesiredTransition.MigrateDisablePlacement || j.Type == cluster.JobSysBatch)
			})
			must.GreaterEq(w.t, want, len(have)+len(done), must.Sprintf("job %s with what it has done", k))
		}
		for _, a := range have {
			must.Eq(w.t, cluster.ClientRunning, a.ClientStatus)
		}
	}
}

// slots is how many allocations the job needs.
func (w *chaos) slots(j *cluster.Job) int {
	g := j.TaskGroups[0]
	if j.Type == cluster.JobService || j.Type == cluster.JobBatch {
		return g.Count
	}
	fit := 0
	for n := range w.view().Nodes() {
		if len(g.NodeClasses) == 0 || slices.Contains(g.NodeClasses, n.NodeClass) {
			fit++
		}
	}
	return fit
}

// A cluster to which nothing happens reaches its counts and keeps them.
//
//race:skip one goroutine
func TestWithoutTroubleCountsAreKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newChaos(rt)
		w.calm()
		w.settled()
		index := w.index
		for range 3 {
			w.now = w.now.Add(time.Hour)
			must.Eq(rt, time.Time{}, w.s.Step(w.now))
		}
		must.Eq(rt, index, w.index)
	})
}

// Nodes, jobs, leaders and writes change and fail at random. No state holds more than its jobs
// want, and after the trouble every job gets what it wants.
//
//race:skip one goroutine
func TestAfterTroubleCountsAreReached(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newChaos(rt)
		for range rapid.IntRange(0, 60).Draw(rt, "happenings") {
			w.happen()
		}
		w.calm()
		w.settled()
	})
}

// A plan is accepted whole in the state it was made from, wherever that state
// came from.
//
//race:skip one goroutine
func TestPlanHoldsWhereItWasMade(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newChaos(rt)
		for range rapid.IntRange(0, 60).Draw(rt, "happenings") {
			w.happen()
		}
		for _, k := range w.jobs {
			w.evaluate(k)
			plan := w.pending(k)
			accepted, refused := scheduler.Check(w.view().WorkView(), plan)
			must.SliceEmpty(rt, refused)
			must.Eq(rt, len(plan.Stops), len(accepted.Stops))
			must.Eq(rt, len(plan.Places), len(accepted.Places))
			must.Eq(rt, plan.Eval, accepted.Eval)
			must.Eq(rt, plan.Blocked, accepted.Blocked)
			// In a transaction it is judged the same.
			txn := w.store.Begin(w.index + 1)
			inTxn, _ := scheduler.Check(txn.State().WorkView(), plan)
			txn.Abort()
			must.Eq(rt, accepted, inTxn)
		}
	})
}

// After all that has ended and that nothing needs is deleted, no job runs more than before.
func TestCollectedWorkDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newChaos(rt)
		for range rapid.IntRange(0, 60).Draw(rt, "happenings") {
			w.happen()
		}
		var reports []cluster.AllocReport
		for a := range w.view().Allocs() {
			if a.JobType().ToCompletion() && !a.Terminal() && w.view().Node(a.NodeID).Ready() {
				reports = append(reports, w.statusReport(a, cluster.ClientComplete))
			}
		}
		w.report(reports...)
		w.recount()
		w.collect()
		for _, k := range w.jobs {
			w.evaluate(k)
		}
		w.now = w.now.Add(scheduler.DefaultRetryMax)
		w.lead(w.s)
		w.recount()
	})
}
