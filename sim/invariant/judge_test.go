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
		brokenBudget(), brokenCause(), brokenEnd(), brokenTruth(), brokenItems(), brokenEvals(), brokenWrites(), brokenMemory(),
		brokenReasons(), brokenBounds(), brokenQuiet(), brokenReplicas(), brokenConfirmations(), brokenData(), brokenPauses(), brokenSurge(),
	} {
		all = append(all, cases...)
	}
	return all
}

func allFine(t *testing.T) (all []fine) {
	_, all = written(t)
	for _, cases := range [...][]fine{
		fineBudget(), fineCause(), fineTruth(), fineEvals(), fineMemory(), fineReasons(),
		fineReplicas(), fineConfirmations(), fineData(), finePauses(), fineSurge(),
	} {
		all = append(all, cases...)
	}
	return all
}

// A broken history fails its own check, and no other.
func TestJudge_findsEachViolation(t *testing.T) {
	t.Parallel()
	for _, c := range allBroken(t) {
		t.Run(string(c.check)+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s := c.run(t)
			must.Positive(t, s.j.Found())
			expected := map[string]bool{c.check.Rule(): true}
			for _, also := range c.also {
				expected[also.Rule()] = true
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
	for _, c := range invariant.Checks() {
		must.True(t, failed[c], must.Sprintf("no history fails %q", c))
		must.False(t, names[c.Rule()], must.Sprintf("two checks have the name %q", c))
		names[c.Rule()] = true
	}
	must.MapLen(t, len(names), failed, must.Sprint("a check is missing in the list"))
}
