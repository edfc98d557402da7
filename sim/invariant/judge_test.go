package invariant_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// broken is a history with one violation.
type broken struct {
	name  string
	check invariant.Check
	// also are the checks that fail too.
	also []invariant.Check
	run  func(t *testing.T) *fixture
}

// fine is a history without a violation that reads like a broken one.
type fine struct {
	name string
	run  func(t *testing.T) *fixture
}

func allBroken(t *testing.T) (all []broken) {
	all, _ = written(t)
	for _, cases := range [...][]broken{
		brokenBudget(), brokenCause(), brokenOrder(), brokenEnd(), brokenTruth(), brokenItems(), brokenEvals(), brokenWrites(), brokenMemory(),
		brokenReasons(), brokenBounds(), brokenQuiet(), brokenReplicas(),
	} {
		all = append(all, cases...)
	}
	return all
}

func allFine(t *testing.T) (all []fine) {
	_, all = written(t)
	for _, cases := range [...][]fine{
		fineBudget(), fineCause(), fineOrder(), fineEnd(), fineTruth(), fineEvals(), fineMemory(), fineReasons(),
		fineBounds(), fineQuiet(), fineReplicas(),
	} {
		all = append(all, cases...)
	}
	return all
}

// A broken history fails its own check, and no other.
func TestJudge_findsEachViolation(t *testing.T) {
	t.Parallel()
	for _, c := range allBroken(t) {
		t.Run(c.check.Guarantee()+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s := c.run(t)
			must.True(t, s.j.Failed())
			expected := map[string]bool{c.check.String(): true}
			for _, also := range c.also {
				expected[also.String()] = true
			}
			found := map[string]bool{}
			for _, v := range s.j.Violations() {
				must.True(t, expected[v.Check], must.Sprint(v))
				must.NotEq(t, "", v.Text)
				found[v.Check] = true
			}
			must.Eq(t, expected, found, must.Sprint(s.j.Violations()))
		})
	}
}

// Histories that only read broken fail no check.
func TestJudge_acceptsValidHistories(t *testing.T) {
	t.Parallel()
	for _, c := range allFine(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.run(t)
			s.j.End(s.now, s.state())
			must.SliceEmpty(t, s.j.Violations())
		})
	}
}

// Every check has a history that fails it.
func TestChecks_canFail(t *testing.T) {
	t.Parallel()
	failed := map[invariant.Check]bool{}
	for _, c := range allBroken(t) {
		failed[c.check] = true
	}
	names := map[string]bool{}
	for c := range invariant.CheckCount {
		must.True(t, failed[c], must.Sprintf("no history fails %s %q", c.Guarantee(), c))
		must.False(t, names[c.String()], must.Sprintf("two checks have the name %q", c))
		names[c.String()] = true
	}
	must.Eq(t, "unknown check", invariant.CheckCount.String())
}

// Checks belong to the guarantee they are listed under.
func TestCheck_Guarantee(t *testing.T) {
	t.Parallel()
	for c, want := range map[invariant.Check]string{
		invariant.BelowLimit: "G1", invariant.SlotsTaken: "G1", invariant.NotDraining: "G2", invariant.WroteAfterTerm: "G2",
		invariant.OutOfTurn: "G3", invariant.BatchEarly: "G3", invariant.LateEnd: "G4", invariant.DeadlineMoved: "G4",
		invariant.EndedEarly: "G5", invariant.MadeEligible: "G5", invariant.NoEvaluation: "G6", invariant.NotReevaluated: "G6", invariant.NeedlessEvaluation: "G6",
		invariant.Forgotten: "G7", invariant.FactsDiffer: "G7", invariant.NoReason: "G8", invariant.WrongTotals: "G8",
		invariant.TooManyIDs: "G9", invariant.TooSoon: "G9", invariant.IdleWake: "G10", invariant.EndlessSteps: "G10",
		invariant.ReplicasDiffer: "G11", invariant.Unnamed: "G11", invariant.NeedlesslyFollowed: "G12",
	} {
		must.Eq(t, want, c.Guarantee(), must.Sprint(c))
	}
}
