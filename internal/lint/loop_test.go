package lint_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

const loopFixtures = "github.com/seed-f9cf0b39/nodedrain/internal/lint/testdata/src/loop"

// Each fixture has violations of the loop rule and permitted code.
func TestCheckLoopRules_fixtures(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]lint.LoopRule{
		"clock":    {Outside: []string{"time"}},
		"spawn":    {Outside: []string{"sync"}},
		"channels": {},
		"chance":   {Outside: []string{"fmt", "math/rand/v2"}},
		"dispatch": {
			Outside: []string{"container/heap", "fmt", "hash"},
			Boundaries: map[string]string{
				loopFixtures + "/dispatch.T.boundary":                     "a test",
				"(*" + loopFixtures + "/dispatch.T).excused → time.Sleep": "a test",
				loopFixtures + "/dispatch.stranger":                       "a test",
				loopFixtures + "/dispatch.notLookedInto":                  "a test",
			},
		},
		"order": {Outside: []string{"maps", "slices"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule.Roots = []lint.Root{{Receiver: "*", Name: "Step", Takes: []string{"Time"}}}
			readExpected(t, folder(t, "loop/"+name)).check(t, lint.CheckLoopRules(load(t, "loop/"+name), rule))
		})
	}
}

// A rule that names missing code is a finding: it would check nothing.
func TestCheckLoopRules_stale(t *testing.T) {
	t.Parallel()
	found := lint.CheckLoopRules(load(t, "loop/stale"), lint.LoopRule{
		Roots: []lint.Root{
			{Package: loopFixtures + "/stale", Receiver: "T", Name: "Step", Takes: []string{"Time"}},
			{Package: loopFixtures + "/stale", Receiver: "T", Name: "Step", Takes: []string{"Look"}},
			{Package: loopFixtures + "/stale", Receiver: "U", Name: "Step"},
			{Package: loopFixtures + "/stale", Name: "Step"},
			{Package: loopFixtures + "/elsewhere", Receiver: "*", Name: "Step"},
		},
		Outside:    []string{"strings", "time"},
		Boundaries: map[string]string{loopFixtures + "/stale.gone": "it was there once"},
	})
	var texts []string
	for _, f := range found {
		texts = append(texts, f.What)
	}
	must.Eq(t, []string{
		"the loop rule allows strings, which no code calls",
		"the loop rule's boundary " + loopFixtures + "/stale.gone is never met",
		"the loop rule's root " + loopFixtures + "/elsewhere.*.Step does not exist",
		"the loop rule's root " + loopFixtures + "/stale.Step does not exist",
		"the loop rule's root " + loopFixtures + "/stale.T.Step does not exist",
		"the loop rule's root " + loopFixtures + "/stale.U.Step does not exist",
	}, texts)
}
