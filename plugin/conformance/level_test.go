package conformance_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
)

// levels are a must that holds and three broken rules: a should that goes on, a should that stops, and a
// should whose node fails.
func levels() []conformance.Test {
	rule := func(id string, should bool, run func(conformance.Check)) conformance.Test {
		return conformance.Test{Rule: conformance.Rule{ID: id, Should: should}, Run: func(t conformance.T, calls *conformance.Trace) {
			run(conformance.Check{T: t, Calls: calls})
		}}
	}
	return []conformance.Test{
		rule("good", false, func(conformance.Check) {}),
		rule("goes on", true, func(c conformance.Check) { c.Failf("more", "less") }),
		rule("stops", true, func(c conformance.Check) {
			c.Cleanup(func() { c.Stopf("order", "a mess at the end") })
			c.Stopf("more", "nothing")
		}),
		rule("the node", true, func(c conformance.Check) { c.Fatalf("no disk") }),
	}
}

// A broken should is a warning, unless the node failed. Strict rules fail.
func TestJudge_levels(t *testing.T) {
	t.Parallel()
	outcomes := func(tests []conformance.Test) (all []conformance.Outcome) {
		conformance.Judge(t.Context(), tests, nil, func(f conformance.Finding) { all = append(all, f.Outcome) })
		return all
	}
	must.Eq(t, []conformance.Outcome{conformance.Passed, conformance.Warned, conformance.Warned, conformance.Failed}, outcomes(levels()))
	must.Eq(t, []conformance.Outcome{conformance.Passed, conformance.Failed, conformance.Failed, conformance.Failed}, outcomes(conformance.Strict(levels())))
}

// TestRun_levels runs the tests of the level in a process of its own, because their failures are the
// failures of the process.
func TestRun_levels(t *testing.T) {
	t.Parallel()
	const name = "NODEDRAIN_TEST_LEVELS"
	fine := func(conformance.T) {}
	switch os.Getenv(name) {
	case "warn":
		conformance.Run(t, fine, levels()[:3], nil, nil)
		return
	case "strict":
		conformance.Run(t, fine, conformance.Strict(levels()[:2]), nil, nil)
		return
	case "the node":
		conformance.Run(t, fine, levels()[3:], nil, nil)
		return
	case "not ready":
		conformance.Run(t, func(t conformance.T) { t.Fatalf("no %s", "config") }, levels(), nil, nil)
		return
	}
	for _, story := range []struct {
		of    string
		fails bool
		has   []string
		hasNo string
	}{
		{"warn", false, []string{"WARNING: goes on is broken: less; expected: more", "WARNING: stops is broken: nothing; expected: more", "WARNING: stops is broken: a mess"}, "--- FAIL"},
		{"strict", true, []string{"--- FAIL: TestRun_levels/goes_on", "less; expected: more"}, "WARNING"},
		{"the node", true, []string{"--- FAIL: TestRun_levels/the_node", "no disk"}, "WARNING"},
		{"not ready", true, []string{"--- FAIL: TestRun_levels/ready", "no config"}, "TestRun_levels/good"},
	} {
		t.Run(story.of, func(t *testing.T) {
			t.Parallel()
			own, err := os.Executable()
			must.NoError(t, err)
			command := exec.CommandContext(t.Context(), own, "-test.v", "-test.run", "^TestRun_levels$")
			command.Env = append(os.Environ(), name+"="+story.of)
			out, err := command.CombinedOutput()
			must.Eq(t, story.fails, err != nil, must.Sprint(string(out)))
			for _, text := range story.has {
				must.StrContains(t, string(out), text)
			}
			must.StrNotContains(t, string(out), story.hasNo)
		})
	}
}
