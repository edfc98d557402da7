package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// T is what a suite needs of a *testing.T.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	Context() context.Context
	TempDir() string
}

var _ T = (*testing.T)(nil)

// Rule is one rule of a suite.
type Rule struct {
	// ID is a letter with a number, with a word behind it if one number has several rules.
	ID string
	// Doc states what the test of the rule demands.
	Doc string
	// Contract is the sentence of the contract of plugins that demands it.
	Contract string
	// Should: a client loses nothing if a plugin breaks the rule, so a failure is a warning. If it
	// is false, the rule is a must: a client loses a task, a result, a device or something else.
	Should bool
}

// Level returns "must" or "should".
func (r Rule) Level() string {
	if r.Should {
		return "should"
	}
	return "must"
}

// warns reports whether the failures of a test of the rule are a warning. A failure of the node is
// never one.
func (r Rule) warns(failures ...Failure) bool {
	return r.Should && !slices.ContainsFunc(failures, func(f Failure) bool { return f.Expected == "" })
}

// Strict returns the tests with each rule as a must.
func Strict(tests []Test) []Test {
	strict := slices.Clone(tests)
	for i := range strict {
		strict[i].Should = false
	}
	return strict
}

// Test is a rule with its test of one plugin.
type Test struct {
	Rule
	// Run tests the plugin and notes the calls.
	Run func(T, *Trace)
}

// Suite is the rules of one kind of plugin with their checks. C is one test that runs.
type Suite[C any] struct {
	// Table is the document with the rules: the rows "| id | level | doc | contract |" of its table,
	// in the order of the tests.
	Table string
	// Checks has the check of each rule by the rule's id.
	Checks map[string]func(C)
}

// Tests returns the tests of the suite. Begin returns what the check of a rule gets, for each test. If
// strict is true, each rule is a must.
func (s Suite[C]) Tests(strict bool, begin func(T, *Trace) C) []Test {
	var tests []Test
	for line := range strings.Lines(s.Table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 4 || cells[1] != "must" && cells[1] != "should" {
			continue // no rule
		}
		rule := Rule{
			ID: strings.TrimPrefix(cells[0], "| "), Doc: cells[2], Contract: strings.TrimSuffix(cells[3], " |"),
			Should: cells[1] == "should",
		}
		tests = append(tests, Test{rule, func(t T, calls *Trace) { s.Checks[rule.ID](begin(t, calls)) }})
	}
	if strict {
		return Strict(tests)
	}
	return tests
}

// Check is one test that runs. Those of the suites embed it.
type Check struct {
	T
	Calls *Trace
}

// Failf notes a failure. The arguments belong to what happened.
func (c Check) Failf(expected, happened string, args ...any) {
	c.Helper()
	c.Errorf("%v", Failure{expected, fmt.Sprintf(happened, args...)})
}

// Stopf notes a failure and ends the test.
func (c Check) Stopf(expected, happened string, args ...any) {
	c.Helper()
	c.Fatalf("%v", Failure{expected, fmt.Sprintf(happened, args...)})
}

// Failure is one failure of a test. [Check] gives it to its T as the only argument of Errorf or
// Fatalf.
type Failure struct {
	// Expected is empty if the node failed and not the plugin.
	Expected string
	Happened string
}

// String returns what happened, and what was expected.
func (f Failure) String() string {
	if f.Expected == "" {
		return f.Happened
	}
	return fmt.Sprintf("%s; expected: %s", f.Happened, f.Expected)
}

// Warning is the prefix of the log lines of a test in go test whose rule is a should.
const Warning = "WARNING: "

// Run runs tests in go test. Ready runs first, and if it fails, no test runs: then the plugin cannot
// be tested at all. Skips are the tests that the plugin cannot pass, by [Rule].ID, with the reason.
// Around, if not nil, runs ready and each test. If a rule is a should, its failures are lines of the
// log with the prefix [Warning].
func Run(t *testing.T, ready func(T), tests []Test, skips map[string]string, around func(*testing.T, func(*testing.T))) {
	t.Helper()
	for id, reason := range skips {
		if reason == "" {
			t.Errorf("the harness skips %q without a reason", id)
		}
		if !slices.ContainsFunc(tests, func(one Test) bool { return one.ID == id }) {
			t.Errorf("the harness skips %q, which is no test", id)
		}
	}
	if around == nil {
		around = func(t *testing.T, test func(*testing.T)) { test(t) }
	}
	began := t.Run("ready", func(t *testing.T) {
		around(t, func(t *testing.T) {
			if err := Probe(t.Context(), ready); err != nil {
				t.Fatal(err)
			}
		})
	})
	if !began {
		return
	}
	for _, one := range tests {
		t.Run(one.ID, func(t *testing.T) {
			t.Parallel()
			if reason, ok := skips[one.ID]; ok {
				t.Skipf("%s: %s", one.Doc, reason)
			}
			around(t, func(t *testing.T) {
				t.Helper()
				f := judge(t.Context(), one, nil, t.Logf)
				t.Logf("%s: %s", one.ID, one.Doc)
				for _, failure := range f.Failures {
					if f.Outcome == Warned {
						t.Logf("%s%s is broken: %v", Warning, one.ID, failure)
					} else {
						t.Errorf("%v", failure)
					}
				}
				if len(f.Calls) > 0 {
					t.Logf("calls:\n\t%s", strings.Join(f.Calls, "\n\t"))
				}
				if f.Log != "" {
					t.Logf("the log of the plugin:\n%s", f.Log)
				}
			})
		})
	}
}
