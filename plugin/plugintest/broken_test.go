package plugintest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/plugintest"
)

// failures runs one test of the suite over a driver and returns its failures.
func failures(t *testing.T, id string, o plugintest.Options) (found []conformance.Failure) {
	t.Helper()
	tests := slices.DeleteFunc(drivertest.Tests(plugintest.Harness(o)), func(test conformance.Test) bool { return test.ID != id })
	conformance.Judge(t.Context(), tests, o.Skips, func(f conformance.Finding) { found = f.Failures })
	return found
}

// Faults over the protocol: the driver crashes or hangs at a call, or its tasks do not do what
// their files say. The named test fails.
func TestHarness_findsBrokenDrivers(t *testing.T) {
	t.Parallel()
	path := command(t)
	for _, story := range []struct{ test, kind, config, want string }{
		{"D4", "run for ever", `{"crash_at": "StartTask"}`, "(class: driver gone)"},
		{"D4", "run for ever", `{"run_for": "0s"}`, "of a task that should run"},
		{"D8", "run for ever", `{"crash_at": "RecoverTask"}`, "recovering the task"},
		{"D11", "exit", `{"run_for": "{millis}ms"}`, "expected: code 7"},
		{"D13 orderly", "trap", `{"stop_ignore": true, "run_for": "8s", "exit_code": 6}`, "Stop took"},
		{"D14", "exit", `{"run_for": "0s", "exit_code": 8, "crash_at": "StopTask"}`, "stopping a task that has ended"},
		{"D20", "run for ever", `{"crash_at": "SignalTask"}`, "sending a signal"},
	} {
		o, err := plugintest.Read(path, "testdata/mock.json")
		must.NoError(t, err)
		o.Tasks[story.kind] = json.RawMessage(story.config)
		got := failures(t, story.test, o)
		must.Positive(t, len(got), must.Sprintf("%s does not fail with %s", story.test, story.config))
		must.StrContains(t, got[0].String(), story.want, must.Sprint(story.test))
	}
}
