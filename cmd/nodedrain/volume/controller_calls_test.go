package volume

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// The next attempt is at a time, in flight, or due: then too many calls are in flight. Or it waits for a
// controller.
func TestNextAttempt(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)
	call := wire.ControllerCall{Call: "detach", Failures: 1, LastAt: wire.NewTime(at), NextAt: wire.NewTime(at.Add(time.Second))}
	must.Eq(t, cli.Clock(call.NextAt), nextAttempt(call, call.LastAt.Time))
	must.Eq(t, "due", nextAttempt(call, call.NextAt.Time))
	call.NoController = true
	must.Eq(t, "no healthy controller", nextAttempt(call, call.LastAt.Time))
	call.InFlight = true
	must.Eq(t, "in flight", nextAttempt(call, call.LastAt.Time))
}
