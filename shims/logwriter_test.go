package shims_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// logWriter makes random messages, most of which fit a state. Its pools of ids are small, so that
// messages touch the same rows. The messages depend only on the seed.
type logWriter struct {
	random *rand.Rand
	now    time.Time
	ids    int
	// older is the state some entries before, for stale plans.
	older *statestore.Snapshot
}

func newLogWriter(seed uint64) *logWriter {
	return &logWriter{random: rand.New(rand.NewPCG(seed, 7)), now: noon}
}

func (w *logWriter) chance(percent int) bool { return w.random.IntN(100) < percent }

func pick[T any](w *logWriter, from ...T) T { return from[w.random.IntN(len(from))] }

// one returns an item of the list, or the zero value if the list is empty.
func one[T any](w *logWriter, list []T) (item T) {
	if len(list) > 0 {
		item = pick(w, list...)
	}
	return item
}

func (w *logWriter) id(kind string) string { w.ids++; return fmt.Sprintf("%s%04d", kind, w.ids) }

func (w *logWriter) nodeID() cluster.NodeID {
	return cluster.NodeID(fmt.Sprintf("n%d", w.random.IntN(7)))
}

func (w *logWriter) jobKey() cluster.JobKey {
	return cluster.JobKey{Namespace: pick(w, cluster.Namespace("default"), "other"), ID: cluster.JobID(fmt.Sprintf("j%d", w.random.IntN(3)))}
}

// evals makes evaluations of some jobs, rarely one without an id.
func (w *logWriter) evals() (evals []*cluster.Evaluation) {
	for range w.random.IntN(3) {
		evals = append(evals, w.eval(w.jobKey()))
	}
	return evals
}

func (w *logWriter) eval(of cluster.JobKey) *cluster.Evaluation {
	e := &cluster.Evaluation{
		ID: cluster.EvalID(w.id("e")), Namespace: of.Namespace, JobID: of.ID, Type: cluster.JobService, Priority: 1 + w.random.IntN(100),
		TriggeredBy: cluster.TriggerNodeUpdate, Status: cluster.EvalPending, CreateTime: w.now, ModifyTime: w.now,
	}
	if w.chance(2) {
		e.ID = ""
	}
	return e
}

// next returns the next message for a cluster in this state.
func (w *logWriter) next(s *statestore.Snapshot) shims.Message {
	w.now = w.now.Add(time.Duration(w.random.Int64N(int64(20 * time.Second))))
	if w.older == nil || w.chance(10) {
		w.older = s
	}
	switch w.random.IntN(18) {
	case 0:
		return w.register()
	case 1:
		return w.nodeChange()
	case 2:
		return w.drain(s)
	case 3:
		return w.job()
	case 4, 5, 6, 7, 8:
		return w.plan(s)
	case 9, 10:
		return w.report(s)
	case 11:
		return &shims.EvalUpdate{Evals: w.evals()}
	case 12:
		return w.completions(s)
	case 13:
		if w.surges() && w.chance(40) {
			return &shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{Node: pick(w, "", "", w.nodeID()), Pause: w.chance(20), At: w.now, By: w.id("by")}}
		}
	}
	return w.marks(s)
}

// surges reports whether the cluster version has pauses, and replacements beside the allocations that they replace.
func (w *logWriter) surges() bool {
	return w.older.ClusterVersion() >= max(cluster.VersionOfSurge, cluster.VersionOfPauses)
}

func (w *logWriter) register() shims.Message {
	m := node(w.nodeID())
	m.At, m.Evals = w.now, w.evals()
	m.Node.Meta = map[string]string{"rack": w.id("r"), "row": "1"}
	m.Node.Status = pick(w, cluster.NodeReady, cluster.NodeReady, cluster.NodeInitializing, "")
	return m
}

func (w *logWriter) nodeChange() shims.Message {
	switch w.random.IntN(6) {
	case 0:
		return &shims.NodeDeregister{At: w.now, Nodes: []cluster.NodeID{w.nodeID(), "missing"}, Evals: w.evals()}
	case 1, 2:
		return &shims.NodeUpdateEligibility{At: w.now, Node: w.nodeID(), Eligibility: pick(w, cluster.NodeEligible, cluster.NodeEligible, cluster.NodeIneligible, "perhaps"), Evals: w.evals()}
	}
	status := cluster.NodeReady
	if w.chance(25) {
		status = pick(w, cluster.NodeDown, cluster.NodeDisconnected, "fine")
	}
	return &shims.NodeUpdateStatus{At: w.now, Node: w.nodeID(), Status: status, Evals: w.evals()}
}

