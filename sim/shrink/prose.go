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
	lines := wrapped(strings.TrimSuffix(f.Check+": "+f.Text, ": "))
	from := of.Name
	if from == "" {
		from = "a scenario"
	}
	lines = append(lines, "")
	origin := fmt.Sprintf("%s from %s: %s instead of %s.", verb, from, m.report.After, m.report.Before)
	lines = append(lines, wrapped(origin+" To play it: nodedrain sim run FILE")...)
	if len(of.Prose) > 0 {
		lines = append(append(lines, "", "The prose of the original:", ""), of.Prose...)
	}
	return lines
}

// String returns the size in words.
func (s Size) String() string {
	return fmt.Sprintf("%d events, %d nodes, %d jobs and %d allocations", s.Events, s.Nodes, s.Jobs, s.Allocs)
}

// wrapped splits a text into lines.
func wrapped(text string) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > lineWidth {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
