package drainer

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// planOneByOne is the twin of planGroup: it offers the candidates one after the
// other to a world of its own in which those before them are marked, and first of
// all what leaves with its node. What is in flight comes next, then what was asked before. Only if none of them could go
// does a group below its budget give up one.
func planOneByOne(w *world, now time.Time, p Policy, key cluster.GroupKey, asked, sent map[cluster.AllocID]bool) []Mark {
	state := &twin{world: w, now: now, policy: p, turnsIn: w}
	candidates := state.staying(key)
	for _, a := range candidates {
		if class, _ := state.class(a); withNode(class) {
			state = state.after(Mark{Alloc: a.ID, Drain: drainOf(a.NodeID), Class: class})
		}
	}
	candidates = state.staying(key)
	slices.SortStableFunc(candidates, func(a, b *cluster.Allocation) int {
		return cmp.Or(yesFirst(sent[a.ID], sent[b.ID]), yesFirst(sent[a.ID] || asked[a.ID], sent[b.ID] || asked[b.ID]), state.order(a, b))
	})
	var marks []Mark
	for _, proceed := range [...]bool{false, true} {
		for _, a := range candidates {
			n := state.nodeOf(a)
			class, _ := state.class(a)
			if class == cluster.MarkPaced && proceed {
				class = cluster.MarkProceed
			}
			if slices.ContainsFunc(marks, func(m Mark) bool { return m.Alloc == a.ID }) || !state.admits(a, class) {
				continue
			}
			m := Mark{Alloc: a.ID, Group: key, Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: class}
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
		return epoch.AddDate(100, 0, 0)
	}
	consumers := func(n *cluster.Node) (count int) {
		for _, c := range w.allocs {
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

// anyAsked draws allocations of the group whose marks are asked, or sent, and not
// answered: some that make sense, some that do not any more.
func anyAsked(t *rapid.T, w *world, key cluster.GroupKey, what string) map[cluster.AllocID]bool {
	asked := map[cluster.AllocID]bool{}
	for _, a := range w.allocs {
		if a.GroupKey() == key && oneIn(t, 4, what) {
			asked[a.ID] = true
		}
	}
	return asked
}

// of says how far marks have come of which some are asked, and some in flight.
func of(asked, sent map[cluster.AllocID]bool) func(cluster.AllocID) progress {
	return func(id cluster.AllocID) progress {
		switch {
		case sent[id]:
			return wasSent
		case asked[id]:
			return wasAsked
		}
		return notAsked
	}
}

func TestPlanGroup_AgreesWithTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		policy := anyPolicy(t)
		for _, key := range w.groups() {
			asked, sent := anyAsked(t, w, key, "asked"), anyAsked(t, w, key, "sent")
			want := planOneByOne(w, now, policy, key, asked, sent)
			must.Eq(t, want, newMoment(w, now, policy).planGroup(key, of(asked, sent)).marks, must.Sprintf("group %v", key))
		}
	})
}

// What is planned from a state is accepted in that state, in one entry with what
// every other group and node plans; and after it nothing more could be marked.
func TestPlans_AreAcceptedAndLeaveNothingOver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		policy := anyPolicy(t)
		m := newMoment(w, now, policy)
		entry := &Marks{At: now, Policy: policy}
		for _, key := range w.groups() {
			entry.Marks = append(entry.Marks, m.planGroup(key, of(anyAsked(t, w, key, "asked"), anyAsked(t, w, key, "sent"))).marks...)
		}
		for n := range w.DrainingNodes() {
			entry.Marks = append(entry.Marks, m.planNode(n).marks...)
		}
		slices.SortFunc(entry.Marks, Mark.compare)

		accepted, _, refused := Recheck(w, withEvals(entry))
		must.Eq(t, nil, refused)
		must.Eq(t, entry.Marks, accepted)

		state := &twin{world: w, now: now, policy: policy, turnsIn: w}
		for _, mark := range accepted {
			state = state.after(mark)
		}
		for _, key := range w.groups() {
			for _, a := range state.staying(key) {
				for class := range cluster.MarkClassCount {
					must.False(t, state.admits(a, class), must.Sprintf("%s could still be marked %s", a.ID, class))
				}
			}
		}
	})
}

