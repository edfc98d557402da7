package rules

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// planOneByOne is the twin of planning a group. It tries the candidates one after the other in a
// copy of the world in which the earlier ones are marked: first those that leave with their nodes,
// then those whose marks are in flight. It tries class proceed only if no other could be marked.
func planOneByOne(w *fixture.World, now time.Time, p Policy, key cluster.GroupKey, inFlight map[cluster.AllocID]bool) []Mark {
	state := &twin{rows: rows{w}, now: now, policy: p, turnsIn: w}
	before := state
	for _, a := range state.staying(key) {
		if class, _ := state.class(a); withNode(class) {
			state = state.after(Mark{Alloc: a.ID, Drain: fixture.DrainID(a.NodeID), Class: class})
		}
	}
	// A healthy standby that the marks make active is planned in the next step.
	candidates := slices.DeleteFunc(state.staying(key), func(a *cluster.Allocation) bool {
		_, hold := before.class(w.Alloc(a.ID))
		return w.Alloc(a.ID).Standby && hold == ReasonWaitingForSurge
	})
	slices.SortStableFunc(candidates, func(a, b *cluster.Allocation) int {
		return cmp.Or(yesFirst(inFlight[a.ID], inFlight[b.ID]), state.order(a, b))
	})
	candidates = requestsLast(state, candidates, inFlight)
	var marks []Mark
	for _, proceed := range [...]bool{false, true} {
		for _, a := range candidates {
			n := state.nodeOf(a)
			class, _ := state.class(a)
			if class == cluster.MarkPaced && proceed {
				class = cluster.MarkProceed
			}
			request := class == cluster.MarkPaced && state.needsReplacement(a) && !state.isRequested(a)
			if slices.ContainsFunc(marks, func(m Mark) bool { return m.Alloc == a.ID }) || !state.admits(a, class, request) {
				continue
			}
			m := Mark{Alloc: a.ID, Group: key, Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: class, Surge: request}
			marks = append(marks, m)
			state = state.after(m)
		}
	}
	slices.SortFunc(marks, func(a, b Mark) int { return cmp.Compare(a.Alloc, b.Alloc) })
	return marks
}

func yesFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// order is the order of candidates: not running or unhealthy before healthy,
// node with the earlier deadline, node with fewer consumers left, node id,
// allocation id.
func (w *twin) order(a, b *cluster.Allocation) int {
	na, nb := w.nodeOf(a), w.nodeOf(b)
	deadline := func(n *cluster.Node) time.Time {
		switch s := n.Drain.Strategy; {
		case s.Deadline < 0:
			return time.Time{}
		case s.Deadline > 0:
			return s.ForceDeadline
		}
		return fixture.Epoch.AddDate(100, 0, 0)
	}
	consumers := func(n *cluster.Node) (count int) {
		for _, c := range w.Allocs {
			if c.NodeID == n.ID && turnOf(c) == 0 && !hasEnded(c) {
				count++
			}
		}
		return count
	}
	return cmp.Or(
		-yesFirst(w.isHealthy(a), w.isHealthy(b)),
		deadline(na).Compare(deadline(nb)),
		cmp.Compare(consumers(na), consumers(nb)),
		cmp.Compare(na.ID, nb.ID),
		cmp.Compare(a.ID, b.ID),
	)
}

// planFirst plans a group with some marks in flight, as Explain does.
func planFirst(s *Planner, key cluster.GroupKey, inFlight map[cluster.AllocID]bool) []Mark {
	g := s.group(key)
	return g.plan(g.census(), g.budget(), func(id cluster.AllocID) bool { return inFlight[id] }, nil).Marks
}

func TestPlanGroup_AgreesWithTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		policy := anyPolicy(t)
		for _, key := range w.Groups() {
			inFlight := map[cluster.AllocID]bool{}
			for _, a := range w.Allocs {
				inFlight[a.ID] = fixture.OneIn(t, 3, "in flight")
			}
			s := NewPlanner(w, now, policy)
			must.Eq(t, planOneByOne(w, now, policy, key, nil), s.PlanGroup(key, nil).Marks, must.Sprintf("group %v", key))
			must.Eq(t, planOneByOne(w, now, policy, key, inFlight), planFirst(s, key, inFlight), must.Sprintf("group %v, in flight %v", key, inFlight))
		}
	})
}

