package conformance

import (
	"context"
	"fmt"
	"slices"
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
	// Doc says what the test of the rule demands.
	Doc string
	// Contract is the sentence of the contract of plugins that demands it.
	Contract string
}

// Test is a rule with its test of one plugin.
type Test struct {
	Rule
	// Run tests the plugin and notes the calls.
	Run func(T, *Trace)
}

// Checked is a rule with the check of a suite that tests it. C is one test that runs.
type Checked[C any] struct {
	Rule
	Check func(C)
}

// Bind returns the tests of rules. Begin returns what the check of a rule gets, for each test.
func Bind[C any](rules []Checked[C], begin func(T, *Trace) C) []Test {
	var tests []Test
	for _, rule := range rules {
		tests = append(tests, Test{rule.Rule, func(t T, calls *Trace) { rule.Check(begin(t, calls)) }})
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

// Run runs tests in go test. Skips are the tests that the plugin cannot pass, by [Rule].ID, with the
// reason. Around, if not nil, runs each test.
func Run(t *testing.T, tests []Test, skips map[string]string, around func(*testing.T, func(*testing.T))) {
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
	for _, one := range tests {
		t.Run(one.ID, func(t *testing.T) {
			t.Parallel()
			if reason, ok := skips[one.ID]; ok {
				t.Skipf("%s: %s", one.Doc, reason)
			}
			around(t, func(t *testing.T) {
				calls := &Trace{}
				t.Cleanup(func() { calls.log(t) })
				t.Logf("%s: %s", one.ID, one.Doc)
				one.Run(t, calls)
			})
		})
	}
}