func TestPlanNode_AgreesWithTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		policy := anyPolicy(t)
		state := &twin{world: w, now: now, policy: policy}
		for n := range w.DrainingNodes() {
			var want []Mark
			for _, a := range w.allocs {
				if a.NodeID != n.ID || hasEnded(a) || isAsked(a) {
					continue
				}
				if class, _ := state.class(a); withNode(class) {
					want = append(want, Mark{Alloc: a.ID, Group: a.GroupKey(), Node: n.ID, Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: class})
				}
			}
			slices.SortFunc(want, Mark.compare)
			plan := newMoment(w, now, policy).planNode(n)
			must.Eq(t, want, plan.marks, must.Sprintf("node %s", n.ID))
			must.Eq(t, state.ended(n), plan.end.done, must.Sprintf("node %s", n.ID))
		}
	})
}

// With nothing changing, what a plan wants changes only at a deadline or at the
// time it asked to be woken: so between those times nobody has to look.
func TestPlans_StateWhenToLookAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		policy := anyPolicy(t)
		later := now.Add(seconds(t, 0, 600, "later"))
		early, late := newMoment(w, now, policy), newMoment(w, later, policy)
		announced := func(wakeAt time.Time) bool {
			met := !wakeAt.IsZero() && !wakeAt.After(later)
			for n := range w.DrainingNodes() {
				s := n.Drain.Strategy
				met = met || (s.Deadline > 0 && s.ForceDeadline.After(now) && !s.ForceDeadline.After(later))
			}
			return met
		}
		for n := range w.DrainingNodes() {
			before, after := early.planNode(n), late.planNode(n)
			if !announced(before.end.wait.ends) {
				must.Eq(t, before.marks, after.marks, must.Sprintf("node %s, %s later", n.ID, later.Sub(now)))
				must.Eq(t, before.end.done, after.end.done, must.Sprintf("node %s, %s later", n.ID, later.Sub(now)))
			}
		}
		for _, key := range w.groups() {
			before, after := early.planGroup(key, nil), late.planGroup(key, nil)
			if !announced(before.wakeAt) {
				must.Eq(t, before.marks, after.marks, must.Sprintf("group %s, %s later", key, later.Sub(now)))
			}
		}
	})
}

// When all that a group wants was written, in one entry with what other groups and nodes
// want, and nothing else has changed, it wants nothing more and holds the rest for the same
// reasons: who knows that need not plan it again. Past a deadline the entry may have been the
// end of a stage, of which nothing has to be waited for: what waited for it leaves with its
// node, whose mark of it has the group planned, and the state dates that wait.
func TestPlanGroup_StandsWhenWritten(t *testing.T) {
	t.Parallel()
	stood, besideNodes := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		policy := anyPolicy(t)
		m := newMoment(w, now, policy)
		entry := &Marks{At: now, Policy: policy}
		plans, leaves := map[cluster.GroupKey]groupPlan{}, map[cluster.GroupKey]bool{}
		for _, key := range w.groups() {
			plans[key] = m.planGroup(key, of(anyAsked(t, w, key, "asked"), nil))
			entry.Marks = append(entry.Marks, plans[key].marks...)
		}
		for n := range w.DrainingNodes() {
			for _, mark := range m.planNode(n).marks {
				leaves[mark.Group] = true
				entry.Marks = append(entry.Marks, mark)
			}
		}
		slices.SortFunc(entry.Marks, Mark.compare)
		accepted, evals, refused := Recheck(w, withEvals(entry))
		must.SliceEmpty(t, refused)
		after := w.clone()
		after.mark(accepted, evals, now)
		next := map[cluster.GroupKey]bool{} // what waited for a stage and leaves now
		for n := range after.DrainingNodes() {
			for _, mark := range newMoment(after, now, policy).planNode(n).marks {
				next[mark.Group] = true
			}
		}
		for _, key := range w.groups() {
			before := plans[key]
			if len(before.marks) == 0 || !before.wakeAt.IsZero() {
				continue
			}
			stood++
			if leaves[key] {
				besideNodes++
			}
			plan := newMoment(after, now, policy).planGroup(key, nil)
			note := must.Sprintf("group %s", key)
			must.SliceEmpty(t, plan.marks, note)
			if next[key] && !plan.holds[ReasonWaitingForStage] {
				before.holds[ReasonWaitingForStage] = false
			}
			must.Eq(t, before.holds, plan.holds, note)
			must.True(t, plan.wakeAt.IsZero(), note)
			must.False(t, plan.stuck, note)
			must.True(t, slices.EqualFunc(before.onDraining, plan.onDraining, func(a, b *cluster.Allocation) bool { return a.ID == b.ID }), note)
		}
	})
	if manyWorlds() {
		must.Positive(t, stood)
		must.Positive(t, besideNodes)
	}
}

