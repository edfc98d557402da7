package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/plugintest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/storagetest"
)

// exitNotTested is the exit code if nothing was tested.
const exitNotTested = 2

// Test is "nodedrain plugin test".
func Test() *cli.Command {
	var f testFlags
	return &cli.Command{
		Short: "Test the program of a plugin",
		Description: `
  Starts the plugin PATH as a client does, and tests it in some ten seconds: a task driver
  by the rules D1 to D20, a device plugin by the rules V1 to V9, a storage plugin (CSI) by
  the rules S1 to S9. For each rule that fails it prints the calls, the expected and the
  actual result, and the sentence of the contract. docs/plugins.md, docs/device-plugins.md
  and docs/plugin-tests.md explain the rules, and each names an example plugin to copy.

  A rule is a "must" or a "should". If a plugin breaks a must, a client loses a task, a
  result or a device, and the command fails. If it breaks a should, a client loses
  nothing, and the command prints a warning.

  The rules of drivers need tasks of eight kinds, such as one that ignores signals. FILE
  configures these tasks. Without it the tasks have the keys "command" and "args", with
  programs of this machine. The rules of device plugins need two devices, and a way to
  change them. Those of storage plugins need a volume that nothing uses, and mount it:
  FILE names it. PATH may be the socket of a running storage plugin. FILE also names the
  rules that the plugin cannot follow, and why.
`,
		Exits: `
  0   No rule failed. There may be warnings.
  1   A rule failed.
  2   The command line or FILE is wrong, or nothing was tested: the plugin did not start,
      needs a config, or did not become healthy.
`,
		Args: "PATH", Failure: exitNotTested, Run: f.test,
		Options: cli.Options{
			cli.Flag(&f.config, "config FILE", "Facts of the plugin that the test needs, as JSON."),
			cli.Flag(&f.json, "json", "Print the findings as JSON."),
			cli.Flag(&f.run, "run RULE", `Test only these rules, separated by commas. "D13" means all rules with this number, "D13 orderly" one of them.`),
			cli.Flag(&f.strict, "strict", "A warning is a failure."),
		},
		FlagValues: complete.Flags{"-run": complete.PredictFunc(func(complete.Args) []string { return numbers() })},
	}
}

// testFlags are its flags.
type testFlags struct {
	config, run  string
	json, strict bool
}

// test tests a plugin. The error is an exit code if a rule failed.
func (f *testFlags) test(c *cli.Call) error {
	ctx, stop := cli.HoldSignals(c.Ctx)
	defer stop()
	path, err := filepath.Abs(c.Args[0])
	if err != nil {
		return err
	}
	if err := checkRules(f.run); err != nil {
		return err
	}
	suite, err := plugintest.Open(ctx, path, f.config)
	if err != nil {
		return err
	}
	tests, err := rulesOf(suite, f.run)
	if err != nil {
		return err
	}
	if err := plugintest.Probe(ctx, suite.Ready); err != nil {
		return err
	}
	if f.strict {
		tests = conformance.Strict(tests)
	}
	out := judgement{Plugin: path, Type: suite.Type}
	conformance.Judge(ctx, tests, suite.Skips, func(found conformance.Finding) {
		out.add(found)
		if !f.json {
			printFinding(c.Out, found)
		}
	})
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("the test of the plugin was interrupted: %w", err)
	}
	if f.json {
		encoder := json.NewEncoder(c.Out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(out)
	} else {
		fmt.Fprintf(c.Out, "\n%d passed, %d failed, %d skipped, %s\n", out.Passed, out.Failed, out.Skipped, cli.Count(out.Warnings, "warning"))
	}
	if err == nil && out.Failed > 0 {
		return cli.ExitCode(1)
	}
	return err
}

// checkRules finds rules that no plugin has.
func checkRules(flagged string) error {
	for _, name := range namesOf(flagged) {
		if !slices.ContainsFunc(allRules(), func(one conformance.Rule) bool { return names(name, one) }) {
			return cli.UsageError("plugin test", fmt.Sprintf("There is no rule %q. The rules are D1 to D20 for drivers, V1 to V9 for device plugins, and S1 to S9 for storage plugins", name))
		}
	}
	return nil
}

// allRules returns the rules of all plugins.
func allRules() []conformance.Rule {
	var all []conformance.Rule
	for _, one := range slices.Concat(drivertest.Tests(drivertest.Harness{}), devicetest.Tests(devicetest.Harness{}), storagetest.Tests(storagetest.Harness{})) {
		all = append(all, one.Rule)
	}
	return all
}

