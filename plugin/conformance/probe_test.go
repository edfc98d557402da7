package conformance_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
)

// What does not start is an error of Probe, and what it has made is removed.
func TestProbe(t *testing.T) {
	t.Parallel()
	must.NoError(t, conformance.Probe(t.Context(), func(conformance.T) {}))
	removed := false
	must.EqError(t, conformance.Probe(t.Context(), func(t conformance.T) {
		t.Cleanup(func() { removed = true })
		t.Fatalf("the driver is %s", "ill")
	}), "the driver is ill")
	must.True(t, removed)
}
