package shortage

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// maxCauses bounds how many causes a line names.
const maxCauses = 4

// Line returns in one line why allocations of the group cannot be placed: the constraints that exclude
// nodes, and what nodes lack. It is empty if the shortages of [Of] have no such group.
func Line(failed map[string]*wire.AllocationMetric, group string) string {
	m := failed[group]
	if m == nil {
		return ""
	}
	var parts []string
	each := func(counts map[string]int, format string) {
		for _, cause := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf(format, cause, nodes(counts[cause])))
		}
	}
	if m.NodesEvaluated == 0 {
		parts = append(parts, fmt.Sprintf("no ready node is in the job's datacenters and its node pool %q", m.NodePool))
	}
	each(m.DimensionExhausted, "not enough %s on %s")
	each(m.ConstraintFiltered, "constraint %q excludes %s")
	if n := m.NodesEvaluated - m.NodesFiltered - m.NodesExhausted; n > 0 {
		parts = append(parts, nodes(n)+" with room, so the scheduler will retry")
	}
	each(m.NodesNotReady, "not ready (%s): %s")
	if more := len(parts) - maxCauses; more > 0 {
		parts = append(parts[:maxCauses], fmt.Sprintf("and %d more causes", more))
	}
	return strings.Join(parts, ", ")
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