// numbers returns the numbers of all rules, such as D13.
func numbers() (all []string) {
	for _, one := range allRules() {
		if !strings.Contains(one.ID, " ") {
			all = append(all, one.ID)
		}
	}
	return all
}

// namesOf returns the rules that a flag names.
func namesOf(flagged string) []string {
	var all []string
	for name := range strings.SplitSeq(flagged, ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// names reports whether a name in the flag, such as d13, means a rule: a number is all rules with this
// number.
func names(name string, rule conformance.Rule) bool {
	number, _, _ := strings.Cut(rule.ID, " ")
	return strings.EqualFold(name, rule.ID) || strings.EqualFold(name, number)
}

// rulesOf returns the tests of the rules that a flag names. Without one it returns all.
func rulesOf(suite plugintest.Suite, flagged string) ([]conformance.Test, error) {
	selected := namesOf(flagged)
	if len(selected) == 0 {
		return suite.Tests, nil
	}
	for _, name := range selected {
		if !slices.ContainsFunc(suite.Tests, func(one conformance.Test) bool { return names(name, one.Rule) }) {
			return nil, cli.UsageError("plugin test", fmt.Sprintf("The plugin is a %s plugin, which has no rule %q", suite.Type, name))
		}
	}
	return slices.DeleteFunc(suite.Tests, func(one conformance.Test) bool {
		return !slices.ContainsFunc(selected, func(name string) bool { return names(name, one.Rule) })
	}), nil
}

// printFinding prints a line, and all that an author needs about a rule that failed.
func printFinding(out io.Writer, f conformance.Finding) {
	fmt.Fprintf(out, "%-12s  %-7s  %s\n", f.Rule.ID, f.Outcome, f.Rule.Doc)
	write := func(title, text string) {
		for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			fmt.Fprintf(out, "    %-8s  %s\n", title, line)
			title = ""
		}
	}
	if f.Outcome == conformance.Skipped {
		write("why", f.Why)
	}
	if f.Outcome != conformance.Failed && f.Outcome != conformance.Warned {
		return
	}
	if len(f.Calls) > 0 {
		write("done", strings.Join(f.Calls, "\n"))
	}
	for _, failure := range f.Failures {
		if failure.Expected != "" {
			write("expected", failure.Expected)
		}
		write("happened", failure.Happened)
	}
	if f.Log != "" {
		write("log", f.Log)
	}
	write("contract", f.Rule.Contract)
	if f.Outcome == conformance.Warned {
		write("should", "A client loses nothing. With -strict this is a failure.")
	}
}

// judgement is the output of -json.
type judgement struct {
	Plugin   string         `json:"plugin"`
	Type     string         `json:"type"`
	Passed   int            `json:"passed"`
	Failed   int            `json:"failed"`
	Skipped  int            `json:"skipped"`
	Warnings int            `json:"warnings"`
	Rules    []judgedOfRule `json:"rules"`
}

// judgedOfRule is what was found about one rule.
type judgedOfRule struct {
	Rule string `json:"rule"`
	// Level is "must" or "should".
	Level    string              `json:"level"`
	Outcome  conformance.Outcome `json:"outcome"`
	Demands  string              `json:"demands"`
	Contract string              `json:"contract"`
	// Why is the reason of a skip.
	Why      string          `json:"why,omitempty"`
	Failures []judgedFailure `json:"failures,omitempty"`
	// Done are the calls of a rule that failed or warned, in their order.
	Done []string `json:"done,omitempty"`
	// Log is the end of the plugin's log.
	Log string `json:"log,omitempty"`
}

// judgedFailure is one failure of a rule.
type judgedFailure struct {
	Expected string `json:"expected,omitempty"`
	Happened string `json:"happened"`
}

func (j *judgement) add(f conformance.Finding) {
	rule := judgedOfRule{Rule: f.Rule.ID, Level: f.Rule.Level(), Outcome: f.Outcome, Demands: f.Rule.Doc, Contract: f.Rule.Contract, Why: f.Why}
	switch f.Outcome {
	case conformance.Passed:
		j.Passed++
	case conformance.Skipped:
		j.Skipped++
	case conformance.Failed:
		j.Failed++
	case conformance.Warned:
		j.Warnings++
	}
	if len(f.Failures) > 0 {
		rule.Done, rule.Log = f.Calls, f.Log
	}
	for _, failure := range f.Failures {
		rule.Failures = append(rule.Failures, judgedFailure(failure))
	}
	j.Rules = append(j.Rules, rule)
}
