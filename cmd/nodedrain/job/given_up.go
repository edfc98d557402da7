package job

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// printGivenUp prints why slots of a job's groups stay empty, and what fills them again.
func printGivenUp(out io.Writer, sum *wire.JobSummary, verbose bool) {
	for _, name := range slices.Sorted(maps.Keys(sum.GivenUp)) {
		g := sum.GivenUp[name]
		slots, those := cli.Count(g.Slots, "slot")+" stay", "the slots"
		if g.Slots == 1 {
			slots, those = "1 slot stays", "the slot"
		}
		fmt.Fprintf(out, "\nGroup %q: %s empty, because too many allocations in a row failed\n", name, slots)
		for _, line := range []string{
			fmt.Sprintf("%s failed for good. The scheduler replaced %d in a row, the maximum, and then gave up", cli.Count(g.Failed, "allocation"), g.Replaced),
			"Last failure: " + failureText(g, verbose),
			fmt.Sprintf("To fill %s: change the group's tasks or disk, then nodedrain job run FILE", those),
			fmt.Sprintf("If the cause was outside the job: nodedrain job stop -purge %s, then nodedrain job run FILE", sum.JobID),
		} {
			fmt.Fprintf(out, "  * %s\n", cli.SingleLine(line))
		}
	}
}

// failureText returns which task failed, where, when and how.
func failureText(g wire.GroupGivenUp, verbose bool) string {
	at := fmt.Sprintf("allocation %s on node %s", cli.ShortID(g.AllocID, verbose), cli.ShortID(g.NodeID, verbose))
	if g.Task == "" {
		return at + ": " + cmp.Or(g.Message, "its client did not report how")
	}
	text := fmt.Sprintf("task %q of %s at %s: %s", g.Task, at, cli.Clock(g.At), g.Event)
	if message := strings.TrimSpace(g.Message); message != "" {
		text += ": " + message
	}
	return text
}
