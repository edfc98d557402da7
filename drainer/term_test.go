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
			must.Eq(t, 0, r.term.alarms.len())
			must.MapEmpty(t, r.term.ready)
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

// The limiter of state queries delays looks and loses nothing.
func TestTerm_LimiterDelays(t *testing.T) {
	t.Parallel()
	const perSecond, changes = 2, 20
	r := newRig(t, jobsOnOneNode(1), func(c *NodeDrainerConfig) { c.StateQueriesPerSecond = perSecond })
	for i := range changes {
		r.commit(func(w *town) {
			id := fmt.Sprintf("late%d", i)
			w.place(cluster.AllocID(id), w.job(cluster.JobID(id), cluster.JobService), "n1")
		})
		r.settle()
	}
	must.Eq(t, perSecond, r.state.taken(), must.Sprint("the burst"))
	must.Eq(t, epoch.Add(time.Second/perSecond), r.wakeAt)
	for second := 1; second <= 10; second++ {
		r.advance(time.Second)
		must.LessEq(t, perSecond+second*perSecond, r.state.taken())
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

// What is remembered of marks that nobody wants any more has a bound; since when
// others are wanted is not forgotten.
func TestTerm_ForgetsDates(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(2), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry, c.MaxInFlight = 2, 1 })
	r.run()
	r.raft.answer()
	r.run() // one mark is in flight, one planned
	for i := range 10 * minDated {
		r.term.date([]Mark{{Alloc: cluster.AllocID(fmt.Sprint(i))}}, epoch.Add(time.Hour))
		must.LessEq(t, minDated+6, len(r.term.wanted))
	}
	report, _ := r.term.Explain("n1", epoch.Add(time.Hour))
	for _, a := range report.Allocs {
		must.Eq(t, ReasonWritePending, a.Reason)
		must.Eq(t, "its mark is planned or in flight", a.Detail)
		must.Eq(t, Since{At: epoch, Seen: true}, a.Since)
	}
}

