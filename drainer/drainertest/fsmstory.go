package drainertest

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// storyTime is a time of the story.
func storyTime(after time.Duration) time.Time { return epoch().Add(after) }

// storyJob is a job with one group, g.
func storyJob(id cluster.JobID, typ cluster.JobType, count, maxParallel int) *cluster.Job {
	g := &cluster.TaskGroup{Name: "g", Count: count, Tasks: []*cluster.Task{{Name: "t", KillTimeout: 5 * time.Second}}}
	if typ == cluster.JobService {
		g.Migrate = &cluster.MigrateStrategy{MaxParallel: maxParallel, HealthCheck: cluster.HealthChecks, HealthyDeadline: 5 * time.Minute}
	}
	return &cluster.Job{Namespace: "default", ID: id, Type: typ, Priority: 50, TaskGroups: []*cluster.TaskGroup{g}}
}

// storyAlloc is a healthy allocation that runs.
func storyAlloc(id string, j *cluster.Job, n cluster.NodeID) *cluster.Allocation {
	healthy := true
	return &cluster.Allocation{
		ID: cluster.AllocID(id), Namespace: j.Namespace, JobID: j.ID, Job: j, TaskGroup: "g", NodeID: n,
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
		DeploymentStatus: &cluster.DeploymentStatus{Healthy: &healthy}, CreateTime: storyTime(-time.Hour), ModifyTime: storyTime(-time.Hour),
	}
}

// storyEvals is the prefix of the ids of the story's evaluations. A state machine may make
// others.
const storyEvals = "story-"

func storyEval(id string, j *cluster.Job) *cluster.Evaluation {
	return &cluster.Evaluation{
		ID: cluster.EvalID(storyEvals + id), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority,
		Status: cluster.EvalPending, TriggeredBy: cluster.TriggerNodeDrain, CreateTime: storyTime(0),
	}
}

func mark(a *cluster.Allocation, d cluster.DrainID, r cluster.Revision, c cluster.MarkClass) rules.Mark {
	return rules.Mark{Alloc: a.ID, Group: a.GroupKey(), Node: a.NodeID, Drain: d, Revision: r, Class: c}
}

// storyMarks is an entry of marks of one job, with its evaluation or without.
func storyMarks(at time.Duration, e *cluster.Evaluation, marks ...rules.Mark) *rules.Marks {
	m := &rules.Marks{At: storyTime(at), Policy: rules.Policy{}.WithDefaults(), Marks: marks}
	if e != nil {
		m.Evals = []*cluster.Evaluation{e}
	}
	return m
}

// story makes the steps of a story.
type story []fsmStep

func (s *story) rows(title string, rows Rows) {
	*s = append(*s, fsmStep{title, func(f FSM, index uint64) ([]rules.Refusal, error) {
		written := rows.copy()
		for _, a := range written.Allocs {
			if a.CreateIndex = index; f.View().Alloc(a.ID) != nil {
				a.CreateIndex = f.View().Alloc(a.ID).CreateIndex
			}
		}
		return nil, f.Commit(index, written)
	}})
}

// copy returns rows that share nothing with r, because a state machine may write to its rows.
func (r Rows) copy() Rows {
	var c Rows
	for _, n := range r.Nodes {
		c.Nodes = append(c.Nodes, n.Copy())
	}
	for _, j := range r.Jobs {
		c.Jobs = append(c.Jobs, j.Copy())
	}
	for _, a := range r.Allocs {
		copied := a.Copy()
		copied.Job = a.Job.Copy()
		c.Allocs = append(c.Allocs, copied)
	}
	for _, e := range r.Evals {
		c.Evals = append(c.Evals, e.Copy())
	}
	return c
}

// drain returns the revision of the drain: the index of the entry.
func (s *story) drain(title string, n cluster.NodeID, id cluster.DrainID, key string, at, deadline time.Duration) cluster.Revision {
	s.update(title, cluster.DrainUpdate{Node: n, Drain: id, At: storyTime(at), Key: key, Spec: &cluster.DrainSpec{Deadline: deadline}})
	return cluster.Revision(len(*s))
}