func (w *logWriter) drain(s *statestore.Snapshot) shims.Message {
	on := w.nodeID()
	if draining := one(w, slices.Collect(s.DrainView().DrainingNodes())); draining != nil && w.chance(50) {
		on = draining.ID
	}
	m := &shims.NodeUpdateDrain{Evals: w.evals()}
	m.DrainUpdate = cluster.DrainUpdate{
		Node: on, Drain: cluster.DrainID(w.id("d")), At: w.now, MarkEligible: w.chance(50),
		Key: pick(w, "", "", "k1", "k2", w.id("k")), Meta: map[string]string{"why": w.id("w"), "who": "me"},
	}
	if w.chance(60) {
		m.Spec = &cluster.DrainSpec{Deadline: pick(w, 0, -1, time.Second, time.Minute, time.Hour), IgnoreSystemJobs: w.chance(30)}
		if w.surges() && w.chance(30) {
			m.Spec.MaxSurge = w.random.IntN(3)
		}
	}
	return m
}

func (w *logWriter) job() shims.Message {
	key := w.jobKey()
	if w.chance(15) {
		return &shims.JobDeregister{Job: key, Purge: w.chance(50), Evals: w.evals()}
	}
	job := &cluster.Job{Namespace: key.Namespace, ID: key.ID, Type: pick(w, cluster.JobService, cluster.JobService, cluster.JobService, cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch)}
	for _, name := range []string{"a", "b"}[:1+w.random.IntN(2)] {
		group := &cluster.TaskGroup{Name: name, Count: w.random.IntN(8) - w.random.IntN(2), Tasks: []*cluster.Task{{
			Name: "task", Resources: cluster.Resources{CPU: 100, MemoryMB: 64}, StoragePlugin: w.chance(15),
		}}}
		if job.Type == cluster.JobService && w.chance(70) {
			group.Migrate = cluster.DefaultMigrateStrategy()
			group.Migrate.MaxParallel = w.random.IntN(4)
			if w.surges() && w.chance(50) {
				group.Migrate.MaxSurge = w.random.IntN(3)
			}
		}
		job.TaskGroups = append(job.TaskGroups, group)
	}
	return &shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{w.eval(key)}}
}

// plan returns the scheduler's plan for a pending evaluation in this state or an older one, or an
// invalid plan.
func (w *logWriter) plan(s *statestore.Snapshot) shims.Message {
	eval := one(w, slices.Collect(s.WorkView().PendingEvals()))
	if eval == nil {
		eval = w.eval(w.jobKey())
	}
	from := s
	if w.chance(20) {
		from = w.older
	}
	plan := scheduler.Schedule(from.WorkView(), eval, w.now, scheduler.IDs{
		Alloc: func() cluster.AllocID { return cluster.AllocID(w.id("a")) },
		Eval:  func() cluster.EvalID { return cluster.EvalID(w.id("e")) },
	})
	if w.chance(10) {
		alloc := w.alloc(s)
		plan.Stops = append(plan.Stops, cluster.PlanStop{Alloc: alloc.ID, Migrate: w.chance(50), Lost: w.chance(50), Unknown: w.chance(20)})
		plan.Places = append(plan.Places, &cluster.Allocation{ID: alloc.ID, NodeID: w.nodeID(), Namespace: alloc.Namespace, JobID: alloc.JobID, Job: alloc.Job})
	}
	return &shims.ApplyPlan{Plan: *plan}
}

// alloc returns an allocation of the state, rarely one that does not exist.
func (w *logWriter) alloc(s *statestore.Snapshot) *cluster.Allocation {
	alloc := one(w, slices.Collect(s.Allocs()))
	if alloc == nil || w.chance(3) {
		return &cluster.Allocation{ID: "missing", NodeID: w.nodeID()}
	}
	return alloc
}