// planAll is the plan of all groups and nodes of a world, in one entry.
func planAll(w *fixture.World, now time.Time, p Policy) (*Marks, *Completions) {
	s := NewPlanner(w, now, p)
	marks, completions := &Marks{At: now, Policy: p}, &Completions{At: now, Policy: p}
	for _, key := range w.Groups() {
		marks.Marks = append(marks.Marks, s.PlanGroup(key, nil).Marks...)
	}
	for n := range w.DrainingNodes() {
		plan := s.PlanNode(n)
		marks.Marks = append(marks.Marks, plan.Marks...)
		if plan.Completion != nil {
			completions.Completions = append(completions.Completions, *plan.Completion)
		}
	}
	slices.SortFunc(marks.Marks, Mark.Compare)
	return marks, completions
}

// A plan is accepted in the state from which it was made, in one entry with the plans of all other
// groups and nodes. After it nothing else can be marked.
func TestPlans_AreAcceptedInTheirState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		policy := anyPolicy(t)
		marks, completions := planAll(w, now, policy)
		accepted, _, refused := Recheck(w, withEvals(marks))
		must.Eq(t, nil, refused)
		must.Eq(t, marks.Marks, accepted)
		ended, refused := RecheckCompletions(w, completions)
		must.Eq(t, nil, refused)
		must.Len(t, len(completions.Completions), ended)

		state := &twin{rows: rows{w}, now: now, policy: policy, turnsIn: w}
		for _, mark := range accepted {
			state = state.after(mark)
		}
		for _, key := range w.Groups() {
			for _, a := range state.staying(key) {
				if w.Alloc(a.ID).Standby && !a.Standby {
					continue // the marks have made it active: it is planned in the next step
				}
				for class := range cluster.MarkClassCount {
					must.False(t, state.admits(a, class, false), must.Sprintf("%s could still be marked %s", a.ID, class))
					must.False(t, state.admits(a, class, true), must.Sprintf("a replacement of %s could still be requested", a.ID))
				}
			}
		}
	})
}

// Plans depend on the state, not on the order of its rows or of a map.
func TestPlans_AreDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		policy := anyPolicy(t)
		marks, completions := planAll(w, now, policy)
		reversed := w.Clone()
		slices.Reverse(reversed.Nodes)
		slices.Reverse(reversed.Jobs)
		slices.Reverse(reversed.Allocs)
		slices.Reverse(reversed.Evals)
		marksAgain, completionsAgain := planAll(reversed, now, policy)
		must.Eq(t, marks, marksAgain)
		must.Eq(t, completions, completionsAgain)
	})
}

func TestPlanNode_AgreesWithTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		policy := anyPolicy(t)
		state := &twin{rows: rows{w}, now: now, policy: policy}
		for n := range w.DrainingNodes() {
			var want []Mark
			for _, a := range w.Allocs {
				if a.NodeID != n.ID || hasEnded(a) || isLeaving(a) {
					continue
				}
				if class, _ := state.class(a); withNode(class) {
					want = append(want, Mark{Alloc: a.ID, Group: a.GroupKey(), Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: class})
				}
			}
			slices.SortFunc(want, Mark.Compare)
			plan := NewPlanner(w, now, policy).PlanNode(n)
			must.Eq(t, want, plan.Marks, must.Sprintf("node %s", n.ID))
			must.Eq(t, state.ended(n), (plan.Completion != nil), must.Sprintf("node %s", n.ID))
		}
	})
}

// The other facts of plans agree with the twin.
func TestPlans_FactsAgreeWithTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		policy := anyPolicy(t)
		s, state := NewPlanner(w, now, policy), &twin{rows: rows{w}, now: now, policy: policy}
		for _, key := range w.Groups() {
			var nodes []cluster.NodeID
			runsOn := false
			for _, a := range w.Allocs {
				if n := state.nodeOf(a); a.GroupKey() == key && n != nil && n.Drain != nil && !hasEnded(a) {
					nodes = append(nodes, n.ID)
					runsOn = runsOn || (state.mustMove(a) && !toStop(a) && !state.cannotReport(a))
				}
			}
			slices.Sort(nodes)
			plan := s.PlanGroup(key, nil)
			must.Eq(t, nodes, plan.Nodes)
			must.Eq(t, runsOn, plan.RunsOnMarked)
			must.Eq(t, needsEvaluation(w, key), plan.Stuck)
		}
		for n := range w.DrainingNodes() {
			plan := s.PlanNode(n)
			must.Eq(t, state.deadlineMet(n), plan.Passed)
			unmarked := slices.ContainsFunc(state.leftOn(n, 2), func(a *cluster.Allocation) bool { return !isLeaving(a) })
			left := !state.stageOver(n, 2) && (unmarked || policy.Completion != CompletionMarked)
			must.Eq(t, left && state.isTurn(n, 2), plan.PluginsTurn, must.Sprintf("node %s", n.ID))
		}
	})
}

