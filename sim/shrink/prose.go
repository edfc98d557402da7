package shrink

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// lineWidth limits a line of prose.
const lineWidth = 96

// prose returns the failure, the origin and the original prose of a shrunk or frozen scenario.
func (m *shrinker) prose(of *scenario.Scenario, verb string) []string {
	f := m.report.Failure
	lines := scenario.Wrap(strings.TrimSuffix(f.Check+": "+f.Text, ": "), lineWidth)
	from := of.Name
	if from == "" {
		from = "a scenario"
	}
	lines = append(lines, "")
	origin := fmt.Sprintf("%s from %s: %s instead of %s.", verb, from, m.report.After, m.report.Before)
	lines = append(lines, scenario.Wrap(origin+" To play it: nodedrain sim run FILE", lineWidth)...)
	if len(of.Prose) > 0 {
		lines = append(append(lines, "", "The prose of the original:", ""), of.Prose...)
	}
	return lines
}

// String returns the size in words.
func (s Size) String() string {
	return fmt.Sprintf("%d events, %d nodes, %d jobs and %d allocations", s.Events, s.Nodes, s.Jobs, s.Allocs)
}
