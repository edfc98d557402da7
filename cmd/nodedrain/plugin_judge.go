package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/client/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/plugintest"
)

// pluginTestCommand is "nodedrain plugin test".
type pluginTestCommand struct{ operatorCommand }

// exitNotTested is the exit code if nothing was tested.
const exitNotTested exitCode = 2

// pluginTestFlags are its flags.
type pluginTestFlags struct {
	config, run string
	json        bool
}

func (f *pluginTestFlags) set() *flag.FlagSet {
	set := flag.NewFlagSet("plugin test", flag.ContinueOnError)
	set.StringVar(&f.config, "config", "", "")
	set.StringVar(&f.run, "run", "", "")
	set.BoolVar(&f.json, "json", false, "")
	return set
}

func (c *pluginTestCommand) Synopsis() string { return "Test the program of a task driver" }

func (c *pluginTestCommand) Help() string {
	return strings.TrimSpace(`
Usage: nodedrain plugin test [options] PATH

  Starts the driver plugin PATH as a client does, and tests it by the rules D1 to D20 in
  some ten seconds. For each rule that fails it prints the calls, what was expected, what
  happened, and the sentence of the contract. docs/plugins.md explains the rules and has
  a driver to copy.

  The rules need tasks of eight kinds, such as one that ignores signals. FILE says how
  the driver's tasks are configured, and which rules the driver cannot keep and why.
  Without it the tasks have the keys "command" and "args", with programs of this machine.

Options:

  -config FILE   The tasks of the driver, as JSON.
  -json          Print the findings as JSON.
  -run RULE      Test some rules only, with commas between them. "D13" is all rules with
                 this number, "D13 orderly" is one of them.

Exit code:

  0   No rule failed.
  1   A rule failed.
  2   The command line or FILE is wrong, or the plugin did not start.
`)
}

func (c *pluginTestCommand) Run(args []string) int {
	failed, err := c.test(args)
	switch {
	case err != nil:
		fmt.Fprintln(c.errs, err)
		return int(exitNotTested)
	case failed:
		return 1
	}
	return 0
}

// test tests a plugin and reports whether a rule failed.
func (c *pluginTestCommand) test(args []string) (failed bool, err error) {
	var f pluginTestFlags
	paths, err := arguments(f.set(), "plugin test", args)
	if err != nil {
		return false, err
	}
	if len(paths) != 1 {
		return false, misused("plugin test", "This command takes one argument: <path>")
	}
	path, err := filepath.Abs(paths[0])
	if err != nil {
		return false, err
	}
	options, err := plugintest.Commands(path)
	if f.config != "" {
		options, err = plugintest.Read(path, f.config)
	}
	if err != nil {
		return false, err
	}
	tests, err := rulesOf(f.run)
	if err != nil {
		return false, err
	}
	harness := plugintest.Harness(options)
	if err := drivertest.Probe(c.ctx, harness); err != nil {
		return false, err
	}
	out := judgement{Plugin: path}
	drivertest.Judge(c.ctx, harness, tests, func(found drivertest.Finding) {
		out.add(found)
		if !f.json {
			printFinding(c.out, found)
		}
	})
	if err := context.Cause(c.ctx); err != nil {
		return false, fmt.Errorf("the test of the plugin was interrupted: %w", err)
	}
	if f.json {
		encoder := json.NewEncoder(c.out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return out.Failed > 0, encoder.Encode(out)
	}
	fmt.Fprintf(c.out, "\n%d passed, %d failed, %d skipped\n", out.Passed, out.Failed, out.Skipped)
	return out.Failed > 0, nil
}

// rulesOf returns the rules that a flag names.
func rulesOf(flagged string) ([]drivertest.Test, error) {
	all := drivertest.Tests()
	if flagged == "" {
		return all, nil
	}
	wanted := map[string]bool{}
	for name := range strings.SplitSeq(flagged, ",") {
		name = strings.TrimSpace(name)
		known := false
		for _, one := range all {
			number, _, _ := strings.Cut(one.ID, " ")
			if name == one.ID || name == number {
				wanted[one.ID], known = true, true
			}
		}
		if !known {
			return nil, misused("plugin test", fmt.Sprintf("There is no rule %q. The rules are D1 to D20", name))
		}
	}
	return slices.DeleteFunc(all, func(one drivertest.Test) bool { return !wanted[one.ID] }), nil
}

// printFinding prints a line, and all that an author needs about a rule that failed.
func printFinding(out io.Writer, f drivertest.Finding) {
	fmt.Fprintf(out, "%-12s  %-7s  %s\n", f.Test.ID, f.Outcome, f.Test.Doc)
	say := func(what, text string) {
		for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
			if i > 0 {
				what = ""
			}
			fmt.Fprintf(out, "    %-8s  %s\n", what, line)
		}
	}
	if f.Outcome == drivertest.Skipped {
		say("why", f.Why)
	}
	if f.Outcome != drivertest.Failed {
		return
	}
	if len(f.Calls) > 0 {
		say("done", strings.Join(f.Calls, "\n"))
	}
	for _, failure := range f.Failures {
		if failure.Expected != "" {
			say("expected", failure.Expected)
		}
		say("happened", failure.Happened)
	}
	if f.Log != "" {
		say("log", f.Log)
	}
	say("contract", f.Test.Contract)
}

// judgement is the output of -json.
type judgement struct {
	Plugin  string         `json:"plugin"`
	Passed  int            `json:"passed"`
	Failed  int            `json:"failed"`
	Skipped int            `json:"skipped"`
	Rules   []judgedOfRule `json:"rules"`
}

// judgedOfRule is what was found about one rule.
type judgedOfRule struct {
	Rule     string             `json:"rule"`
	Outcome  drivertest.Outcome `json:"outcome"`
	Demands  string             `json:"demands"`
	Contract string             `json:"contract"`
	// Why is the reason of a skip.
	Why      string          `json:"why,omitempty"`
	Failures []judgedFailure `json:"failures,omitempty"`
	// Done are the calls of a rule that failed, in their order.
	Done []string `json:"done,omitempty"`
	// Log is the end of the driver's log.
	Log string `json:"log,omitempty"`
}

// judgedFailure is one failure of a rule.
type judgedFailure struct {
	Expected string `json:"expected,omitempty"`
	Happened string `json:"happened"`
}

func (j *judgement) add(f drivertest.Finding) {
	rule := judgedOfRule{Rule: f.Test.ID, Outcome: f.Outcome, Demands: f.Test.Doc, Contract: f.Test.Contract, Why: f.Why}
	switch f.Outcome {
	case drivertest.Passed:
		j.Passed++
	case drivertest.Skipped:
		j.Skipped++
	case drivertest.Failed:
		j.Failed++
		rule.Done, rule.Log = f.Calls, f.Log
		for _, failure := range f.Failures {
			rule.Failures = append(rule.Failures, judgedFailure(failure))
		}
	}
	j.Rules = append(j.Rules, rule)
}

// AutocompleteArgs completes the program.
func (c *pluginTestCommand) AutocompleteArgs() complete.Predictor { return complete.PredictFiles("*") }

// AutocompleteFlags completes the flags, with the rules and the files.
func (c *pluginTestCommand) AutocompleteFlags() complete.Flags {
	flags := flagPredictors(new(pluginTestFlags).set())
	var numbers []string
	for _, one := range drivertest.Tests() {
		if !strings.Contains(one.ID, " ") {
			numbers = append(numbers, one.ID)
		}
	}
	flags["-run"], flags["-config"] = complete.PredictSet(numbers...), complete.PredictFiles("*.json")
	return flags
}
