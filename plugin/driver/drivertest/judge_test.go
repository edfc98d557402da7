package drivertest_test

import (
	"context"
	"slices"
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

// The end of the context fails the tests that remain.
func TestJudge_interrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var failed int
	conformance.Judge(ctx, rule("D16", doubleHarness(scripted.Options{})), nil, func(f conformance.Finding) { failed += len(f.Failures) })
	must.Positive(t, failed)
}
