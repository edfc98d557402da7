package invariant_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// testCluster is a cluster in which nothing goes wrong: the real state machine, drainer and
// scheduler, and clients that do as they are told within a second. The judges
// get all that happens, and can get it again.
type testCluster struct {
	fsm       *shims.FSM
	now       time.Time
	index     uint64
	ids       int
	drainer   *drainer.Term
	scheduler *scheduler.Scheduler
	woken     chan struct{}
	wakeAt    time.Time
	queue     []func()
	reports   []cluster.AllocReport // due in the next second
	writes    int
	looks     int
	view      *statestore.Snapshot

	tellings []func(*invariant.Judge)
	quiets   int // the judges get every n-th quiet point
	points   int
}

func newTestCluster(t testing.TB, nodes, perNode, drains, quiets int) *testCluster {
	w := &testCluster{now: epoch, woken: make(chan struct{}, 1), quiets: quiets}
	w.fsm = shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) {
		w.tell(func(j *invariant.Judge, now time.Time) { j.Applied(now, a) })
	}})
	w.settle(nodes, perNode)
	var err error
	w.drainer, err = drainer.NewTerm(drainer.NodeDrainerConfig{
		Raft: shims.NewDrainerApplier(townLog{w, true}), NewEvalID: func() cluster.EvalID { return cluster.EvalID(w.id("e")) },
	}, townReader{w.fsm.Store().Reader(), w}, w.woken)
	must.NoError(t, err)
	w.scheduler, err = scheduler.New(scheduler.Config{
		Snapshot: func() scheduler.View { return w.fsm.Store().Snapshot() },
		Applier:  shims.NewSchedulerApplier(townLog{w, false}),
		IDs: scheduler.IDs{
			Alloc: func() cluster.AllocID { return cluster.AllocID(w.id("a")) },
			Eval:  func() cluster.EvalID { return cluster.EvalID(w.id("e")) },
		},
	})
	must.NoError(t, err)
	w.tell(func(j *invariant.Judge, now time.Time) { j.Began(now, 0, 1) })
	w.woken <- struct{}{}
	for i := range drains {
		m := cluster.DrainUpdate{
			Node: townNode(i * nodes / drains), Drain: cluster.DrainID(w.id("d")), Spec: &cluster.DrainSpec{Deadline: time.Hour}, At: w.now,
		}
		w.queue = append(w.queue, func() { w.commit(&shims.NodeUpdateDrain{DrainUpdate: m}) })
	}
	return w
}

func townNode(i int) cluster.NodeID { return cluster.NodeID(fmt.Sprintf("n%04d", i)) }

func (w *testCluster) id(kind string) string {
	w.ids++
	return fmt.Sprintf("%s%06d", kind, w.ids)
}

func (w *testCluster) tell(f func(*invariant.Judge, time.Time)) {
	now := w.now
	w.tellings = append(w.tellings, func(j *invariant.Judge) { f(j, now) })
}

// settle registers nodes, and jobs of eight with their allocations.
func (w *testCluster) settle(nodes, perNode int) {
	for i := range nodes {
		n := &cluster.Node{ID: townNode(i), Name: string(townNode(i)), Status: cluster.NodeReady}
		n.Resources = cluster.Resources{CPU: math.MaxInt32, MemoryMB: math.MaxInt32, DiskMB: math.MaxInt32}
		w.commit(&shims.NodeRegister{At: w.now, Node: n})
	}
	for first := 0; first < nodes*perNode; first += 8 {
		j := newJob(cluster.JobService, cluster.JobID(fmt.Sprintf("web%04d", first/8)), 8)
		txn := w.fsm.Store().Begin(w.next())
		p := &cluster.Plan{At: w.now}
		for i := range 8 {
			p.Places = append(p.Places, &cluster.Allocation{
				ID: cluster.AllocID(w.id("a")), Namespace: "default", JobID: j.ID, TaskGroup: string(j.ID), Name: fmt.Sprintf("%s[%d]", j.ID, i),
				NodeID: townNode((first + i) % nodes), ClientStatus: cluster.ClientRunning, DeploymentStatus: &cluster.DeploymentStatus{Healthy: pointer(true)},
			})
		}
		_ = txn.UpsertJob(j)
		_, _ = txn.ApplyPlan(p)
		txn.Commit()
	}
}

func (w *testCluster) next() uint64 {
	w.index++
	return w.index
}

// commit applies a message.
func (w *testCluster) commit(m shims.Message) shims.Answer {
	data, err := shims.Encode(m)
	if err != nil {
		panic(err)
	}
	response, err := w.fsm.ApplyEntry(w.next(), data)
	if err != nil {
		panic(err)
	}
	if p, is := response.(shims.PlanApplied); is {
		for _, s := range p.Accepted.Stops {
			a := w.fsm.Store().Snapshot().Alloc(s.Alloc)
			w.reports = append(w.reports, cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientComplete})
		}
		for _, a := range p.Accepted.Places {
			w.reports = append(w.reports, cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientRunning, Healthy: pointer(true)})
		}
	}
	return shims.Answer{Outcome: raftwrite.Applied, Index: w.index, Response: response}
}

// townLog is the log as the drainer and the scheduler see it.
type townLog struct {
	testCluster *testCluster
	drainer     bool
}

