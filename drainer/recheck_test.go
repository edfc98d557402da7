package drainer

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// judgeOneByOne is the twin of Recheck: it writes each mark that holds into a
// world of its own and judges the next one there, from nothing.
func judgeOneByOne(w *world, m *Marks) (accepted []Mark, evals []cluster.EvalID, refused []cluster.AllocID) {
	marks := slices.Clone(m.Marks)
	slices.SortStableFunc(marks, func(a, b Mark) int {
		for _, pair := range [...][2]string{
			{string(a.Group.Job.Namespace), string(b.Group.Job.Namespace)}, {string(a.Group.Job.ID), string(b.Group.Job.ID)},
			{a.Group.Name, b.Group.Name}, {string(a.Alloc), string(b.Alloc)},
		} {
			if order := strings.Compare(pair[0], pair[1]); order != 0 {
				return order
			}
		}
		return 0
	})
	state := &twin{world: w, now: m.At, policy: m.Policy, turnsIn: w}
	needed := map[cluster.JobKey]bool{}
	for _, mark := range marks {
		if !slices.ContainsFunc(m.Evals, func(e *cluster.Evaluation) bool {
			return e != nil && e.Namespace == mark.Group.Job.Namespace && e.JobID == mark.Group.Job.ID
		}) || !state.holds(mark) {
			refused = append(refused, mark.Alloc)
			continue
		}
		accepted = append(accepted, mark)
		needed[mark.Group.Job] = true
		state = state.after(mark)
	}
	for _, key := range m.Reevaluate {
		if needsEvaluation(w, key) {
			needed[key.Job] = true
		}
	}
	for _, e := range m.Evals {
		if e != nil && needed[e.JobKey()] {
			needed[e.JobKey()] = false
			evals = append(evals, e.ID)
		}
	}
	return accepted, evals, refused
}

// needsEvaluation: a marked allocation of the group runs on where it can be
// stopped, on a draining node, and no evaluation of its job would stop it.
func needsEvaluation(w *world, key cluster.GroupKey) bool {
	state := &twin{world: w}
	for _, a := range w.allocs {
		n := state.nodeOf(a)
		if a.GroupKey() == key && n != nil && n.Drain != nil && !hasEnded(a) && !toStop(a) && a.DesiredTransition.Migrate &&
			!state.outOfTouch(a) && len(state.evalsOf(a, "pending"))+len(state.evalsOf(a, "blocked")) == 0 {
			return true
		}
	}
	return false
}

func TestRecheck_AgreesWithTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		entry := anyEntry(t, w, now, anyPolicy(t))
		wantAccepted, wantEvals, wantRefused := judgeOneByOne(w, entry)

		accepted, evals, refused := Recheck(w, entry)

		must.Eq(t, wantAccepted, accepted)
		must.Eq(t, wantEvals, idsOf(evals))
		must.Eq(t, wantRefused, allocsOf(refused))
		for _, r := range refused {
			must.NotEq(t, "", r.Why)
		}
	})
}

// withEvals adds an evaluation for the job of every mark: without one a mark is
// refused.
func withEvals(m *Marks) *Marks {
	for _, mark := range m.Marks {
		job := mark.Group.Job
		m.Evals = append(m.Evals, &cluster.Evaluation{ID: "new", Namespace: job.Namespace, JobID: job.ID, Status: cluster.EvalPending})
	}
	return m
}

func idsOf(evals []*cluster.Evaluation) (ids []cluster.EvalID) {
	for _, e := range evals {
		ids = append(ids, e.ID)
	}
	return ids
}

func allocsOf(refused []Refusal) (ids []cluster.AllocID) {
	for _, r := range refused {
		ids = append(ids, r.Alloc)
	}
	return ids
}

// One bad item refuses only itself: without what was refused, the same is
// accepted.
func TestRecheck_RefusedMarksLeaveNoTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		entry := anyEntry(t, w, now, anyPolicy(t))
		accepted, evals, _ := Recheck(w, entry)

		clean := *entry
		clean.Marks = accepted
		again, evalsAgain, refused := Recheck(w, &clean)

		must.Eq(t, accepted, again)
		must.Eq(t, evals, evalsAgain)
		must.SliceEmpty(t, refused)
	})
}

