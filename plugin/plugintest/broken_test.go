package plugintest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/plugintest"
)

// recorder notes the failures of a test of the suite.
type recorder struct {
	*testing.T
	failures []string
	cleanups []func()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Cleanup(do func())        { r.cleanups = append(r.cleanups, do) }
func (r *recorder) Context() context.Context { return context.WithoutCancel(r.T.Context()) }

// failures runs one test of the suite over a driver and returns its failures.
func failures(t *testing.T, id string, o plugintest.Options) []string {
	t.Helper()
	tests := drivertest.Tests()
	one := tests[slices.IndexFunc(tests, func(test drivertest.Test) bool { return test.ID == id })]
	r := &recorder{T: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		one.Run(r, plugintest.Harness(o))
	}()
	<-done
	for _, do := range slices.Backward(r.cleanups) {
		do()
	}
	return r.failures
}

// Faults that cross the protocol: the driver crashes or hangs at a call, or its tasks do something
// else than their files say. The named test fails.
func TestHarness_findsBrokenDrivers(t *testing.T) {
	t.Parallel()
	path := command(t)
	for _, story := range []struct{ test, kind, config, want string }{
		{"D4", "run for ever", `{"crash_at": "StartTask"}`, "(class: driver gone)"},
		{"D4", "run for ever", `{"run_for": "0s"}`, "of a task that should run"},
		{"D8", "run for ever", `{"crash_at": "RecoverTask"}`, "recovering the task"},
		{"D11", "exit", `{"run_for": "{millis}ms"}`, "in place of code 7"},
		{"D13 orderly", "trap", `{"stop_ignore": true, "run_for": "8s", "exit_code": 6}`, "Stop took"},
		{"D14", "exit", `{"run_for": "0s", "exit_code": 8, "crash_at": "StopTask"}`, "stopping a task that has ended"},
		{"D20", "run for ever", `{"crash_at": "SignalTask"}`, "sending a signal"},
	} {
		o, err := plugintest.Read(path, "testdata/mock.json")
		must.NoError(t, err)
		o.Tasks[story.kind] = json.RawMessage(story.config)
		got := failures(t, story.test, o)
		must.Positive(t, len(got), must.Sprintf("%s does not fail with %s", story.test, story.config))
		must.StrContains(t, got[0], story.want, must.Sprint(story.test))
	}
}