// Changes that nobody has looked at are bounded: past that, everything may have
// changed. Nothing that was told is lost by it.
func TestChanges_MergeIsBounded(t *testing.T) {
	t.Parallel()
	var c Changes
	must.True(t, c.Empty())
	c.merge(Changes{Abandoned: true})
	for i := range 3 * maxChanges {
		c.merge(Changes{Nodes: []cluster.NodeID{cluster.NodeID(fmt.Sprint(i))}})
		must.LessEq(t, maxChanges+1, len(c.Nodes))
		must.True(t, c.All || len(c.Nodes) == i+1)
	}
	must.True(t, c.All)
	must.True(t, c.Abandoned)
	must.False(t, c.Empty())
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

// Components by hand.
type (
	idle       struct{ looks []Look }
	scriptJobs struct {
		idle
		registered []cluster.GroupKey
		drain      chan *DrainRequest
		migrated   chan []Migration
	}
	scriptDeadlines struct {
		idle
		watched []string
		batch   chan []cluster.NodeID
	}
)

func (c *idle) Step(l Look) time.Time                         { c.looks = append(c.looks, l); return time.Time{} }
func (c *scriptJobs) RegisterJobs(g []cluster.GroupKey)       { c.registered = append(c.registered, g...) }
func (c *scriptJobs) Drain() <-chan *DrainRequest             { return c.drain }
func (c *scriptJobs) Migrated() <-chan []Migration            { return c.migrated }
func (c *scriptDeadlines) NextBatch() <-chan []cluster.NodeID { return c.batch }
func (c *scriptDeadlines) Remove(n cluster.NodeID) {
	c.watched = append(c.watched, "remove "+string(n))
}
func (c *scriptDeadlines) Watch(n cluster.NodeID, at time.Time) {
	c.watched = append(c.watched, fmt.Sprintf("watch %s in %s", n, at.Sub(epoch)))
}

// What is injected is used instead of what is built in, with the term's own
// means; all of them see the same look, in the same order at every step.
func TestTerm_InjectedComponents(t *testing.T) {
	t.Parallel()
	jobs := &scriptJobs{drain: make(chan *DrainRequest, 1), migrated: make(chan []Migration, 1)}
	deadlines := &scriptDeadlines{batch: make(chan []cluster.NodeID, 1)}
	nodes := &idle{}
	var env Env
	var tracker NodeTracker
	w := newTown(2, 1)
	w.drain("n1", time.Hour)
	policy := Policy{StopMargin: time.Second, HealthGrace: time.Minute}
	r := newRig(t, w, func(c *NodeDrainerConfig) {
		c.Policy, c.DeadlineCoalesce, c.RetryBase, c.RetryMax = policy, 1, 2, 3
		c.NodeWatcher = func(e Env, t NodeTracker) DrainingNodeWatcher { env, tracker = e, t; return nodes }
		c.JobWatcher = func(Env) DrainingJobWatcher { return jobs }
		c.DeadlineNotifier = func(Env) DrainDeadlineNotifier { return deadlines }
	})
	must.Eq(t, policy, env.Policy)
	must.Eq(t, []time.Duration{1, 2, 3}, []time.Duration{env.DeadlineCoalesce, env.RetryBase, env.RetryMax})
	must.NotNil(t, env.Logger)
	must.Eq[StateReader](t, r.state, env.State, must.Cmp())
	r.settle()
	must.SliceEmpty(t, r.raft.written(), must.Sprint("nobody has told of the node"))
	must.True(t, nodes.looks[0].Changes.All)

	// The node watcher tells of the node; the jobs on it are registered, its deadline watched.
	tracker.Update(w.node("n1"))
	env.Wake()
	r.settle()
	must.Eq(t, []cluster.GroupKey{web}, jobs.registered)
	must.Eq(t, []string{"watch n1 in 1h0m0s"}, deadlines.watched)

	// The job watcher wishes; the wish is written and answered.
	var replies []DrainReply
	mark := Mark{Alloc: "a1", Group: web, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkPaced}
	jobs.drain <- &DrainRequest{Marks: []Mark{mark}, Reply: func(d DrainReply) { replies = append(replies, d) }}
	env.Wake()
	r.settle()
	must.Eq(t, []DrainReply{{Answer: Answer{Outcome: Applied, Index: 11}, Marks: []Mark{mark}}}, replies)
	must.Len(t, 1, r.raft.written())

	// A wish that is not taken back is not written again.
	env.Wake()
	r.settle()
	must.Len(t, 1, r.raft.written())

	// Nor is an evaluation.
	jobs.drain <- &DrainRequest{Reevaluate: []cluster.GroupKey{web}, Reply: func(d DrainReply) { replies = append(replies, d) }}
	env.Wake()
	r.settle()
	env.Wake()
	r.settle()
	must.Len(t, 2, r.raft.written())
	must.Eq(t, []cluster.GroupKey{web}, replies[1].Reevaluated)

	// A batch is a hint: the deadline has not passed, so it is watched again.
	deadlines.batch <- []cluster.NodeID{"n1", "nobody"}
	env.Wake()
	r.settle()
	must.Eq(t, []string{"watch n1 in 1h0m0s", "watch n1 in 1h0m0s"}, deadlines.watched)
	must.Len(t, 2, r.raft.written())

	// The node stops draining.
	r.commit(func(w *town) { w.node("n1").Drain = nil })
	tracker.Remove("n1")
	r.settle()
	must.Eq(t, "remove n1", deadlines.watched[2])
	for i := range nodes.looks {
		must.Eq(t, nodes.looks[i].View.Index(), jobs.looks[i].View.Index())
		must.Eq(t, nodes.looks[i].Now, deadlines.looks[i].Now)
	}

	select {
	case <-env.Done:
		t.Fatal("the term has not ended")
	default:
	}
	r.term.Close()
	<-env.Done
}

// A component that wants to be stepped at a time is stepped then.
func TestTerm_ComponentsWake(t *testing.T) {
	t.Parallel()
	at := epoch.Add(time.Hour)
	r := newRig(t, newTown(1, 0), func(c *NodeDrainerConfig) {
		c.NodeWatcher = func(Env, NodeTracker) DrainingNodeWatcher { return sleeper{at} }
	})
	r.settle()
	must.Eq(t, at, r.wakeAt)
}

type sleeper struct{ until time.Time }

func (s sleeper) Step(l Look) time.Time {
	if l.Now.Before(s.until) {
		return s.until
	}
	return time.Time{}
}

// A factory that builds nothing is an error, and what the others have built is
// told to end.
func TestTerm_FactoryBuildsNothing(t *testing.T) {
	t.Parallel()
	var done <-chan struct{}
	for name, edit := range map[string]func(*NodeDrainerConfig){
		"node watcher": func(c *NodeDrainerConfig) {
			c.NodeWatcher = func(e Env, _ NodeTracker) DrainingNodeWatcher { done = e.Done; return nil }
		},
		"job watcher": func(c *NodeDrainerConfig) {
			c.JobWatcher = func(e Env) DrainingJobWatcher { done = e.Done; return nil }
		},
		"deadline notifier": func(c *NodeDrainerConfig) {
			c.DeadlineNotifier = func(e Env) DrainDeadlineNotifier { done = e.Done; return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := newMemory(newTown(1, 0))
			c := NodeDrainerConfig{Raft: &fakeRaft{}}
			edit(&c)
			term, err := NewTerm(c, state, nil)
			must.EqError(t, err, "NodeDrainerConfig: a factory built nothing")
			must.Nil(t, term)
			must.True(t, state.feed().closed)
			<-done
		})
	}
	_, err := NewTerm(NodeDrainerConfig{Raft: &fakeRaft{}}, nil, nil)
	must.EqError(t, err, "a term needs a state to read")
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

// Status has every running drain, by node, and says what Explain says.
func TestTerm_Status(t *testing.T) {
	t.Parallel()
	w := everyKind()
	for i, n := range []cluster.NodeID{"n3", "n1", "n2"} {
		w.drain(n, time.Duration(i)*time.Hour)
	}
	r := newRig(t, w, nil)
	r.settle()
	var ids []cluster.NodeID
	for _, s := range r.term.Status(r.now) {
		ids = append(ids, s.Drain.NodeID)
		report, _ := r.term.Explain(s.Drain.NodeID, r.now)
		must.Eq(t, report.Status, s)
	}
	must.Eq(t, []cluster.NodeID{"n1", "n2", "n3"}, ids)
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
	r.now = epoch
	r.step()
	r.settle()
	must.Eq(t, epoch.Add(time.Minute), r.wakeAt)
	must.Len(t, 1, r.raft.written())
	r.advance(time.Minute + 20*time.Second + DefaultStopMargin)
	must.SliceEmpty(t, r.state.now().draining())
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
// tried again, and with an interval between rounds the rounds that it takes.
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
	must.Eq(t, DefaultRetryMax+DefaultDeadlineCoalesce, config(func(*NodeDrainerConfig) {}).writeTime(w))
	must.Eq(t, DefaultRetryMax, config(func(c *NodeDrainerConfig) { c.DeadlineCoalesce = -1 }).writeTime(w))
	c := config(func(c *NodeDrainerConfig) {
		c.DeadlineCoalesce, c.MinWriteInterval, c.MaxIDsPerEntry, c.MaxInFlight = -1, time.Minute, 4, 1
	})
	// Eleven marks, each with an evaluation, four ids at a time.
	must.GreaterEq(t, DefaultRetryMax+6*time.Minute, c.writeTime(w))
	must.LessEq(t, DefaultRetryMax+8*time.Minute, c.writeTime(w))
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

// A node watcher that does not tell of an end does not have what was planned for
// the node written for ever.
func TestTerm_NodeThatNobodyTellsOf(t *testing.T) {
	t.Parallel()
	var tracker NodeTracker
	w := jobsOnOneNode(1)
	w.drain("n1", -1)
	r := newRig(t, w, func(c *NodeDrainerConfig) {
		c.NodeWatcher = func(_ Env, t NodeTracker) DrainingNodeWatcher { tracker = t; return &idle{} }
	})
	tracker.Update(w.node("n1"))
	r.raft.script = []fate{rejected}
	r.settle()
	must.Len(t, 1, r.raft.written())
	r.commit(func(w *town) { w.node("n1").Drain = nil })
	r.advance(time.Hour)
	must.Len(t, 1, r.raft.written())
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