// The budget, counted with nothing but the twin's definition of healthy: a paced
// mark leaves its group no fewer than count - max_parallel, whatever else is in
// the entry.
func TestRecheck_KeepsTheBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		entry := anyEntry(t, w, now, anyPolicy(t))
		for i := range entry.Marks { // as many as there could be
			if oneIn(t, 2, "paced") {
				entry.Marks[i].Class = cluster.MarkPaced
			}
		}
		accepted, _, _ := Recheck(w, entry)
		state := &twin{world: w, now: now, policy: entry.Policy}
		for _, m := range accepted {
			state = state.after(m)
			if a := w.Alloc(m.Alloc); m.Class == cluster.MarkPaced {
				must.GreaterEq(t, state.count(a)-state.maxParallel(a), state.healthyIn(a), must.Sprintf("group of %v", m))
			}
		}
	})
}

// Recheck writes to nothing it is given: every server reads the same entry and
// the same rows.
func TestRecheck_WritesToNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		entry := anyEntry(t, w, now, anyPolicy(t))
		rows, marks := w.deepCopy(), slices.Clone(entry.Marks)
		Recheck(w, entry)
		must.True(t, reflect.DeepEqual(rows, w))
		must.True(t, slices.Equal(marks, entry.Marks))
	})
}

// deepCopy shares no row with w.
func (w *world) deepCopy() *world {
	c := w.clone()
	for i := range c.nodes {
		c.nodes[i] = c.nodes[i].Copy()
	}
	for i := range c.allocs {
		c.allocs[i] = c.allocs[i].Copy()
	}
	for i := range c.evals {
		c.evals[i] = c.evals[i].Copy()
	}
	for i := range c.jobs {
		c.jobs[i] = c.jobs[i].Copy()
	}
	return c
}

