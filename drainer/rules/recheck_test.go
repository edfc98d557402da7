package rules

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// withEvals adds an evaluation for the job of every mark. Without one a mark is refused.
func withEvals(m *Marks) *Marks {
	for _, mark := range m.Marks {
		job := mark.Group.Job
		m.Evals = append(m.Evals, &cluster.Evaluation{ID: "new", Namespace: job.Namespace, JobID: job.ID, Status: cluster.EvalPending})
	}
	return m
}

// Each reason for which a mark is refused.
func TestRecheck_ReturnsTheReason(t *testing.T) {
	t.Parallel()
	mark := func(edit func(*Mark)) Mark {
		m := Mark{Alloc: "a1", Group: fixture.Group, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkPaced}
		if edit != nil {
			edit(&m)
		}
		return m
	}
	as := func(class cluster.MarkClass) Mark { return mark(func(m *Mark) { m.Class = class }) }
	for name, test := range map[string]struct {
		edit func(w *fixture.Cluster)
		mark Mark
		want string
	}{
		"it holds":               {nil, mark(nil), ""},
		"no such allocation":     {nil, mark(func(m *Mark) { m.Alloc = "a9" }), "the allocation is gone"},
		"another group":          {nil, mark(func(m *Mark) { m.Group.Name = "db" }), "the allocation is not in the group or on the node of the mark"},
		"another node":           {nil, mark(func(m *Mark) { m.Node = "n2" }), "the allocation is not in the group or on the node of the mark"},
		"stopped since":          {func(w *fixture.Cluster) { w.Alloc("a1").ClientStatus = cluster.ClientComplete }, mark(nil), "the allocation has stopped"},
		"stopping":               {func(w *fixture.Cluster) { w.Alloc("a1").DesiredStatus = cluster.DesiredStop }, mark(nil), "the allocation is stopping"},
		"evicted":                {func(w *fixture.Cluster) { w.Alloc("a1").DesiredStatus = cluster.DesiredEvict }, mark(nil), "the allocation is stopping"},
		"marked already":         {func(w *fixture.Cluster) { w.Alloc("a1").DesiredTransition.Migrate = true }, mark(nil), "the allocation is marked"},
		"node deleted":           {func(w *fixture.Cluster) { w.Nodes = w.Nodes[1:] }, mark(nil), "the node is gone"},
		"drain cancelled":        {func(w *fixture.Cluster) { w.Node("n1").Drain = nil }, mark(nil), "the node does not drain"},
		"drained again":          {func(w *fixture.Cluster) { w.Node("n1").Drain.ID = "d2" }, mark(nil), "the drain is over and another has begun"},
		"paced survives changes": {func(w *fixture.Cluster) { w.Node("n1").Drain.Revision = 8 }, mark(nil), ""},
		"deadline does not survive them": {func(w *fixture.Cluster) { w.StartDrain("n1", -1); w.Node("n1").Drain.Revision = 8 },
			as(cluster.MarkForced), "the drain was changed since"},
		"unhealthy since": {func(w *fixture.Cluster) { w.Alloc("a1").DeploymentStatus.Healthy = new(false) }, mark(nil),
			"the allocation would be marked free, not paced"},
		"unknown health": {func(w *fixture.Cluster) {
			w.Alloc("a1").DeploymentStatus, w.Alloc("a1").CreateTime = nil, fixture.Epoch
		}, mark(nil),
			"the allocation is held: waiting for health"},
		"healthy a moment ago": {func(w *fixture.Cluster) {
			w.Alloc("a1").DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false), UnhealthySince: fixture.Epoch.Add(1 - time.Minute)}
		}, as(cluster.MarkFree), "the allocation is held: below budget"},
		"healthy long ago": {func(w *fixture.Cluster) {
			w.Alloc("a1").DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false), UnhealthySince: fixture.Epoch.Add(-time.Minute)}
		}, as(cluster.MarkFree), ""},
		"scaled up since":       {func(w *fixture.Cluster) { w.TaskGroup().Count = 3 }, mark(nil), "the group has no room"},
		"not below its budget":  {nil, as(cluster.MarkProceed), "the group may not go further below its budget"},
		"not to proceed":        {func(w *fixture.Cluster) { w.TaskGroup().Count = 3 }, as(cluster.MarkProceed), "the group may not go further below its budget"},
		"not unhealthy":         {nil, as(cluster.MarkFree), "the allocation would be marked paced, not free"},
		"the deadline is ahead": {nil, as(cluster.MarkDeadline), "the allocation would be marked paced, not deadline"},
		"not forced":            {nil, as(cluster.MarkForced), "the allocation would be marked paced, not forced"},
		"no such class":         {nil, as(200), "the allocation would be marked paced, not unknown class"},
		"class none":            {nil, as(cluster.MarkNone), "the allocation would be marked paced, not none"},
		"every slot is taken": {func(w *fixture.Cluster) {
			w.Alloc("a1").DeploymentStatus.Healthy = new(false)
			w.Alloc("a2").DesiredTransition = cluster.DesiredTransition{Migrate: true, Class: cluster.MarkFree}
		}, as(cluster.MarkFree), "the group has no free slot"},
		"left by request": {func(w *fixture.Cluster) {
			w.Jobs[0].Type = cluster.JobSystem
			w.Node("n1").Drain.Strategy.IgnoreSystemJobs = true
		}, as(cluster.MarkStage), "the allocation is left by request"},
		"cannot report": {func(w *fixture.Cluster) { w.Node("n1").Status = cluster.NodeDisconnected }, mark(nil), "the allocation is held: disconnected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(2, 2)
			w.StartDrain("n1", 0)
			if test.edit != nil {
				test.edit(w)
			}
			accepted, _, refused := Recheck(w, withEvals(&Marks{At: fixture.Epoch, Marks: []Mark{test.mark}}))
			if test.want == "" {
				must.Eq(t, []Mark{test.mark}, accepted)
				must.SliceEmpty(t, refused)
				return
			}
			must.SliceEmpty(t, accepted)
			must.Eq(t, []Refusal{{Alloc: test.mark.Alloc, Node: test.mark.Node, Why: test.want}}, refused)
		})
	}
}

