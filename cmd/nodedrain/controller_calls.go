package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// printControllerCalls prints the calls of controllers that fail, or nothing if there are none.
func printControllerCalls(out io.Writer, calls []wire.ControllerCall, verbose bool) {
	if len(calls) == 0 {
		return
	}
	fmt.Fprintln(out, "\nFailing Controller Calls")
	controllerTable(calls, verbose, time.Now()).write(out)
}

func controllerTable(calls []wire.ControllerCall, verbose bool, now time.Time) *table {
	t := newTable("Call", "Volume", "Node", "Failures", "Last Failure", "Next Attempt", "Controller", "Error")
	for _, c := range calls {
		t.row(c.Call, jobName(c.Namespace, c.Volume), shortID(c.NodeID, verbose), fmt.Sprint(c.Failures), timeCell(c.LastAt), nextAttempt(c, now),
			cmp.Or(shortID(c.ControllerNodeID, verbose), "-"), cmp.Or(c.LastError, "-"))
	}
	return t
}

// nextAttempt says when a call is repeated.
func nextAttempt(c wire.ControllerCall, now time.Time) string {
	switch {
	case c.InFlight:
		return "in flight"
	case c.NoController:
		return "no healthy controller"
	case c.NextAt.After(now):
		return clock(c.NextAt)
	}
	return "due"
}