// While the state stays the same, a plan changes only at a deadline or at its own WakeAt.
func TestPlans_StateWhenToPlanAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		policy := anyPolicy(t)
		later := now.Add(fixture.Seconds(t, 0, 600, "later"))
		early, late := NewPlanner(w, now, policy), NewPlanner(w, later, policy)
		announced := func(wakeAt time.Time) bool {
			met := !wakeAt.IsZero() && !wakeAt.After(later)
			for n := range w.DrainingNodes() {
				s := n.Drain.Strategy
				met = met || (s.Deadline > 0 && s.ForceDeadline.After(now) && !s.ForceDeadline.After(later))
			}
			return met
		}
		for n := range w.DrainingNodes() {
			before, after := early.PlanNode(n), late.PlanNode(n)
			if !announced(before.WakeAt) {
				must.Eq(t, before.Marks, after.Marks, must.Sprintf("node %s, %s later", n.ID, later.Sub(now)))
				must.Eq(t, (before.Completion != nil), (after.Completion != nil), must.Sprintf("node %s, %s later", n.ID, later.Sub(now)))
			}
		}
		for _, key := range w.Groups() {
			before, after := early.PlanGroup(key, nil), late.PlanGroup(key, nil)
			if !announced(before.WakeAt) {
				must.Eq(t, before.Marks, after.Marks, must.Sprintf("group %s, %s later", key, later.Sub(now)))
			}
		}
	})
}

// A time in the past would wake the drainer again and again.
func TestPlans_WakeInTheFuture(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		m := NewPlanner(w, now, anyPolicy(t))
		for n := range w.DrainingNodes() {
			if at := m.PlanNode(n).WakeAt; !at.IsZero() {
				must.True(t, at.After(now), must.Sprintf("node %s wakes at %s, now %s", n.ID, at, now))
			}
		}
		for _, key := range w.Groups() {
			if at := m.PlanGroup(key, nil).WakeAt; !at.IsZero() {
				must.True(t, at.After(now), must.Sprintf("group %s wakes at %s, now %s", key, at, now))
			}
		}
	})
}

// Each rule of the order decides which candidate is marked first.
func TestPlanGroup_Order(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*fixture.Cluster)
		want cluster.AllocID
	}{
		"the lower id":         {func(w *fixture.Cluster) {}, "a1"},
		"the lower node id":    {func(w *fixture.Cluster) { w.Alloc("a1").NodeID, w.Alloc("a2").NodeID = "n2", "n1" }, "a2"},
		"fewer consumers left": {func(w *fixture.Cluster) { w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1") }, "a2"},
		"an ended consumer is not left": {func(w *fixture.Cluster) {
			w.Place("b1", w.AddJob("batch", cluster.JobBatch), "n1").ClientStatus = cluster.ClientComplete
		}, "a1"},
		"a system job is no consumer": {func(w *fixture.Cluster) { w.Place("s1", w.AddJob("logs", cluster.JobSystem), "n1") }, "a1"},
		"a deadline before none":      {func(w *fixture.Cluster) { w.StartDrain("n2", time.Hour) }, "a2"},
		"the earlier deadline":        {func(w *fixture.Cluster) { w.StartDrain("n1", 2*time.Hour); w.StartDrain("n2", time.Hour) }, "a2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(3, 3)
			w.StartDrain("n1", 0)
			w.StartDrain("n2", 0)
			test.edit(w)
			marks := NewPlanner(w, fixture.Epoch, Policy{}).PlanGroup(fixture.Group, nil).Marks
			must.Len(t, 1, marks)
			must.Eq(t, test.want, marks[0].Alloc)
		})
	}
}

