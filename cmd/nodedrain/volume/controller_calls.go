package volume

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// PrintControllerCalls prints the calls of controllers that fail, or nothing if there are none.
func PrintControllerCalls(c *cli.Base, calls []wire.ControllerCall, verbose bool) {
	c.SectionIfAny("Failing Controller Calls", controllerTable(calls, verbose, time.Now()))
}

func controllerTable(calls []wire.ControllerCall, verbose bool, now time.Time) *cli.Table {
	t := cli.NewTable("Call", "Volume", "Node", "Failures", "Last Failure", "Next Attempt", "Controller", "Error")
	for _, c := range calls {
		t.Row(c.Call, cli.JobName(c.Namespace, c.Volume), cli.ShortID(c.NodeID, verbose), fmt.Sprint(c.Failures), cli.TimeCell(c.LastAt), nextAttempt(c, now),
			cmp.Or(cli.ShortID(c.ControllerNodeID, verbose), "-"), cmp.Or(c.LastError, "-"))
	}
	return t
}

// nextAttempt returns when a call is repeated.
func nextAttempt(c wire.ControllerCall, now time.Time) string {
	switch {
	case c.InFlight:
		return "in flight"
	case c.NoController:
		return "no healthy controller"
	case c.NextAt.After(now):
		return cli.Clock(c.NextAt)
	}
	return "due"
}
