package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// ends are the ways in which a plugin ends, with the reason in messages.
func ends() map[string]string {
	return map[string]string{
		"panic":   "panic: a panic of the plugin",
		"nil":     "panic: runtime error: invalid memory address or nil pointer dereference",
		"map":     "fatal error: concurrent map ",
		"abort":   "SIGABRT: abort",
		"give up": "exit status 3; the last line of its log: the container engine is not installed",
		"exit":    "exit status 3; the last line of its log: {",
		"die":     "signal: killed",
	}
}

// The end of a running plugin is described by the first line of its crash. Regression: there was no
// reason at all.
func TestInstance_endReason(t *testing.T) {
	t.Parallel()
	for how, expected := range ends() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, script{At: map[string]string{"StartTask": how}})
			instance := b.launch()
			_, err := instance.Driver().Start(t.Context(), &taskOfClient)
			must.Eq(t, driver.Gone, driver.ClassOf(err), must.Sprint(err))
			must.ErrorContains(t, err, "; the plugin's process has ended: "+expected)
			<-instance.Done()
			must.StrHasPrefix(t, expected, instance.EndReason())
		})
	}
}

// The client that takes a plugin over finds the reason too. It does not have the exit status, and it
// does not take the reason from an earlier process that wrote to the same log.
func TestInstance_endReasonAfterTakeOver(t *testing.T) {
	t.Parallel()
	for how, expected := range map[string]string{"panic": "panic: a panic of the plugin", "die": ""} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, script{At: map[string]string{"InspectTask": how}})
			must.NoError(t, os.MkdirAll(filepath.Dir(b.options.LogFile), 0o700))
			must.NoError(t, os.WriteFile(b.options.LogFile, []byte("panic: an old one\n"), 0o600))
			record := b.killedClient(b.calls + ".record")
			instance, err := b.program().Launch(t.Context(), record, keep)
			must.NoError(t, err)
			must.True(t, instance.TakenOver())
			_, err = instance.Driver().Inspect(t.Context(), taskOfClient.ID)
			must.Eq(t, driver.Gone, driver.ClassOf(err), must.Sprint(err))
			<-instance.Done()
			if expected != "" {
				must.Eq(t, expected, instance.EndReason())
			}
			must.StrNotContains(t, instance.EndReason(), "an old one")
		})
	}
}

// A launch that fails has the same reason: before the handshake, and at a call. Regression: the last
// line of the dump, a register, was the reason.
func TestLaunch_crashes(t *testing.T) {
	t.Parallel()
	for how, expected := range ends() {
		if how == "die" || how == "exit" {
			continue
		}
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			expected := strings.TrimPrefix(expected, "exit status 3; the last line of its log: ")
			newBench(t, script{First: " ", Then: how}).fails("did not start: no handshake: ", expected)
			newBench(t, script{At: map[string]string{"SetConfig": how}}).fails("SetConfig", expected)
		})
	}
}