// A mark in flight uses room before all others, because it cannot be withdrawn.
func TestPlan_InFlightKeepsItsRoom(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(3, 3)
	w.StartDrain("n1", time.Minute)
	w.StartDrain("n3", 0)
	s := NewPlanner(w, fixture.Epoch, Policy{})
	for id, inFlight := range map[cluster.AllocID]map[cluster.AllocID]bool{"a1": nil, "a3": {"a3": true}} {
		marks := planFirst(s, fixture.Group, inFlight)
		must.Len(t, 1, marks)
		must.Eq(t, id, marks[0].Alloc)
	}
}

// A group below its budget proceeds with one allocation only if no other is marked. After a mark of
// an unhealthy one, the FSM would refuse it each time.
func TestPlanGroup_ProceedsOnlyIfNothingElseLeaves(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 2)
	w.TaskGroup().Count = 5
	w.StartDrain("n1", 0)
	w.Alloc("a1").DeploymentStatus.Healthy = new(false)
	policy := Policy{BelowBudget: BelowBudgetProceed}
	marks := NewPlanner(w, fixture.Epoch, policy).PlanGroup(fixture.Group, nil).Marks
	must.Len(t, 1, marks)
	must.Eq(t, cluster.AllocID("a1"), marks[0].Alloc)
	_, _, refused := Recheck(w, withEvals(&Marks{At: fixture.Epoch, Policy: policy, Marks: marks}))
	must.SliceEmpty(t, refused)
}

// An allocation has a healthy verdict and does not run, because its client restarted it. It is
// held for its health, and marked when it is overdue.
func TestPlanGroup_WakesForHealthyVerdictWithoutRunningTask(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 1)
	w.StartDrain("n1", 0)
	w.Alloc("a1").ClientStatus, w.Alloc("a1").CreateTime = cluster.ClientPending, fixture.Epoch
	plan := NewPlanner(w, fixture.Epoch, Policy{}).PlanGroup(fixture.Group, nil)
	must.SliceEmpty(t, plan.Marks)
	due := fixture.Epoch.Add(time.Minute + DefaultHealthGrace)
	must.Eq(t, due, plan.WakeAt)
	plan = NewPlanner(w, due, Policy{}).PlanGroup(fixture.Group, nil)
	must.Eq(t, []Mark{{Alloc: "a1", Group: fixture.Group, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkFree}}, plan.Marks)
}

// An outage makes the whole group unhealthy while its node drains. Each of its allocations was moved
// at once, and the service came back with none of them. They are held until they have been unhealthy
// for the healthy deadline of the group. One that was never healthy leaves at once.
func TestPlanGroup_HoldsWhatWasHealthy(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 3)
	w.TaskGroup().Migrate.MaxParallel = 3
	w.StartDrain("n1", 0)
	since := fixture.Epoch.Add(-time.Second)
	for i, a := range w.Allocs {
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false), UnhealthySince: since.Add(time.Duration(i) * time.Second)}
	}
	w.Alloc("a3").DeploymentStatus.UnhealthySince = time.Time{}
	for _, test := range []struct {
		after  time.Duration
		leaves []cluster.AllocID
		wakeAt time.Duration
	}{
		{time.Second, []cluster.AllocID{"a3"}, time.Minute},
		{time.Minute - 1, []cluster.AllocID{"a3"}, time.Minute},
		{time.Minute, []cluster.AllocID{"a1", "a3"}, time.Minute + time.Second},
		{time.Minute + time.Second, []cluster.AllocID{"a1", "a2", "a3"}, 0},
	} {
		now := since.Add(test.after)
		plan := NewPlanner(w, now, Policy{}).PlanGroup(fixture.Group, nil)
		var leaves []cluster.AllocID
		for _, m := range plan.Marks {
			must.Eq(t, cluster.MarkFree, m.Class)
			leaves = append(leaves, m.Alloc)
		}
		must.Eq(t, test.leaves, leaves)
		must.Eq(t, test.wakeAt > 0, plan.Holds[ReasonBelowBudget])
		if test.wakeAt == 0 {
			must.True(t, plan.WakeAt.IsZero())
		} else {
			must.Eq(t, since.Add(test.wakeAt), plan.WakeAt)
		}
	}
}

