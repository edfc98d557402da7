package drivertest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// rule returns the test with an id.
func rule(id string, h drivertest.Harness) []conformance.Test {
	return slices.DeleteFunc(drivertest.Tests(h), func(one conformance.Test) bool { return one.ID != id })
}

// Findings come in the order of the tests. A skip has its reason, a failure what was expected, what
// happened and the calls.
func TestJudge(t *testing.T) {
	t.Parallel()
	h := doubleHarness(scripted.Options{})
	h.Skips = map[string]string{"D2": "it is Sunday"}
	h.Config = func(b drivertest.Behaviour) ([]byte, bool) {
		if b.Kind == drivertest.Fail {
			return nil, false
		}
		return doubleConfig(b)
	}
	var found []conformance.Finding
	tests := slices.Concat(rule("D1", h), rule("D2", h), rule("D6", h), rule("D16", h))
	conformance.Judge(t.Context(), tests, h.Skips, func(f conformance.Finding) { found = append(found, f) })
	must.SliceLen(t, 4, found)
	must.EqOp(t, conformance.Passed, found[0].Outcome)
	must.EqOp(t, conformance.Skipped, found[1].Outcome)
	must.EqOp(t, "it is Sunday", found[1].Why)
	must.EqOp(t, conformance.Failed, found[2].Outcome)
	must.Eq(t, []conformance.Failure{{
		Expected: "a task of this kind, or an entry in \"skips\"", Happened: `the harness has no task of kind "fail"`,
	}}, found[2].Failures)
	must.EqOp(t, conformance.Passed, found[3].Outcome)
	must.StrContains(t, strings.Join(found[3].Calls, "\n"), "DestroyTask, force false: error of class \"fatal\"")
}

// The end of the context fails the tests that remain.
func TestJudge_interrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var failed int
	conformance.Judge(ctx, rule("D16", doubleHarness(scripted.Options{})), nil, func(f conformance.Finding) { failed += len(f.Failures) })
	must.Positive(t, failed)
}