// Each way in which one mark can be wrong, by the words an operator reads.
func TestRecheck_SaysWhy(t *testing.T) {
	t.Parallel()
	mark := func(edit func(*Mark)) Mark {
		m := Mark{Alloc: "a1", Group: web, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkPaced}
		if edit != nil {
			edit(&m)
		}
		return m
	}
	as := func(class cluster.MarkClass) Mark { return mark(func(m *Mark) { m.Class = class }) }
	for name, test := range map[string]struct {
		edit func(w *town)
		mark Mark
		want string
	}{
		"it holds":               {nil, mark(nil), ""},
		"no such allocation":     {nil, mark(func(m *Mark) { m.Alloc = "a9" }), "the allocation is gone"},
		"another group":          {nil, mark(func(m *Mark) { m.Group.Name = "db" }), "the allocation is not the one that was planned for"},
		"another node":           {nil, mark(func(m *Mark) { m.Node = "n2" }), "the allocation is not the one that was planned for"},
		"stopped meanwhile":      {func(w *town) { w.alloc("a1").ClientStatus = cluster.ClientComplete }, mark(nil), "the allocation has stopped"},
		"stopping":               {func(w *town) { w.alloc("a1").DesiredStatus = cluster.DesiredStop }, mark(nil), "the allocation is stopping"},
		"evicted":                {func(w *town) { w.alloc("a1").DesiredStatus = cluster.DesiredEvict }, mark(nil), "the allocation is stopping"},
		"marked by hand":         {func(w *town) { w.alloc("a1").DesiredTransition.Migrate = true }, mark(nil), "the allocation is marked"},
		"node deleted":           {func(w *town) { w.nodes = w.nodes[1:] }, mark(nil), "the node is gone"},
		"drain cancelled":        {func(w *town) { w.node("n1").Drain = nil }, mark(nil), "the node does not drain"},
		"drained again":          {func(w *town) { w.node("n1").Drain.ID = "d2" }, mark(nil), "the drain is over and another has begun"},
		"paced survives changes": {func(w *town) { w.node("n1").Drain.Revision = 8 }, mark(nil), ""},
		"deadline does not": {func(w *town) { w.drain("n1", -1); w.node("n1").Drain.Revision = 8 },
			as(cluster.MarkForced), "the drain was changed since"},
		"health lost meanwhile": {func(w *town) { w.alloc("a1").DeploymentStatus.Healthy = new(false) }, mark(nil),
			"the allocation would be marked free, not paced"},
		"health not known": {func(w *town) { w.alloc("a1").DeploymentStatus, w.alloc("a1").CreateTime = nil, epoch }, mark(nil),
			"the allocation is held: waiting for health"},
		"scaled up meanwhile":   {func(w *town) { w.group().Count = 3 }, mark(nil), "the group has no room"},
		"not below its budget":  {nil, as(cluster.MarkProceed), "the group may not go further below its budget"},
		"not to proceed":        {func(w *town) { w.group().Count = 3 }, as(cluster.MarkProceed), "the group may not go further below its budget"},
		"not unhealthy":         {nil, as(cluster.MarkFree), "the allocation would be marked paced, not free"},
		"the deadline is ahead": {nil, as(cluster.MarkDeadline), "the allocation would be marked paced, not deadline"},
		"nobody forces":         {nil, as(cluster.MarkForced), "the allocation would be marked paced, not forced"},
		"no such class":         {nil, as(200), "the allocation would be marked paced, not unknown class"},
		"no class at all":       {nil, as(cluster.MarkNone), "the allocation would be marked paced, not none"},
		"every slot is taken": {func(w *town) {
			w.alloc("a1").DeploymentStatus.Healthy = new(false)
			w.alloc("a2").DesiredTransition = cluster.DesiredTransition{Migrate: true, Class: cluster.MarkFree}
		}, as(cluster.MarkFree), "the group has no free slot"},
		"left by request": {func(w *town) {
			w.jobs[0].Type = cluster.JobSystem
			w.node("n1").Drain.Strategy.IgnoreSystemJobs = true
		}, as(cluster.MarkStage), "the allocation is left by request"},
		"out of touch": {func(w *town) { w.node("n1").Status = cluster.NodeDisconnected }, mark(nil), "the allocation is held: disconnected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(2, 2)
			w.drain("n1", 0)
			if test.edit != nil {
				test.edit(w)
			}
			accepted, _, refused := Recheck(w, withEvals(&Marks{At: epoch, Marks: []Mark{test.mark}}))
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
	w := newTown(3, 3)
	w.group().Migrate.MaxParallel = 3
	w.drain("n1", 0)
	mark := Mark{Alloc: "a1", Group: web, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkPaced}
	accepted, _, refused := Recheck(w, withEvals(&Marks{At: epoch, Marks: []Mark{mark, mark}}))
	must.Eq(t, []Mark{mark}, accepted)
	must.Eq(t, []Refusal{{Alloc: "a1", Node: "n1", Why: "the allocation is in the entry twice"}}, refused)
}

// The evaluation of a job with nothing accepted is dropped; one is made for each
// other job, and for one whose marked allocations run on.
func TestRecheck_Evaluations(t *testing.T) {
	t.Parallel()
	eval := func(id cluster.EvalID, j cluster.JobKey) *cluster.Evaluation {
		return &cluster.Evaluation{ID: id, Namespace: j.Namespace, JobID: j.ID, Status: cluster.EvalPending}
	}
	stranger := cluster.JobKey{Namespace: "other", ID: web.Job.ID}
	mark := Mark{Alloc: "a1", Group: web, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkPaced}
	for name, test := range map[string]struct {
		edit  func(*town)
		entry Marks
		want  []cluster.EvalID
	}{
		"with its mark":          {nil, Marks{Marks: []Mark{mark}, Evals: []*cluster.Evaluation{eval("e1", web.Job)}}, []cluster.EvalID{"e1"}},
		"once for a job":         {nil, Marks{Marks: []Mark{mark}, Evals: []*cluster.Evaluation{eval("e1", web.Job), eval("e2", web.Job)}}, []cluster.EvalID{"e1"}},
		"not for a stranger":     {nil, Marks{Marks: []Mark{mark}, Evals: []*cluster.Evaluation{eval("e1", stranger)}}, nil},
		"not without its mark":   {nil, Marks{Evals: []*cluster.Evaluation{eval("e1", web.Job)}}, nil},
		"not for a refused mark": {func(w *town) { w.group().Count = 9 }, Marks{Marks: []Mark{mark}, Evals: []*cluster.Evaluation{eval("e1", web.Job)}}, nil},
		"nothing is stuck":       {nil, Marks{Reevaluate: []cluster.GroupKey{web}, Evals: []*cluster.Evaluation{eval("e1", web.Job)}}, nil},
		"a marked one runs on":   {func(w *town) { w.alloc("a1").DesiredTransition.Migrate = true }, Marks{Reevaluate: []cluster.GroupKey{web}, Evals: []*cluster.Evaluation{eval("e1", web.Job)}}, []cluster.EvalID{"e1"}},
		"it has one by now": {func(w *town) {
			w.alloc("a1").DesiredTransition.Migrate = true
			w.evals = append(w.evals, eval("e0", web.Job))
		}, Marks{Reevaluate: []cluster.GroupKey{web}, Evals: []*cluster.Evaluation{eval("e1", web.Job)}}, nil},
		"a nil one is passed by":  {nil, Marks{Marks: []Mark{mark}, Evals: []*cluster.Evaluation{nil, eval("e1", web.Job)}}, []cluster.EvalID{"e1"}},
		"a group nobody knows":    {nil, Marks{Reevaluate: []cluster.GroupKey{{Job: stranger, Name: "x"}}, Evals: []*cluster.Evaluation{eval("e1", stranger)}}, nil},
		"its node stopped drains": {func(w *town) { w.alloc("a1").DesiredTransition.Migrate = true; w.node("n1").Drain = nil }, Marks{Reevaluate: []cluster.GroupKey{web}, Evals: []*cluster.Evaluation{eval("e1", web.Job)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(2, 2)
			w.drain("n1", 0)
			if test.edit != nil {
				test.edit(w)
			}
			test.entry.At = epoch
			_, evals, _ := Recheck(w, &test.entry)
			must.Eq(t, test.want, idsOf(evals))
		})
	}
}

// What comes out of a raft log may be anything. It is refused, and nothing panics.
func FuzzRecheck(f *testing.F) {
	f.Add([]byte("an entry"))
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		w, now := anyWorld(t)
		p := Policy{
			HealthGrace: time.Duration(rapid.Int64().Draw(t, "grace")), StopMargin: time.Duration(rapid.Int64().Draw(t, "margin")),
			BelowBudget: BelowBudget(rapid.Byte().Draw(t, "below budget")), PluginsAfterDeadline: PluginOrder(rapid.Byte().Draw(t, "plugins")),
			Completion: Contract(rapid.Byte().Draw(t, "contract")),
		}
		entry := anyEntry(t, w, now.Add(time.Duration(rapid.Int64().Draw(t, "at"))), p)
		accepted, _, refused := Recheck(w, entry)
		must.Eq(t, len(entry.Marks), len(accepted)+len(refused))

		completions := &Completions{At: entry.At, Policy: p}
		for _, m := range entry.Marks {
			completions.Completions = append(completions.Completions, Completion{Node: m.Node, Drain: m.Drain, Revision: m.Revision})
		}
		ended, unended := RecheckCompletions(w, completions)
		must.Eq(t, len(completions.Completions), len(ended)+len(unended))
	}))
}