// A wake-up that is already due would be asked for again at once, for ever.
func TestPlans_WakeInTheFuture(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := anyWorld(t)
		m := newMoment(w, now, anyPolicy(t))
		for n := range w.DrainingNodes() {
			if at := m.planNode(n).end.wait.ends; !at.IsZero() {
				must.True(t, at.After(now), must.Sprintf("node %s wakes at %s, now %s", n.ID, at, now))
			}
		}
		for _, key := range w.groups() {
			if at := m.planGroup(key, nil).wakeAt; !at.IsZero() {
				must.True(t, at.After(now), must.Sprintf("group %s wakes at %s, now %s", key, at, now))
			}
		}
	})
}

// The candidate that leaves first, one rule of the order at a time.
func TestPlanGroup_Order(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*town)
		want cluster.AllocID
	}{
		"the lower id":         {func(w *town) {}, "a1"},
		"the lower node id":    {func(w *town) { w.alloc("a1").NodeID, w.alloc("a2").NodeID = "n2", "n1" }, "a2"},
		"fewer consumers left": {func(w *town) { w.place("b1", w.job("batch", cluster.JobBatch), "n1") }, "a2"},
		"an ended consumer is not left": {func(w *town) {
			w.place("b1", w.job("batch", cluster.JobBatch), "n1").ClientStatus = cluster.ClientComplete
		}, "a1"},
		"a system job is no consumer": {func(w *town) { w.place("s1", w.job("logs", cluster.JobSystem), "n1") }, "a1"},
		"a deadline before none":      {func(w *town) { w.drain("n2", time.Hour) }, "a2"},
		"the earlier deadline":        {func(w *town) { w.drain("n1", 2*time.Hour); w.drain("n2", time.Hour) }, "a2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(3, 3)
			w.drain("n1", 0)
			w.drain("n2", 0)
			test.edit(w)
			marks := newMoment(w, epoch, Policy{}).planGroup(web, nil).marks
			must.Len(t, 1, marks)
			must.Eq(t, test.want, marks[0].Alloc)
		})
	}
}

// What is asked and not answered takes room, and is wanted again before all others.
func TestPlanGroup_AskedKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w := newTown(3, 3)
	w.drain("n1", 0)
	w.drain("n3", 0)
	asked := map[cluster.AllocID]bool{"a3": true}
	marks := newMoment(w, epoch, Policy{}).planGroup(web, of(asked, nil)).marks
	must.Eq(t, []Mark{{Alloc: "a3", Group: web, Node: "n3", Drain: "d-n3", Revision: 7, Class: cluster.MarkPaced}}, marks)
}

// What is in flight takes room before what is asked and more urgent: it can be taken
// back no more, and the other would be written to be refused.
func TestPlanGroup_SentKeepsItsPlaceBeforeAsked(t *testing.T) {
	t.Parallel()
	w := newTown(3, 3)
	w.drain("n1", time.Minute)
	w.drain("n3", 0)
	asked := map[cluster.AllocID]bool{"a1": true, "a3": true}
	for id, sent := range map[cluster.AllocID]map[cluster.AllocID]bool{"a1": nil, "a3": {"a3": true}} {
		marks := newMoment(w, epoch, Policy{}).planGroup(web, of(asked, sent)).marks
		must.Len(t, 1, marks)
		must.Eq(t, id, marks[0].Alloc)
	}
}

// Asked to proceed with one of a group below its budget, and then another of the
// group turned out unhealthy: the two do not go in one entry. Judged after the
// unhealthy one, the other would be refused, and planned again, for ever.
func TestPlanGroup_ProceedsOnlyIfNothingElseLeaves(t *testing.T) {
	t.Parallel()
	w := newTown(1, 2)
	w.group().Count = 5
	w.drain("n1", 0)
	w.alloc("a1").DeploymentStatus.Healthy = new(false)
	policy := Policy{BelowBudget: Proceed}
	marks := newMoment(w, epoch, policy).planGroup(web, of(map[cluster.AllocID]bool{"a2": true}, nil)).marks
	must.Len(t, 1, marks)
	must.Eq(t, cluster.AllocID("a1"), marks[0].Alloc)
	_, _, refused := Recheck(w, withEvals(&Marks{At: epoch, Policy: policy, Marks: marks}))
	must.SliceEmpty(t, refused)
}