func (w *logWriter) report(s *statestore.Snapshot) shims.Message {
	m := &shims.AllocClientUpdate{Evals: w.evals()}
	for alloc := range s.Allocs() {
		if w.chance(60) {
			continue
		}
		if w.chance(2) {
			alloc = &cluster.Allocation{ID: "missing", NodeID: w.nodeID()}
		}
		r := cluster.AllocReport{Alloc: alloc.ID, Node: alloc.NodeID, At: w.now}
		r.ClientStatus = cluster.ClientRunning
		if w.chance(10) {
			r.ClientStatus = pick(w, cluster.ClientFailed, cluster.ClientPending, cluster.ClientLost, "")
		}
		if alloc.ServerTerminal() && w.chance(80) {
			r.ClientStatus = cluster.ClientComplete
		}
		if w.chance(80) {
			verdict := w.chance(85)
			r.Healthy, r.HealthyAt = &verdict, w.now
		}
		if w.chance(5) {
			r.Node = w.nodeID()
		}
		m.Reports = append(m.Reports, r)
	}
	return m
}

// marks returns marks for allocations on draining nodes, most of them with the right class.
func (w *logWriter) marks(s *statestore.Snapshot) shims.Message {
	m := &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: w.now, Policy: rules.Policy{BelowBudget: pick(w, rules.BelowBudgetHold, rules.BelowBudgetProceed)}}}
	for n := range s.DrainView().DrainingNodes() {
		for a := range s.WorkView().LiveAllocsByNode(n.ID) {
			if a.Leaving() && w.chance(80) {
				continue
			}
			mark := rules.Mark{Alloc: a.ID, Group: a.GroupKey(), Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: w.class(s, n, a)}
			mark.Surge = mark.Class == cluster.MarkPaced && w.surges() && a.DesiredTransition.Surge == "" && w.chance(70)
			if w.chance(5) {
				mark.Revision--
			}
			m.Marks.Marks = append(m.Marks.Marks, mark)
			m.Evals = append(m.Evals, w.eval(a.JobKey()))
			m.Reevaluate = append(m.Reevaluate, a.GroupKey())
		}
	}
	if w.chance(10) {
		w.random.Shuffle(len(m.Marks.Marks), func(i, j int) { m.Marks.Marks[i], m.Marks.Marks[j] = m.Marks.Marks[j], m.Marks.Marks[i] })
	}
	return m
}

// class returns the right class for a mark on the allocation, if there is one, and sometimes
// another.
func (w *logWriter) class(s *statestore.Snapshot, n *cluster.Node, a *cluster.Allocation) cluster.MarkClass {
	switch {
	case w.chance(10):
		return cluster.MarkClass(w.random.IntN(int(cluster.MarkClassCount) + 1))
	case n.Drain.Strategy.Forced():
		return cluster.MarkForced
	case n.Drain.Strategy.Passed(w.now):
		return cluster.MarkDeadline
	case s.Job(a.JobKey()).Group(a.TaskGroup) == nil:
		return cluster.MarkGone
	case a.Stage() != cluster.StageConsumers:
		return cluster.MarkStage
	case a.JudgedHealthy():
		return pick(w, cluster.MarkPaced, cluster.MarkPaced, cluster.MarkProceed)
	}
	return cluster.MarkFree
}

func (w *logWriter) completions(s *statestore.Snapshot) shims.Message {
	m := &shims.NodesDrainComplete{Completions: rules.Completions{At: w.now, Policy: rules.Policy{Completion: pick(w, rules.CompletionStopped, rules.CompletionReplaced, rules.CompletionMigrated, rules.CompletionMarked)}}}
	for n := range s.DrainView().DrainingNodes() {
		m.Completions.Completions = append(m.Completions.Completions, rules.Completion{Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision})
	}
	m.Completions.Completions = append(m.Completions.Completions, rules.Completion{Node: "missing"})
	return m
}

// randomLog returns the entries of a random history, by raft index from one.
func randomLog(t testing.TB, seed uint64, length int) [][]byte {
	w, h := newLogWriter(seed), newHistory(t, shims.FSMConfig{})
	var log [][]byte
	for range length {
		m := w.next(h.state())
		log = append(log, encode(t, m))
		h.apply(m)
		if w.chance(1) {
			log = append(log, []byte{byte(shims.IgnorableFlag | 3), 1})
			h.next++
		}
	}
	return log
}
