package scripted

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Script is what one task does. The zero value starts at once, runs until it gets a signal, and is
// ended by any signal at once. A duration may be [Never].
type Script struct {
	// StartDelay is the time from the call to the task's process. If the driver's process dies in
	// it, the task does not start.
	StartDelay time.Duration `json:"start_delay,omitempty"`
	// StartError, if not empty, fails the start after StartDelay.
	StartError       string `json:"start_error,omitempty"`
	StartRecoverable bool   `json:"start_recoverable,omitempty"`

	// Ends states that the task ends by itself with Exit, after RunFor.
	Ends   bool              `json:"ends,omitempty"`
	RunFor time.Duration     `json:"run_for,omitempty"`
	Exit   driver.ExitResult `json:"exit,omitzero"`

	// IgnoreSignals: the task ignores all signals but SIGKILL.
	IgnoreSignals bool `json:"ignore_signals,omitempty"`
	// OnlySignal, if not zero, is the only signal beside SIGKILL that the task does not ignore.
	OnlySignal Signal `json:"only_signal,omitempty"`
	// StopTakes is the time from a signal that is not SIGKILL to the task's end.
	StopTakes time.Duration `json:"stop_takes,omitempty"`
	// StopExit is the result of a task that a signal has ended. Nil is the kernel's: 128 plus the
	// signal.
	StopExit *driver.ExitResult `json:"stop_exit,omitempty"`
	// KillTakes is the time from SIGKILL to the end, in which the task is in state D.
	KillTakes time.Duration `json:"kill_takes,omitempty"`

	// Child, if not nil, is a process that the task forks with setsid when it starts.
	Child *Child `json:"child,omitempty"`

	// RecoverError, if not empty, fails each RecoverTask of the task.
	RecoverError string `json:"recover_error,omitempty"`
	// WaitFailsAfterStop fails each WaitTask that begins after StopTask, with exit code -1, as
	// released raw_exec drivers do. InspectTask still has the result.
	WaitFailsAfterStop bool `json:"wait_fails_after_stop,omitempty"`
	// StopLies: StopTask sends the signal and answers at once. It does not kill.
	StopLies bool `json:"stop_lies,omitempty"`
}

// Child is a process that outlives its task.
type Child struct {
	// RunFor is how long it runs. It ignores all signals but SIGKILL.
	RunFor time.Duration `json:"run_for"`
	// LeavesCgroup: it moves itself out of the task's cgroup.
	LeavesCgroup bool `json:"leaves_cgroup,omitempty"`
}

// Names of calls, for [Call] and errors.
const (
	CallStart       = "StartTask"
	CallRecover     = "RecoverTask"
	CallWait        = "WaitTask"
	CallStop        = "StopTask"
	CallDestroy     = "DestroyTask"
	CallInspect     = "InspectTask"
	CallSignal      = "SignalTask"
	CallExec        = "ExecTaskStreaming"
	CallStats       = "TaskStats"
	CallFingerprint = "Fingerprint"
	CallEvents      = "TaskEvents"
)

// Call is one call to a driver.
type Call struct {
	// Name is one of the names above.
	Name string
	// Generation is the number of the driver's process, from 1.
	Generation int
	// Task is empty for calls that are not for a task. Script is nil unless the program has the
	// task.
	Task   driver.TaskID
	Script *Script
	// Count is how many calls of this name for this task the program has received, from 1.
	Count int
}

// Fault changes the result of one call. The zero value changes nothing: the call is answered at
// once. Streams have only the faults before the effect.
type Fault struct {
	// Delay is the time until the driver acts on the call. The task or the driver may have ended
	// then.
	Delay time.Duration
	// Action happens after Delay.
	Action Action
	// Err is the error of [Fail] and [FailAfter]. Nil is a fatal one of a driver, and a transient one
	// of a storage plugin.
	Err error
}

// Action is what a plugin or a server does with a call. Servers do not crash: they hang.
type Action uint8

// The actions.
const (
	// Answer: the call takes effect and is answered.
	Answer Action = iota
	// Fail: the call has no effect, and fails with the fault's error. FailAfter: it takes effect, and
	// fails.
	Fail
	FailAfter
	// Hang: the call has no effect and no answer. HangAfter: it takes effect, without an answer.
	Hang
	HangAfter
	// Crash: the plugin's process ends and the call has no effect. CrashAfter: it takes effect, and
	// then the process ends.
	Crash
	CrashAfter
)

// Parent is where the tasks of a driver live.
type Parent uint8

// The places of tasks.
const (
	// InShim: each task has a shim, which outlives the driver's process, finishes a StopTask that
	// it has started, and keeps the exit result.
	InShim Parent = iota
	// InInit: tasks outlive the driver's process, but their exit results do not. A generation of
	// the driver that has recovered a task states that the result is unknown.
	InInit
	// InDriver: tasks are killed when the driver's process ends.
	InDriver
)

// Launch is what one launch of a driver does. The zero value succeeds at once.
type Launch struct {
	// Takes is the time until the driver answers its first call; [Never] is a driver that makes no
	// handshake.
	Takes time.Duration
	// Err, if not empty, fails the launch: the process ends after Takes.
	Err string
	// Dies: the process ends when its launch has been answered, before its first call.
	Dies bool
}

// Options describe a driver's program. The zero value is a healthy driver without optional calls,
// whose tasks have shims.
type Options struct {
	Capabilities driver.Capabilities
	// Fingerprint is the first report of the driver; nil is healthy. See [Program.SetFingerprint].
	Fingerprint *driver.Fingerprint
	Parent      Parent
	// Containers: the driver keeps each task in a cgroup of its own, below the cgroup of the task's
	// config. The cgroup calls of [Machine] do not reach it. All processes of a container end with its
	// first one. It needs a config with a cgroup, Capabilities without HostCgroup, and another Parent
	// than InShim.
	Containers bool
	// EarlyWait: WaitTask answers with code 0 as soon as StopTask has begun, although the task still
	// runs. DestroyTask of a task that is being stopped forgets the task without a kill, and
	// StopTask goes on. InspectTask returns the truth.
	EarlyWait bool
	// LeavesChildren: DestroyTask does not kill the children of a task.
	LeavesChildren bool

	// Script returns what a task does; nil is the zero [Script]. It is called once for each
	// StartTask.
	Script func(*driver.TaskConfig) Script
	// Fault returns the fault of a call; nil means no faults. It is called once for each call.
	Fault func(Call) Fault
	// Launch returns what the launch of a generation does; nil is a success at once.
	Launch func(generation int) Launch
}
