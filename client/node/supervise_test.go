package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
)

// Calls for a process of a plugin that has ended are refused. Bug: each of them kept its place among the short calls in
// flight, so that all later calls waited until their deadline.
func TestSupervised_callsAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := supervise(client.DriverPlugin, map[string]program[instance]{"mock": nil}, 1, nil, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 2 {
			_, _, err := s.enter(ctx, "StopTask", "mock", 1)
			must.ErrorIs(t, err, errGenerationEnded)
		}
	})
}