func (l townLog) Propose(m shims.Message, reply func(shims.Answer)) bool {
	w := l.testCluster
	w.writes++
	n := w.writes
	if l.drainer {
		bytes := 0
		if m != nil {
			data, _ := shims.Encode(m)
			bytes = len(data)
		}
		w.tell(func(j *invariant.Judge, now time.Time) {
			j.Proposed(now, invariant.Write{Term: 1, N: n, Message: m, Bytes: bytes})
		})
	}
	w.queue = append(w.queue, func() {
		answer := shims.Answer{Outcome: raftwrite.Applied, Index: w.fsm.Store().Snapshot().Index()}
		if m != nil {
			answer = w.commit(m)
		}
		if l.drainer {
			w.tell(func(j *invariant.Judge, now time.Time) { j.Answered(now, 1, n, answer) })
		}
		reply(answer)
	})
	return true
}

func (l townLog) Barrier(reply func(shims.Answer)) bool { return l.Propose(nil, reply) }

// townReader counts looks.
type townReader struct {
	drainer.StateReader
	testCluster *testCluster
}

func (r townReader) Snapshot() rules.View {
	r.testCluster.looks++
	r.testCluster.view = r.testCluster.fsm.Store().Snapshot()
	return r.testCluster.view
}

// run has everything happen until nothing is left to be done.
func (w *testCluster) run() *testCluster {
	for {
		switch due := !w.wakeAt.IsZero() && !w.now.Before(w.wakeAt); {
		case len(w.queue) > 0:
			next := w.queue[0]
			w.queue = w.queue[1:]
			next()
			continue
		case len(w.woken) > 0 || due:
			w.step()
			continue
		}
		if w.scheduler.Step(w.now); len(w.queue) > 0 {
			continue
		}
		w.quiet()
		if len(w.reports) == 0 {
			return w
		}
		w.now = w.now.Add(time.Second)
		m := &shims.AllocClientUpdate{Reports: w.reports}
		for i := range m.Reports {
			m.Reports[i].At, m.Reports[i].HealthyAt = w.now, w.now
		}
		w.reports = nil
		for reports := range slices.Chunk(m.Reports, 16) {
			w.commit(&shims.AllocClientUpdate{Reports: reports})
		}
	}
}

// step steps the drainer.
func (w *testCluster) step() {
	s := invariant.Step{Term: 1, Clock: w.now, Woken: len(w.woken) > 0}
	if s.Woken {
		<-w.woken
	}
	w.looks, w.view = 0, nil
	w.wakeAt = w.drainer.Step(w.now)
	s.Looks, s.View, s.WakeAt = w.looks, w.view, w.wakeAt
	w.tell(func(j *invariant.Judge, now time.Time) { j.Stepped(now, s) })
}

// quiet tells of a quiet point.
func (w *testCluster) quiet() {
	if w.points++; w.quiets == 0 || w.points%w.quiets != 0 {
		return
	}
	q := invariant.Quiet{Term: 1, Clock: w.now, State: w.fsm.Store().Snapshot()}
	for n := range q.State.DrainingNodes() {
		r, _ := w.drainer.Explain(n.ID, w.now)
		q.Reports = append(q.Reports, r)
	}
	w.tell(func(j *invariant.Judge, now time.Time) { j.Quiet(now, q) })
}

// judge tells a judge of all that happened.
func (w *testCluster) judge(o invariant.Options) *invariant.Judge {
	j := invariant.New(o)
	j.Calm(epoch)
	for _, tell := range w.tellings {
		tell(j)
	}
	j.End(w.now, w.fsm.Store().Snapshot())
	return j
}

// Where nothing goes wrong nothing is found, and drains end.
func TestJudge_findsNothingInACluster(t *testing.T) {
	t.Parallel()
	w := newTestCluster(t, 10, 8, 3, 1).run()
	j := w.judge(invariant.Options{Every: 1, Digests: true})
	must.SliceEmpty(t, j.Violations())
	c := j.Counters()
	must.Eq(t, 24, c.Marked)
	must.Positive(t, c.Settled)
	must.Positive(t, c.Reasons)
	ended := 0
	for d := range w.fsm.Store().Snapshot().Drains() {
		must.Eq(t, cluster.OutcomeComplete, d.Outcome)
		ended++
	}
	must.Eq(t, 3, ended)
}

// BenchmarkJudge tells a judge of a whole run: of clusters of about as many nodes, allocations
// and drains as seeds of each size have. The cost of an entry is that of all its tellings.
func BenchmarkJudge(b *testing.B) {
	for _, size := range []struct {
		name                          string
		nodes, perNode, drains, quiet int
	}{
		{"small", 5, 2, 2, 10},
		{"medium", 35, 10, 5, 50},
		{"large", 1000, 20, 22, 200},
	} {
		w := newTestCluster(b, size.nodes, size.perNode, size.drains, size.quiet).run()
		b.Run(size.name, func(b *testing.B) {
			b.ReportAllocs()
			entries := 0
			for b.Loop() {
				j := w.judge(invariant.Options{})
				if j.Failed() {
					b.Fatal(j.Violations())
				}
				entries = j.Counters().Entries
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(entries), "ns/entry")
			b.ReportMetric(float64(entries), "entries")
		})
	}
}