func (s *story) cancel(title string, n cluster.NodeID, at time.Duration, eligible bool) {
	s.update(title, cluster.DrainUpdate{Node: n, At: storyTime(at), MarkEligible: eligible})
}

func (s *story) update(title string, u cluster.DrainUpdate) {
	*s = append(*s, fsmStep{title, func(f FSM, index uint64) ([]rules.Refusal, error) { return nil, f.UpdateDrain(index, u) }})
}

func (s *story) marks(title string, m *rules.Marks) {
	*s = append(*s, fsmStep{title, func(f FSM, index uint64) ([]rules.Refusal, error) { return f.Marks(index, m) }})
}

func (s *story) complete(title string, at time.Duration, completions ...rules.Completion) {
	c := &rules.Completions{At: storyTime(at), Policy: rules.Policy{}.WithDefaults(), Completions: completions}
	*s = append(*s, fsmStep{title, func(f FSM, index uint64) ([]rules.Refusal, error) { return f.Completions(index, c) }})
}

// fsmStory is the story of TestFSM. The index of an entry is its place in the story, from one.
func fsmStory() []fsmStep {
	web, batch, agent := storyJob("web", cluster.JobService, 3, 1), storyJob("sum", cluster.JobBatch, 1, 0), storyJob("agent", cluster.JobSystem, 0, 0)
	w1, w2, w3 := storyAlloc("w1", web, "n1"), storyAlloc("w2", web, "n1"), storyAlloc("w3", web, "n2")
	b1, b2, b3, s1 := storyAlloc("b1", batch, "n1"), storyAlloc("b2", batch, "n1"), storyAlloc("b3", batch, "n2"), storyAlloc("s1", agent, "n1")
	b2.DesiredTransition.Migrate = true // not set by a drain
	node := func(id cluster.NodeID) *cluster.Node {
		return &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible}
	}
	const minute, hour = time.Minute, time.Hour
	s := &story{}
	s.rows("nodes, jobs and allocations", Rows{
		Nodes: []*cluster.Node{node("n1"), node("n2")}, Jobs: []*cluster.Job{web, batch, agent},
		Allocs: []*cluster.Allocation{w1, w2, w3, b1, b2, b3, s1},
	})
	s.drain("a drain of a node that does not exist", "none", "d0", "", 0, hour)
	s.drain("a drain without an id", "n1", "", "", 0, hour)
	first := s.drain("a drain starts", "n1", "d1", "start", minute, hour)
	s.drain("the request that started the drain is repeated", "n1", "d1", "start", 90*time.Second, hour)
	s.marks("two marks where the budget has room for one", storyMarks(2*minute, storyEval("e1", web), mark(w1, "d1", first, cluster.MarkPaced), mark(w2, "d1", first, cluster.MarkPaced)))
	s.marks("a mark without the evaluation of its job", storyMarks(2*minute, nil, mark(w2, "d1", first, cluster.MarkPaced)))
	s.marks("a mark that was planned for another drain", storyMarks(2*minute, storyEval("e2", web), mark(w3, "d0", first, cluster.MarkPaced)))
	s.marks("a deadline mark before the deadline", storyMarks(2*minute, storyEval("e3", batch), mark(b1, "d1", first, cluster.MarkDeadline)))
	second := s.drain("the drain is updated", "n1", "none", "", 3*minute, 2*hour)
	s.marks("a deadline mark that was planned against the older revision", storyMarks(3*hour, storyEval("e4", batch), mark(b1, "d1", first, cluster.MarkDeadline)))
	s.marks("deadline marks of batch work", storyMarks(3*hour, storyEval("e5", batch), mark(b1, "d1", second, cluster.MarkDeadline)))
	s.marks("deadline marks of a service", storyMarks(3*hour, storyEval("e6", web), mark(w2, "d1", second, cluster.MarkDeadline)))
	stopping := storyAlloc("w1", web, "n1")
	stopping.DesiredStatus, stopping.StoppedAt, stopping.ModifyTime = cluster.DesiredStop, storyTime(3*hour), storyTime(3*hour)
	stopping.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: "d1", Class: cluster.MarkPaced, MarkedAt: storyTime(2 * minute)}
	s.rows("a scheduler stops an allocation", Rows{Allocs: []*cluster.Allocation{stopping}})
	other := s.drain("another drain starts", "n2", "d2", "", 3*hour, -1)
	s.marks("a forced mark of another drain", storyMarks(3*hour, storyEval("e7", batch), mark(b3, "d2", other, cluster.MarkForced)))
	again := storyMarks(3*hour, storyEval("e8", batch))
	again.Reevaluate = []cluster.GroupKey{b1.GroupKey()}
	s.marks("a group to re-evaluate whose evaluation is still open", again)
	answered := []*cluster.Evaluation{storyEval("e5", batch), storyEval("e7", batch)}
	for _, e := range answered {
		e.Status = cluster.EvalComplete
	}
	s.rows("a scheduler answers the evaluations, and stops nothing", Rows{Evals: answered})
	s.marks("a group to re-evaluate", again)
	s.complete("completions of drains that are not done", 3*hour, rules.Completion{Node: "n1", Drain: "d1", Revision: second}, rules.Completion{Node: "n2", Drain: "d2", Revision: other})
	s.cancel("a drain is cancelled: its marks are withdrawn, other marks stay", "n1", 4*hour, true)
	s.cancel("a cancel of a node that does not drain", "n1", 4*hour, false)
	s.cancel("a cancel of a node that does not exist", "none", 4*hour, false)
	s.marks("a mark of the drain that was cancelled", storyMarks(4*hour, storyEval("e14", web), mark(w2, "d1", second, cluster.MarkDeadline)))
	s.complete("a completion of the drain that was cancelled", 4*hour, rules.Completion{Node: "n1", Drain: "d1", Revision: second})

	gone := func(a *cluster.Allocation) *cluster.Allocation {
		c := a.Copy()
		c.ClientStatus, c.ModifyTime = cluster.ClientComplete, storyTime(4*hour)
		return c
	}
	ended := gone(b3)
	ended.DesiredTransition = cluster.DesiredTransition{Migrate: true, MigrateDisablePlacement: true, Drain: "d2", Class: cluster.MarkForced, MarkedAt: storyTime(3 * hour)}
	s.rows("the allocations on the other node have ended", Rows{Allocs: []*cluster.Allocation{gone(w3), ended}})
	s.complete("a completion that was planned against another revision", 5*hour, rules.Completion{Node: "n2", Drain: "d2", Revision: first})
	s.complete("a completion, twice in the entry", 5*hour, rules.Completion{Node: "n2", Drain: "d2", Revision: other}, rules.Completion{Node: "n2", Drain: "d2", Revision: other})
	s.drain("the request that started the first drain is repeated after its end", "n1", "d4", "start", 5*hour, hour)
	forced := s.drain("a forced drain", "n1", "d3", "", 6*hour, -1)
	s.marks("a forced mark", storyMarks(6*hour, storyEval("e9", batch), mark(b1, "d3", forced, cluster.MarkForced)))
	s.marks("a mark of the wrong class", storyMarks(6*hour, storyEval("e10", web), mark(w2, "d3", forced, cluster.MarkPaced)))
	s.marks("a stage mark before its turn", storyMarks(6*hour, storyEval("e11", agent), mark(s1, "d3", forced, cluster.MarkStage)))
	s.marks("forced marks of a service", storyMarks(6*hour, storyEval("e12", web), mark(w2, "d3", forced, cluster.MarkForced)))
	s.marks("a stage mark in its turn, when the wait for the earlier stages is over", storyMarks(7*hour, storyEval("e13", agent), mark(s1, "d3", forced, cluster.MarkStage)))
	s.complete("a completion while allocations still stop", 8*hour, rules.Completion{Node: "n1", Drain: "d3", Revision: forced})
	return *s
}
