package rules

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// anyEntry draws an entry of marks. The twin would allow each of one half of the marks alone. In
// the others any field may be wrong.
func anyEntry(t *rapid.T, w *fixture.World, now time.Time, p Policy) *Marks {
	m := &Marks{At: now, Policy: p}
	for _, a := range w.Allocs {
		if fixture.OneIn(t, 5, "left out") {
			continue
		}
		mark := Mark{Alloc: a.ID, Group: a.GroupKey(), Node: a.NodeID, Drain: fixture.DrainID(a.NodeID), Revision: 1}
		if n := w.Node(a.NodeID); n != nil && n.Drain != nil {
			mark.Revision = n.Drain.Revision
			state := &twin{rows: rows{w}, now: now, policy: p}
			mark.Class, _ = state.class(a)
			mark.Surge = mark.Class == cluster.MarkPaced && state.needsReplacement(a) && !state.isRequested(a)
		}
		if mark.Class == cluster.MarkPaced && fixture.OneIn(t, 5, "proceed") {
			mark.Class = cluster.MarkProceed
		}
		if fixture.OneIn(t, 6, "spoilt") {
			spoil(t, &mark)
		}
		m.Marks = append(m.Marks, mark)
	}
	if len(m.Marks) > 0 && fixture.OneIn(t, 3, "twice") {
		again := fixture.OneOf(t, "again", m.Marks...)
		if rapid.Bool().Draw(t, "spoilt again") {
			spoil(t, &again)
		}
		m.Marks = append(m.Marks, again)
	}
	if !fixture.OneIn(t, 3, "shuffled") {
		slices.SortStableFunc(m.Marks, Mark.Compare)
	} else {
		m.Marks = rapid.Permutation(m.Marks).Draw(t, "order")
	}
	for _, j := range w.Jobs {
		for _, g := range []string{"g0", "g1"} {
			if fixture.OneIn(t, 3, "reevaluated") {
				m.Reevaluate = append(m.Reevaluate, cluster.GroupKey{Job: j.Key(), Name: g})
			}
		}
		for range fixture.OneOf(t, "evaluations", 1, 1, 1, 0, 2) {
			m.Evals = append(m.Evals, &cluster.Evaluation{
				ID: cluster.EvalID(fmt.Sprintf("new%d", len(m.Evals))), Namespace: j.Namespace, JobID: j.ID, Status: cluster.EvalPending,
			})
		}
	}
	if fixture.OneIn(t, 5, "nil evaluation") {
		m.Evals = append(m.Evals, nil)
	}
	return m
}

// spoil makes one field wrong.
func spoil(t *rapid.T, m *Mark) {
	switch rapid.IntRange(0, 7).Draw(t, "what is wrong") {
	case 0:
		m.Alloc = "unknown"
	case 1:
		m.Group.Name = "elsewhere"
	case 2:
		m.Group.Job.Namespace = "elsewhere"
	case 3:
		m.Node = "n9"
	case 4:
		m.Drain = "another"
	case 5:
		m.Revision++
	case 6:
		m.Surge = !m.Surge
	case 7:
		m.Class = cluster.MarkClass(rapid.Byte().Draw(t, "class"))
	}
}

// anyPending draws the TermState of a leader. Some marks are in flight, some belong to another drain.
func anyPending(t *rapid.T, w *fixture.World, now time.Time) TermState {
	if fixture.OneIn(t, 4, "empty state") {
		return TermState{}
	}
	p := TermState{Marks: map[cluster.AllocID]PendingMark{}, Barrier: fixture.OneIn(t, 4, "barrier")}
	p.HeldSince = func(_ cluster.GroupKey, r Reason) time.Time {
		if r == ReasonBelowBudget {
			return fixture.Epoch.Add(-time.Hour)
		}
		return time.Time{}
	}
	if fixture.OneIn(t, 2, "failed") {
		p.Attempts, p.LastError = 2, errors.New("no quorum")
	}
	for _, a := range w.Allocs {
		if fixture.OneIn(t, 5, "pending") {
			p.Marks[a.ID] = PendingMark{
				Drain: fixture.OneOf(t, "drain", fixture.DrainID(a.NodeID), fixture.DrainID(a.NodeID), "another"),
				Since: now.Add(-time.Second), InFlight: rapid.Bool().Draw(t, "in flight"),
			}
		}
	}
	return p
}

func anyPolicy(t *rapid.T) Policy {
	return Policy{
		HealthGrace:          fixture.OneOf(t, "grace", 0, 30*time.Second),
		StopMargin:           fixture.OneOf(t, "margin", 0, 5*time.Second),
		BelowBudget:          fixture.OneOf(t, "below budget", BelowBudgetHold, BelowBudgetProceed),
		PluginsAfterDeadline: fixture.OneOf(t, "plugins", PluginsAfterWait, PluginsAfterStop),
		Completion:           CompletionPolicy(rapid.IntRange(0, 3).Draw(t, "completion")),
	}
}

// The generator draws every class and reason. Otherwise the properties would not test them.
func TestGenerator_MeetsEveryClassAndReason(t *testing.T) {
	t.Parallel()
	if !fixture.ManyWorlds() {
		t.Skip("too few worlds to meet everything")
	}
	classes, reasons := map[cluster.MarkClass]int{}, map[Reason]int{}
	outcomes := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w, now := fixture.AnyWorld(rt)
		policy := anyPolicy(rt)
		s := NewPlanner(w, now, policy)
		marks := &Marks{At: now, Policy: policy}
		for _, key := range w.Groups() {
			marks.Marks = append(marks.Marks, s.PlanGroup(key, nil).Marks...)
		}
		for n := range w.DrainingNodes() {
			plan := s.PlanNode(n)
			marks.Marks = append(marks.Marks, plan.Marks...)
			if report, err := Explain(w, anyPending(rt, w, now), n.ID, now, policy); err == nil {
				for _, a := range report.Allocs {
					reasons[a.Reason]++
				}
			}
			if plan.Completion != nil {
				outcomes[policy.Completion.String()]++
			}
		}
		accepted, _, _ := Recheck(w, withEvals(marks))
		for _, mark := range accepted {
			classes[mark.Class]++
		}
	})
	for class := cluster.MarkPaced; class < cluster.MarkClassCount; class++ {
		must.Positive(t, classes[class], must.Sprintf("no mark of class %s in %v", class, classes))
	}
	for reason := range ReasonCount {
		must.Positive(t, reasons[reason], must.Sprintf("no allocation with reason %s in %v", reason, reasons))
	}
	for policy := range CompletionMarked + 1 {
		must.Positive(t, outcomes[policy.String()], must.Sprintf("no drain ended under %s", policy))
	}
	t.Logf("classes %v, reasons %v, ends %v", classes, reasons, outcomes)
}
