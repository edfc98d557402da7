package scenario_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// A selector is printed as it was read, and matches its allocations.
func TestSelector(t *testing.T) {
	t.Parallel()
	a := &cluster.Allocation{Namespace: "default", JobID: "web", TaskGroup: "api", NodeID: "n1", Name: "web.api[3]"}
	for text, matches := range map[string]bool{
		"*":                   true,
		"web":                 true,
		"blue/web":            false,
		"wob":                 false,
		"web.api":             true,
		"web.web":             false,
		"web[3]":              true,
		"web[2..4]":           true,
		"web[4..5]":           false,
		"web.api[0..2]":       false,
		"@n1":                 true,
		"@n2":                 false,
		"web@n1":              true,
		"web.api[3]@n1":       true,
		"web.api[3]@n2":       false,
		"blue/web.api[3]@n1":  false,
		"other.api[0..9]@n99": false,
	} {
		s, err := scenario.ParseSelector(text)
		must.NoError(t, err)
		must.Eq(t, text, s.String())
		must.Eq(t, matches, s.Matches(a), must.Sprint(text))
	}
	replaced := *a
	replaced.PreviousAllocation = "another"
	must.False(t, scenario.Selector{Replacement: true}.Matches(a))
	must.True(t, scenario.Selector{Replacement: true}.Matches(&replaced))

	nameless := &cluster.Allocation{Namespace: "default", JobID: "web"}
	must.False(t, scenario.Selector{Indexes: scenario.Indexes{Count: 9}}.Matches(nameless))
	for _, text := range []string{"", "@", "web.", ".api", "web[", "web[x]", "web@", "a b", "web[0]x"} {
		_, err := scenario.ParseSelector(text)
		must.Error(t, err, must.Sprint(text))
	}
}