// The replacement of a canary holds its slot until the replacement is overdue, even if it is marked
// itself and waits for no verdict. Then the next canary is planned. Without another canary the plan
// has no such time.
func TestPlanGroup_WakesForSlotOfMarkedReplacement(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 3)
	w.StartDrain("n1", 0)
	w.StartDrain("n2", -1)
	moved, next, other := w.Alloc("a1"), w.Alloc("a2"), w.Alloc("a3")
	for _, a := range []*cluster.Allocation{moved, next, other} {
		a.DeploymentStatus.Canary = true
	}
	moved.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: fixture.DrainID("n1"), Class: cluster.MarkCanary, MarkedAt: fixture.Epoch}
	moved.DesiredStatus, moved.ClientStatus, moved.NextAllocation = cluster.DesiredStop, cluster.ClientComplete, next.ID
	next.PreviousAllocation, next.CreateTime, next.DeploymentStatus.Healthy = moved.ID, fixture.Epoch, nil
	next.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: fixture.DrainID("n2"), Class: cluster.MarkForced, MarkedAt: fixture.Epoch}
	due := fixture.Epoch.Add(time.Minute + DefaultHealthGrace)

	plan := NewPlanner(w, fixture.Epoch, Policy{}).PlanGroup(fixture.Group, nil)
	must.SliceEmpty(t, plan.Marks)
	must.Eq(t, due, plan.WakeAt)
	plan = NewPlanner(w, due, Policy{}).PlanGroup(fixture.Group, nil)
	must.Eq(t, []Mark{{Alloc: other.ID, Group: fixture.Group, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkCanary}}, plan.Marks)

	other.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: fixture.DrainID("n1"), Class: cluster.MarkCanary, MarkedAt: fixture.Epoch}
	must.True(t, NewPlanner(w, fixture.Epoch, Policy{}).PlanGroup(fixture.Group, nil).WakeAt.IsZero())
}

// A deadline marks an allocation of the group on one node. It leaves no room for another
// allocation on a second node in the same step.
func TestPlanGroup_DeadlineMarkTakesRoom(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 2)
	w.StartDrain("n1", 0)
	w.StartDrain("n2", -1)
	m := NewPlanner(w, fixture.Epoch, Policy{})
	must.SliceEmpty(t, m.PlanGroup(fixture.Group, nil).Marks)
	must.Len(t, 1, m.PlanNode(w.Node("n2")).Marks)
}

// All reasons of a group are recorded: one for health does not hide one for room.
func TestPlanGroup_EachHoldIsRecorded(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(1, 2)
	w.TaskGroup().Count = 5
	w.StartDrain("n1", 0)
	w.Alloc("a1").DeploymentStatus, w.Alloc("a1").CreateTime = nil, fixture.Epoch
	plan := NewPlanner(w, fixture.Epoch, Policy{}).PlanGroup(fixture.Group, nil)
	must.Eq(t, [ReasonCount]bool{ReasonWaitingForHealth: true, ReasonWaitingForRoom: true}, plan.Holds)
}

// When no allocation of the group has to be marked any more, the plan does not wake for a verdict
// that is due on another node.
func TestPlanGroup_DoesNotWakeForOthersVerdicts(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 2)
	w.StartDrain("n1", 0)
	elsewhere := w.Alloc("a2")
	elsewhere.DeploymentStatus, elsewhere.CreateTime = nil, fixture.Epoch
	m := NewPlanner(w, fixture.Epoch, Policy{})
	must.Eq(t, fixture.Epoch.Add(time.Minute+DefaultHealthGrace), m.PlanGroup(fixture.Group, nil).WakeAt)
	w.Alloc("a1").DesiredStatus = cluster.DesiredStop
	must.True(t, m.PlanGroup(fixture.Group, nil).WakeAt.IsZero())
}

// A postponed mark used the room of its group, so another allocation stayed until the wait was over
// (swarm, small seed 2000007944).
func TestPlanGroup_PostponedMarkTakesNoRoom(t *testing.T) {
	t.Parallel()
	w := fixture.NewCluster(2, 4)
	w.StartDrain("n1", 0)
	plan := NewPlanner(w, fixture.Epoch, Policy{}).PlanGroup(fixture.Group, nil)
	must.Len(t, 1, plan.Marks)
	first := plan.Marks[0]
	plan = NewPlanner(w, fixture.Epoch, Policy{}).PlanGroup(fixture.Group, func(m Mark) bool { return m == first })
	must.Eq(t, []Mark{first}, plan.Postponed)
	must.Len(t, 1, plan.Marks)
	must.NotEq(t, first.Alloc, plan.Marks[0].Alloc)
}
