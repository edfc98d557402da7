package rules

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// judgeOneByOne is the twin of Recheck: it writes each accepted mark into a copy of the world and
// judges the next mark there.
func judgeOneByOne(w *fixture.World, m *Marks) (accepted []Mark, evals []cluster.EvalID, refused []cluster.AllocID) {
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
	state := &twin{rows: rows{w}, now: m.At, policy: m.Policy, turnsIn: w}
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

// needsEvaluation: a marked allocation of the group still runs on a reachable draining node, and no
// evaluation of its job would stop it.
func needsEvaluation(w *fixture.World, key cluster.GroupKey) bool {
	state := &twin{rows: rows{w}}
	for _, a := range w.Allocs {
		n := state.nodeOf(a)
		if a.GroupKey() == key && n != nil && n.Drain != nil && !hasEnded(a) && !toStop(a) && state.mustMove(a) &&
			!state.cannotReport(a) && len(state.evalsOf(a, "pending"))+len(state.evalsOf(a, "blocked")) == 0 {
			return true
		}
	}
	return false
}

func TestRecheck_AgreesWithTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
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

// A refused mark does not refuse others: without the refused marks, the same marks are accepted.
func TestRecheck_RefusedMarksLeaveNoTrace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
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

// A paced mark leaves its group at least count - max_parallel healthy allocations, by the
// twin's count, with any other marks in the entry. A mark after a requested replacement leaves as many as before.
func TestRecheck_KeepsTheBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		entry := anyEntry(t, w, now, anyPolicy(t))
		for i := range entry.Marks { // the most that are possible
			if fixture.OneIn(t, 2, "paced") {
				entry.Marks[i].Class = cluster.MarkPaced
			}
		}
		accepted, _, _ := Recheck(w, entry)
		state := &twin{rows: rows{w}, now: now, policy: entry.Policy}
		for _, m := range accepted {
			a, before := state.Alloc(m.Alloc), state
			state = state.after(m)
			switch {
			case m.Surge:
				must.Eq(t, before.healthyIn(a), state.healthyIn(a))
			case m.Class == cluster.MarkPaced && movesBeside(before, a):
				must.True(t, before.isReplacedBeside(a))
				if next := before.Alloc(a.NextAllocation); next.Standby && next.NextAllocation == "" {
					must.Eq(t, before.healthyIn(a), state.healthyIn(a))
				}
			case m.Class == cluster.MarkPaced:
				must.GreaterEq(t, state.count(a)-state.maxParallel(a), state.healthyIn(a), must.Sprintf("group of %v", m))
			}
		}
	})
}

// Recheck writes neither to the rows nor to the entry.
func TestRecheck_ChangesNoInput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		entry := anyEntry(t, w, now, anyPolicy(t))
		rows, marks := w.DeepCopy(), slices.Clone(entry.Marks)
		Recheck(w, entry)
		must.True(t, reflect.DeepEqual(rows, w))
		must.True(t, slices.Equal(marks, entry.Marks))
	})
}

// An entry may hold anything. Wrong items are refused, and nothing panics.
func FuzzRecheck(f *testing.F) {
	f.Add([]byte("an entry"))
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		w, now := fixture.AnyWorld(t)
		p := Policy{
			HealthGrace: time.Duration(rapid.Int64().Draw(t, "grace")), StopMargin: time.Duration(rapid.Int64().Draw(t, "margin")),
			BelowBudget: BelowBudget(rapid.Byte().Draw(t, "below budget")), PluginsAfterDeadline: PluginOrder(rapid.Byte().Draw(t, "plugins")),
			Completion: CompletionPolicy(rapid.Byte().Draw(t, "contract")),
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
