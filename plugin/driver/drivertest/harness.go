package drivertest

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// T is what the suite needs of a *testing.T.
type T = conformance.T

// Harness gives the suite a driver and its tasks. New and Config are required.
type Harness struct {
	// New returns a node with one driver, whose first process runs. Everything that it starts ends
	// with the test. Tests run at the same time, each with its own node.
	New func(T) Node
	// Config returns the config of a task that behaves so, as a user writes it: a JSON object.
	// False means that the driver has no such task.
	Config func(Behaviour) ([]byte, bool)
	// Required is the name of a key that Config gives for [RunForever] and that the driver demands.
	// It is empty if the driver demands none.
	Required string
	// Skips are the tests that the driver cannot pass, by the id of the rule, with the reason.
	Skips map[string]string
	// Strict: a rule that is a should fails as a must does. Without it, its failures are lines of the
	// log.
	Strict bool
	// Unit is the time that tasks run and have to stop, in most tests. Zero is a second.
	Unit time.Duration
	// Slack is how late an answer may be. Zero is a second. A grace may not be shorter than it was
	// requested, except by a twentieth of the unit.
	Slack time.Duration
	// Around, if not nil, runs each test. Its use is synctest.Test.
	Around func(t *testing.T, test func(t *testing.T))
}

// Node is one node with one driver.
type Node interface {
	// Driver returns the present generation of the driver.
	Driver() driver.Driver
	// Kill sends SIGKILL to the driver's process and returns when it has ended.
	Kill(T)
	// Launch starts the driver's process again.
	Launch(T)
	// Task returns a task with an id that the node has not used before, with all that the driver
	// needs except the config.
	Task(T) *driver.TaskConfig
	// Processes returns the living processes of a task, children with setsid included. False means
	// that the node cannot see them.
	Processes(driver.TaskID) ([]Process, bool)
	// Stdout returns what the task has written to its standard output.
	Stdout(*driver.TaskConfig) (string, error)
}

// Process is a living process of a task.
type Process struct {
	// Text describes it.
	Text string
	// AsDriver: it runs as the user of the driver's process.
	AsDriver bool
	// Leaked are the names of variables in its environment that the driver's process has and the
	// task does not have.
	Leaked []string
}

// Behaviour is what a task does.
type Behaviour struct {
	Kind Kind
	// After is the time until the task of kind [Exit] or [Die] ends.
	After time.Duration
	// Code is the exit code of the task of kind [Exit] or [Trap].
	Code int
	// Signal is the signal of the task of kind [Die] or [Trap], such as "SIGHUP".
	Signal string
}

// Kind is a kind of [Behaviour].
type Kind uint8

// The kinds of behaviour.
const (
	// RunForever: the task runs until a signal ends it.
	RunForever Kind = iota
	// Exit: the task exits with Code.
	Exit
	// Die: the task sends Signal to itself and is ended by it.
	Die
	// Ignore: the task ignores all signals but SIGKILL.
	Ignore
	// Trap: the task exits with Code when it gets Signal. It ignores all others but SIGKILL.
	Trap
	// Fork: like RunForever, with a child in a session of its own, which runs for ever.
	Fork
	// Fail: the task cannot start.
	Fail
	// Lines: the task writes the lines of [Output] to its standard output and exits with 0.
	Lines
)

// String returns the name of the kind.
func (k Kind) String() string {
	return [...]string{"run for ever", "exit", "die", "ignore", "trap", "fork", "fail", "lines"}[min(k, Lines)]
}

// Output is what a task of kind [Lines] writes.
const Output = "one\ntwo\nthree\n"

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	conformance.Run(t, Ready(h), Tests(h), h.Skips, h.Around)
}

// Ready returns a test that fails if the driver cannot be tested at all: it does not become healthy,
// or does not take the configs of the harness. Then all tests would fail for the same reason.
func Ready(h Harness) func(T) {
	return func(t T) { h.begin(t, new(conformance.Trace)).ready() }
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
	node := h.New(t)
	if l, is := node.(conformance.Logger); is {
		t.Cleanup(func() { calls.Keep(l.Log()) })
	}
	calls.Start()
	return &check{conformance.Check{T: t, Calls: calls}, h, node, new(health)}
}