// A canary that came in the place of a healthy one holds the slot of that one
// until it has a verdict, also once it is marked itself: what a plan takes is the
// same in whatever order it is judged.
func TestRecheck_CanaryInThePlaceOfAnother(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		deadline    time.Duration
		class       cluster.MarkClass
		maxParallel int
		want        []string // why the other canary's mark is refused
	}{
		"marked itself, two slots":   {0, cluster.MarkCanary, 2, []string{"the group has no free slot"}},
		"marked itself, three slots": {0, cluster.MarkCanary, 3, nil},
		"taken by force, one slot":   {-1, cluster.MarkForced, 1, []string{"the group has no free slot"}},
		"taken by force, two slots":  {-1, cluster.MarkForced, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, order := range [][2]cluster.AllocID{{"a1", "a2"}, {"a2", "a1"}} {
				w := newTown(3, 3)
				w.group().Migrate.MaxParallel = test.maxParallel
				left, came, other := w.alloc("a3"), w.alloc(order[0]), w.alloc(order[1])
				came.NodeID, other.NodeID = "n1", "n2"
				w.drain("n1", test.deadline)
				w.drain("n2", 0)
				for _, a := range w.allocs {
					a.DeploymentStatus.Canary = true
				}
				left.DesiredStatus, left.ClientStatus, left.NextAllocation = cluster.DesiredStop, cluster.ClientComplete, came.ID
				left.DesiredTransition = cluster.DesiredTransition{Migrate: true, Class: cluster.MarkCanary}
				came.PreviousAllocation, came.DeploymentStatus.Healthy, came.CreateTime = left.ID, nil, epoch
				_, _, refused := Recheck(w, withEvals(&Marks{At: epoch, Marks: []Mark{
					{Alloc: came.ID, Group: web, Node: "n1", Drain: "d-n1", Revision: 7, Class: test.class},
					{Alloc: other.ID, Group: web, Node: "n2", Drain: "d-n2", Revision: 7, Class: cluster.MarkCanary},
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
