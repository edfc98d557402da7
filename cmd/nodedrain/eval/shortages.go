package eval

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Shortages prints why an evaluation's allocations cannot be placed.
func Shortages(out io.Writer, e *wire.Evaluation) {
	GroupShortages(out, e.FailedTGAllocs)
	if len(e.FailedTGAllocs) == 0 {
		fmt.Fprintln(out, "Every waiting allocation is placed now, or its group is gone")
	}
}

// GroupShortages prints why allocations of groups cannot be placed.
func GroupShortages(out io.Writer, failed map[string]*wire.AllocationMetric) {
	for _, group := range slices.Sorted(maps.Keys(failed)) {
		m := failed[group]
		fmt.Fprintf(out, "Group %q: %s cannot be placed:\n", group, cli.Count(m.CoalescedFailures+1, "allocation"))
		for _, line := range shortageLines(m) {
			fmt.Fprintf(out, "  * %s\n", cli.SingleLine(line))
		}
	}
}

// shortageLines returns what excludes nodes, and how many.
func shortageLines(m *wire.AllocationMetric) (lines []string) {
	if m.NodesEvaluated == 0 {
		lines = append(lines, fmt.Sprintf("No ready node is in the job's datacenters and its node pool %q", m.NodePool))
	}
	each := func(counts map[string]int, format string) {
		for _, cause := range slices.Sorted(maps.Keys(counts)) {
			lines = append(lines, fmt.Sprintf(format, cause, cli.Count(counts[cause], "node")))
		}
	}
	each(m.ConstraintFiltered, "Constraint %q excludes %s")
	each(m.DimensionExhausted, "Not enough %s on %s")
	if n := m.NodesEvaluated - m.NodesFiltered - m.NodesExhausted; n > 0 {
		lines = append(lines, fmt.Sprintf("%s room for one allocation: the scheduler will retry", has(n)))
	}
	if m.Nearest != nil {
		lines = append(lines, fmt.Sprintf("Nearest is node %s (%s): it lacks %s", m.Nearest.Name, cli.ShortID(m.Nearest.ID, false), shortText(m.Nearest.Short)))
	}
	each(m.NodesNotReady, "Not ready (%s): %s")
	return lines
}

func has(n int) string {
	if n == 1 {
		return "1 node has"
	}
	return fmt.Sprintf("%d nodes have", n)
}

// shortText returns amounts with their units.
func shortText(short map[string]int64) string {
	units := map[string]string{"cpu": " MHz", "memory": " MiB", "disk": " MiB", "gpu": " thousandths"}
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(short)) {
		parts = append(parts, fmt.Sprintf("%d%s of %s", short[resource], units[resource], resource))
	}
	return strings.Join(parts, " and ")
}