func TestRecheck_TwiceInOneEntryIsMarkedOnce(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(3, 3)
	w.TaskGroup().Migrate.MaxParallel = 3
	w.StartDrain("n1", 0)
	mark := Mark{Alloc: "a1", Group: fixture.Group, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkPaced}
	accepted, _, refused := Recheck(w, withEvals(&Marks{At: fixture.Epoch, Marks: []Mark{mark, mark}}))
	must.Eq(t, []Mark{mark}, accepted)
	must.Eq(t, []Refusal{{Alloc: "a1", Node: "n1", Why: "the allocation is in the entry twice"}}, refused)
}

// Recheck drops the evaluation of a job without an accepted mark, unless a marked allocation of a
// group to re-evaluate still runs. Each other job gets one.
func TestRecheck_Evaluations(t *testing.T) {
	t.Parallel()
	eval := func(id cluster.EvalID, j cluster.JobKey) *cluster.Evaluation {
		return &cluster.Evaluation{ID: id, Namespace: j.Namespace, JobID: j.ID, Status: cluster.EvalPending}
	}
	stranger := cluster.JobKey{Namespace: "other", ID: fixture.Group.Job.ID}
	mark := Mark{Alloc: "a1", Group: fixture.Group, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkPaced}
	for name, test := range map[string]struct {
		edit  func(*fixture.Cluster)
		entry Marks
		want  []cluster.EvalID
	}{
		"with its mark":           {nil, Marks{Marks: []Mark{mark}, Evals: []*cluster.Evaluation{eval("e1", fixture.Group.Job)}}, []cluster.EvalID{"e1"}},
		"once for a job":          {nil, Marks{Marks: []Mark{mark}, Evals: []*cluster.Evaluation{eval("e1", fixture.Group.Job), eval("e2", fixture.Group.Job)}}, []cluster.EvalID{"e1"}},
		"not for another job":     {nil, Marks{Marks: []Mark{mark}, Evals: []*cluster.Evaluation{eval("e1", stranger)}}, nil},
		"not without its mark":    {nil, Marks{Evals: []*cluster.Evaluation{eval("e1", fixture.Group.Job)}}, nil},
		"not for a refused mark":  {func(w *fixture.Cluster) { w.TaskGroup().Count = 9 }, Marks{Marks: []Mark{mark}, Evals: []*cluster.Evaluation{eval("e1", fixture.Group.Job)}}, nil},
		"nothing is stuck":        {nil, Marks{Reevaluate: []cluster.GroupKey{fixture.Group}, Evals: []*cluster.Evaluation{eval("e1", fixture.Group.Job)}}, nil},
		"a marked one still runs": {func(w *fixture.Cluster) { w.Alloc("a1").DesiredTransition.Migrate = true }, Marks{Reevaluate: []cluster.GroupKey{fixture.Group}, Evals: []*cluster.Evaluation{eval("e1", fixture.Group.Job)}}, []cluster.EvalID{"e1"}},
		"it already has one": {func(w *fixture.Cluster) {
			w.Alloc("a1").DesiredTransition.Migrate = true
			w.Evals = append(w.Evals, eval("e0", fixture.Group.Job))
		}, Marks{Reevaluate: []cluster.GroupKey{fixture.Group}, Evals: []*cluster.Evaluation{eval("e1", fixture.Group.Job)}}, nil},
		"a nil one is ignored":    {nil, Marks{Marks: []Mark{mark}, Evals: []*cluster.Evaluation{nil, eval("e1", fixture.Group.Job)}}, []cluster.EvalID{"e1"}},
		"an unknown group":        {nil, Marks{Reevaluate: []cluster.GroupKey{{Job: stranger, Name: "x"}}, Evals: []*cluster.Evaluation{eval("e1", stranger)}}, nil},
		"its drain was cancelled": {func(w *fixture.Cluster) { w.Alloc("a1").DesiredTransition.Migrate = true; w.Node("n1").Drain = nil }, Marks{Reevaluate: []cluster.GroupKey{fixture.Group}, Evals: []*cluster.Evaluation{eval("e1", fixture.Group.Job)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(2, 2)
			w.StartDrain("n1", 0)
			if test.edit != nil {
				test.edit(w)
			}
			test.entry.At = fixture.Epoch
			_, evals, _ := Recheck(w, &test.entry)
			must.Eq(t, test.want, idsOf(evals))
		})
	}
}

// The replacement of a healthy canary holds the canary's slot until the replacement has a verdict,
// even if it is marked itself. The order of the marks makes no difference.
func TestRecheck_ReplacementOfCanary(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		deadline    time.Duration
		class       cluster.MarkClass
		maxParallel int
		want        []string // why the other canary's mark is refused
	}{
		"marked itself, two slots":   {0, cluster.MarkCanary, 2, []string{"the group has no free slot"}},
		"marked itself, three slots": {0, cluster.MarkCanary, 3, nil},
		"forced, one slot":           {-1, cluster.MarkForced, 1, []string{"the group has no free slot"}},
		"forced, two slots":          {-1, cluster.MarkForced, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, order := range [][2]cluster.AllocID{{"a1", "a2"}, {"a2", "a1"}} {
				w := fixture.NewCluster(3, 3)
				w.TaskGroup().Migrate.MaxParallel = test.maxParallel
				left, came, other := w.Alloc("a3"), w.Alloc(order[0]), w.Alloc(order[1])
				came.NodeID, other.NodeID = "n1", "n2"
				w.StartDrain("n1", test.deadline)
				w.StartDrain("n2", 0)
				for _, a := range w.Allocs {
					a.DeploymentStatus.Canary = true
				}
				left.DesiredStatus, left.ClientStatus, left.NextAllocation = cluster.DesiredStop, cluster.ClientComplete, came.ID
				left.DesiredTransition = cluster.DesiredTransition{Migrate: true, Class: cluster.MarkCanary}
				came.PreviousAllocation, came.DeploymentStatus.Healthy, came.CreateTime = left.ID, nil, fixture.Epoch
				_, _, refused := Recheck(w, withEvals(&Marks{At: fixture.Epoch, Marks: []Mark{
					{Alloc: came.ID, Group: fixture.Group, Node: "n1", Drain: "d-n1", Revision: 7, Class: test.class},
					{Alloc: other.ID, Group: fixture.Group, Node: "n2", Drain: "d-n2", Revision: 7, Class: cluster.MarkCanary},
				}}))
				var why []string
				for _, r := range refused {
					why = append(why, r.Why)
				}
				must.Eq(t, test.want, why)
			}
		})
	}
}
