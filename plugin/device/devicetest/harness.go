package devicetest

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
)

// T is what the suite needs of a *testing.T.
type T = conformance.T

// Harness gives the suite a device plugin. New is required.
type Harness struct {
	// New returns a node with one plugin, whose first process runs, with at least two devices of
	// one kind. Everything that it starts ends with the test. Tests run at the same time, each with
	// its own node.
	New func(T) Node
	// Empty is New for a plugin that finds no device, or nil if the harness has none.
	Empty func(T) Node
	// Wrong launches the plugin with a config that it must refuse, and returns the error of the
	// launch. It is nil if the harness has no such config.
	Wrong func(T) error
	// Skips are the rules that the plugin cannot keep, by the id of the rule, with the reason.
	Skips map[string]string
	// Strict: a rule that is a should fails as a must does. Without it, its failures are lines of the
	// log.
	Strict bool
	// Unit is the interval of statistics, and a tenth of the time that a plugin has to see a
	// change. Zero is a second.
	Unit time.Duration
	// Slack is how late an answer may be. Zero is a second.
	Slack time.Duration
	// Around, if not nil, runs each test. Its use is synctest.Test.
	Around func(t *testing.T, test func(t *testing.T))
}

// Node is one node with one device plugin.
type Node interface {
	// Plugin returns the present generation of the plugin.
	Plugin() device.Plugin
	// Kill sends SIGKILL to the plugin's process and returns when it has ended.
	Kill(T)
	// Launch starts the plugin's process again.
	Launch(T)
	// Change changes the devices of the machine, so that the plugin has other ones, or one with
	// another health. False means that the node cannot.
	Change(T) bool
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	conformance.Run(t, Ready(h), Tests(h), h.Skips, h.Around)
}

// Ready returns a test that fails if the plugin cannot be tested at all, because it reports no
// fingerprint. Then all tests would fail for the same reason.
func Ready(h Harness) func(T) {
	return func(t T) {
		c := h.begin(t, new(conformance.Trace))
		c.next(c.listen(c.node()), patience)
	}
}

// Tests returns the tests of one harness in the order of their numbers.
func Tests(h Harness) []conformance.Test { return suite().Tests(h.Strict, h.begin) }

// begin begins one test.
func (h Harness) begin(t T, calls *conformance.Trace) *check {
	if h.Unit == 0 {
		h.Unit = time.Second
	}
	if h.Slack == 0 {
		h.Slack = time.Second
	}
	calls.Start()
	return &check{conformance.Check{T: t, Calls: calls}, h}
}
