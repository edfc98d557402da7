package storagetest

import (
	"context"
	"testing"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// T is what the suite needs of a *testing.T.
type T = conformance.T

// Plugin is a storage plugin of a node. Package plugin/storage/csi connects to one that speaks CSI. Its
// methods are safe for concurrent use.
type Plugin interface {
	// Probe returns nil if the plugin is ready.
	Probe(ctx context.Context) error
	// Describe returns what the plugin reports of itself.
	Describe(ctx context.Context, t cluster.PluginType) (*cluster.StoragePlugin, error)
	// Do makes a call. Staging and target are the paths of the volume. The error has a class of
	// package volume. To undo what is not there is no error.
	Do(ctx context.Context, c storage.Call, staging, target string) error
}

// Harness gives the suite a storage plugin. New is required.
type Harness struct {
	// New returns a node with a plugin that runs. Everything that it starts ends with the test.
	// Tests run at the same time, each with its own node, unless OneByOne is set.
	New func(T) Node
	// Usage is how volumes are used. Its zero value is a file system of one writer on one node.
	Usage storage.Usage
	// OneByOne: one test runs at a time, as a plugin needs that serves all of them.
	OneByOne bool
	// Skips are the rules that the plugin cannot keep, by the id of the rule, with the reason.
	Skips map[string]string
	// Strict: a rule that is a should fails as a must does. Without it, its failures are lines of the
	// log.
	Strict bool
	// Around, if not nil, runs each test. Its use is synctest.Test.
	Around func(t *testing.T, test func(t *testing.T))
}

// Node is one node with one storage plugin.
type Node interface {
	// Plugin returns the present process of the plugin.
	Plugin() Plugin
	// Restart kills the plugin's process, and returns when another one answers.
	Restart(T)
	// Root is an empty folder, which the plugin sees at the same path.
	Root() string
	// Volume makes a volume that can be mounted on the node, and returns what the servers would.
	Volume(T) storage.Claimed
	// Mounted reports whether something is mounted at a path.
	Mounted(t T, path string) bool
	// Use writes a file below a target and reads it again. The error states why it cannot.
	Use(target string) error
	// MakeBusy makes a process keep a target busy, until the function that it returns is called.
	MakeBusy(t T, target string) (free func())
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	conformance.Run(t, Ready(h), Tests(h), h.Skips, h.Around)
}

// Ready returns a test that fails if the plugin cannot be tested at all, because it is not ready or
// does not describe itself. Then all tests would fail for the same reason.
func Ready(h Harness) func(T) {
	return func(t T) {
		c := &check{Check: conformance.Check{T: t, Calls: new(conformance.Trace)}, node: h.New(t)}
		c.describe()
	}
}

// Tests returns the tests of one harness in the order of their numbers.
func Tests(h Harness) []conformance.Test {
	if h.Usage == (storage.Usage{}) {
		h.Usage.VolumeCapability = cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
	}
	var turn chan struct{}
	if h.OneByOne {
		turn = make(chan struct{}, 1)
	}
	return suite().Tests(h.Strict, func(t T, calls *conformance.Trace) *check {
		if turn != nil {
			turn <- struct{}{}
			t.Cleanup(func() { <-turn })
		}
		calls.Start()
		return newCheck(t, h, calls)
	})
}
