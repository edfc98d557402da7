package main

import (
	"testing"

	"github.com/shoenig/test/must"
)

// The next attempt is at a time, in flight, or due: then too many calls are in flight. Or it waits for a
// controller.
func TestNextAttempt(t *testing.T) {
	t.Parallel()
	call := failingCalls()[1]
	must.Eq(t, clock(call.NextAt), nextAttempt(call, call.LastAt.Time))
	must.Eq(t, "due", nextAttempt(call, call.NextAt.Time))
	call.NoController = true
	must.Eq(t, "no healthy controller", nextAttempt(call, call.LastAt.Time))
	call.InFlight = true
	must.Eq(t, "in flight", nextAttempt(call, call.LastAt.Time))
}