// An allocation that was judged healthy and does not run (its client started it
// anew) is held for its health and leaves when it is overdue: somebody has to
// look then.
func TestPlanGroup_WakesForOneJudgedHealthyThatDoesNotRun(t *testing.T) {
	t.Parallel()
	w := newTown(1, 1)
	w.drain("n1", 0)
	w.alloc("a1").ClientStatus, w.alloc("a1").CreateTime = cluster.ClientPending, epoch
	plan := newMoment(w, epoch, Policy{}).planGroup(web, nil)
	must.SliceEmpty(t, plan.marks)
	due := epoch.Add(time.Minute + DefaultHealthGrace)
	must.Eq(t, due, plan.wakeAt)
	plan = newMoment(w, due, Policy{}).planGroup(web, nil)
	must.Eq(t, []Mark{{Alloc: "a1", Group: web, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkFree}}, plan.marks)
}

// What has come in a canary's place keeps its slot until it is overdue, though it is itself
// to leave and has no verdict to wait for: the next canary was forgotten at that time. If
// nothing wants a slot nobody has to be woken.
func TestPlanGroup_WakesForTheSlotOfOneAskedAgain(t *testing.T) {
	t.Parallel()
	w := newTown(2, 3)
	w.drain("n1", 0)
	w.drain("n2", -1)
	moved, next, other := w.alloc("a1"), w.alloc("a2"), w.alloc("a3")
	for _, a := range []*cluster.Allocation{moved, next, other} {
		a.DeploymentStatus.Canary = true
	}
	moved.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: drainOf("n1"), Class: cluster.MarkCanary, MarkedAt: epoch}
	moved.DesiredStatus, moved.ClientStatus, moved.NextAllocation = cluster.DesiredStop, cluster.ClientComplete, next.ID
	next.PreviousAllocation, next.CreateTime, next.DeploymentStatus.Healthy = moved.ID, epoch, nil
	next.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: drainOf("n2"), Class: cluster.MarkForced, MarkedAt: epoch}
	due := epoch.Add(time.Minute + DefaultHealthGrace)

	plan := newMoment(w, epoch, Policy{}).planGroup(web, nil)
	must.SliceEmpty(t, plan.marks)
	must.Eq(t, due, plan.wakeAt)
	plan = newMoment(w, due, Policy{}).planGroup(web, nil)
	must.Eq(t, []Mark{{Alloc: other.ID, Group: web, Node: "n1", Drain: "d-n1", Revision: 7, Class: cluster.MarkCanary}}, plan.marks)

	other.DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: drainOf("n1"), Class: cluster.MarkCanary, MarkedAt: epoch}
	must.True(t, newMoment(w, epoch, Policy{}).planGroup(web, nil).wakeAt.IsZero())
}

// What a deadline takes of a group on one node is asked and not answered: it
// leaves no room for another on a second node, in the same step.
func TestPlanGroup_WhatADeadlineTakesTakesRoom(t *testing.T) {
	t.Parallel()
	w := newTown(2, 2)
	w.drain("n1", 0)
	w.drain("n2", -1)
	m := newMoment(w, epoch, Policy{})
	must.SliceEmpty(t, m.planGroup(web, nil).marks)
	must.Len(t, 1, m.planNode(w.node("n2")).marks)
}

// Every reason for which the state holds no time is dated by itself: one
// allocation that waits for its health does not hide since when another has
// waited for room.
func TestPlanGroup_HoldsAreKeptApart(t *testing.T) {
	t.Parallel()
	w := newTown(1, 2)
	w.group().Count = 5
	w.drain("n1", 0)
	w.alloc("a1").DeploymentStatus, w.alloc("a1").CreateTime = nil, epoch
	plan := newMoment(w, epoch, Policy{}).planGroup(web, nil)
	must.Eq(t, [ReasonCount]bool{ReasonWaitingForHealth: true, ReasonWaitingForRoom: true}, plan.holds)
}

// Once nobody of the group has to be asked any more, a verdict that is due
// elsewhere concerns no drain.
func TestPlanGroup_DoesNotWakeForOthersVerdicts(t *testing.T) {
	t.Parallel()
	w := newTown(2, 2)
	w.drain("n1", 0)
	elsewhere := w.alloc("a2")
	elsewhere.DeploymentStatus, elsewhere.CreateTime = nil, epoch
	m := newMoment(w, epoch, Policy{})
	must.Eq(t, epoch.Add(time.Minute+DefaultHealthGrace), m.planGroup(web, nil).wakeAt)
	w.alloc("a1").DesiredStatus = cluster.DesiredStop
	must.True(t, m.planGroup(web, nil).wakeAt.IsZero())
}
