package driver

import (
	"context"
	"io"
	"time"
)

// Driver is one generation of a driver's process. All methods are safe for concurrent use. Each
// returns when its context ends, with an error of class [Deadline]; the call may still take effect
// in the driver then. All errors have a [Class].
type Driver interface {
	// Capabilities returns what the driver can do. It does not change while the process runs,
	// and is read from the driver once.
	Capabilities() Capabilities
	// Encode returns a task's config in the form that the driver expects: [TaskConfig].Config. The
	// config is a JSON object, or empty. lookup returns the value of a variable such as
	// "attr.kernel.name". The error names unknown and missing keys.
	Encode(config []byte, lookup func(variable string) (string, bool)) ([]byte, error)

	// Fingerprints calls report with the driver's health, first at once and then at each change,
	// until the context ends or the driver ends the stream. It never returns nil.
	Fingerprints(ctx context.Context, report func(Fingerprint)) error
	// Events calls report with the driver's own events of its tasks, like Fingerprints.
	Events(ctx context.Context, report func(Event)) error

	// Start starts a task and returns its handle. After an error of class [Gone] or [Deadline] the
	// task may have been started. After any other error it has not.
	Start(ctx context.Context, task *TaskConfig) (Handle, error)
	// Recover takes over a task that another generation of the driver has started. It has no effect
	// on a task that the driver already has.
	Recover(ctx context.Context, id TaskID, handle Handle) error
	// Wait returns when the task has ended. Some drivers return too early, with code 0, while the
	// task is being stopped. Then only the result of a call after the end is true.
	Wait(ctx context.Context, id TaskID) (ExitResult, error)
	// Stop sends the signal to the task, waits for its end for the grace, and then kills it. The
	// empty signal is the driver's default. Success does not prove that the task has ended: call
	// Inspect, and then Wait for the exit code.
	Stop(ctx context.Context, id TaskID, grace time.Duration, signal string) error
	// Destroy makes the driver forget the task and removes all that the driver keeps for it. It
	// refuses a running task, unless force is set: then it kills the task first.
	Destroy(ctx context.Context, id TaskID, force bool) error
	// Inspect returns what the driver has of the task.
	Inspect(ctx context.Context, id TaskID) (Status, error)

	// Stats calls report with the task's usage of resources, at least once in each interval, until
	// the context ends or the task has ended.
	Stats(ctx context.Context, id TaskID, interval time.Duration, report func(Usage)) error
	// Signal sends a signal to the task.
	Signal(ctx context.Context, id TaskID, signal string) error
	// ExecStreaming runs a command in the task's environment, connected to the streams.
	ExecStreaming(ctx context.Context, id TaskID, command []string, streams ExecStreams) (ExitResult, error)
}

// TaskID names one start of a task. It is unique on the node for ever.
type TaskID string

// Handle is what a driver returned when it started a task, in the form of the wire. The client
// keeps it unchanged: a later generation of the driver recovers the task with it.
type Handle []byte

// Health is a driver's opinion of itself.
type Health uint8

// The values of [Health].
const (
	// Undetected: the driver cannot work on this machine.
	Undetected Health = iota
	// Unhealthy: the driver starts no task now. Its running tasks are not affected.
	Unhealthy
	Healthy
)

// String returns "undetected", "unhealthy" or "healthy".
func (h Health) String() string {
	switch h {
	case Healthy:
		return "healthy"
	case Unhealthy:
		return "unhealthy"
	}
	return "undetected"
}

// Fingerprint is a driver's report on itself.
type Fingerprint struct {
	Health      Health
	Description string
	// Attributes become attributes of the node, as text.
	Attributes map[string]string
}

// Event is something that a driver states about a task.
type Event struct {
	Task    TaskID
	Time    time.Time
	Message string
	// Annotations may have [WaitsFor].
	Annotations map[string]string
}

// WaitsFor is the name of an attribute of [Status] and of an annotation of [Event]: the processes that
// keep a task from its end, although its first process has ended or was killed. Drivers need not set it.
const WaitsFor = "waits_for"

// FSIsolation is how much of the host's file system a task sees.
type FSIsolation uint8

// The values of [FSIsolation], with the numbers of the wire.
const (
	FSNone FSIsolation = iota
	FSChroot
	FSImage
	FSUnveil
)

// NetworkMode is the kind of network of a task.
type NetworkMode uint8

// The values of [NetworkMode], with the numbers of the wire.
const (
	NetworkHost NetworkMode = iota
	NetworkGroup
	NetworkTask
	NetworkNone
)

// Capabilities is what a driver can do. The zero value can start and stop tasks on the host's file
// system and network, and nothing else.
type Capabilities struct {
	SendSignals       bool
	Exec              bool
	FSIsolation       FSIsolation
	NetworkModes      []NetworkMode
	MustCreateNetwork bool
	// NoMounts: the driver refuses mounts.
	NoMounts bool
	// NoLogCollection: the driver does not write to the log paths of the task.
	NoLogCollection      bool
	DynamicWorkloadUsers bool
	// HostCgroup: the driver keeps all processes of a task in the cgroup that the client created.
	// The client may kill them without a call of the driver.
	HostCgroup bool
}

// ExitResult is how a task ended.
type ExitResult struct {
	// Code is the exit code, 128 plus the signal if a signal ended the task. It has no meaning if
	// Unknown is set.
	Code   int
	Signal int
	// OOMKilled: the kernel killed the task because it used too much memory.
	OOMKilled bool
	// Unknown: the task has ended, and its exit code is lost.
	Unknown bool
}

// Successful reports whether the task is known to have exited with 0.
func (r ExitResult) Successful() bool { return r.Code == 0 && r.Signal == 0 && !r.Unknown }

// TaskState is a driver's knowledge of a task.
type TaskState uint8

// The values of [TaskState], with the numbers of the wire.
const (
	TaskUnknown TaskState = iota
	TaskRunning
	TaskExited
)

// String returns "running", "exited" or "unknown".
func (s TaskState) String() string {
	switch s {
	case TaskRunning:
		return "running"
	case TaskExited:
		return "exited"
	}
	return "unknown"
}

// Status is the answer of [Driver.Inspect].
type Status struct {
	ID    TaskID
	Name  string
	State TaskState
	// StartedAt and CompletedAt are zero if the driver does not state them.
	StartedAt   time.Time
	CompletedAt time.Time
	// Exit is set if State is TaskExited and the driver has the result.
	Exit *ExitResult
	// Attributes are the driver's own facts. They may have [WaitsFor].
	Attributes map[string]string
}

// Usage is a task's use of resources at one time.
type Usage struct {
	Time time.Time
	// CPUPercent is the use of the processor, where 100 is one core.
	CPUPercent float64
	// RSS is the memory in bytes.
	RSS uint64
}

// Output is the output and the result of a command that a driver has run without streams.
type Output struct {
	Stdout, Stderr []byte
	Exit           ExitResult
}

// TerminalSize is the size of a terminal in characters.
type TerminalSize struct{ Height, Width int }

// ExecStreams connect a command that runs in a task's environment.
type ExecStreams struct {
	// Stdin is read until its end; nil is no input.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// TTY requests a terminal, and Resize carries its sizes; nil is none.
	TTY    bool
	Resize <-chan TerminalSize
}
