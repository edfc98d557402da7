package scripted

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Identity identifies a process. A pid alone does not, because a machine reuses pids.
type Identity struct {
	Boot int
	PID  int
	// Started is the time since the boot.
	Started time.Duration
}

// Kind is the role of a process.
type Kind uint8

// The kinds of processes.
const (
	// TaskProcess is the first process of a task.
	TaskProcess Kind = iota
	// ChildProcess is a process that a task has forked.
	ChildProcess
	// ExecProcess runs a command in a task's environment.
	ExecProcess
	// ShimProcess is the parent of one task.
	ShimProcess
	// DriverProcess is one generation of a driver.
	DriverProcess
	// PluginProcess is one generation of another plugin: see [NewInstance].
	PluginProcess
	// OtherProcess is a process that no driver has started: see [Machine.Spawn].
	OtherProcess
)

// String returns "task", "child", "exec", "shim", "driver", "plugin" or "other".
func (k Kind) String() string {
	return [...]string{"task", "child", "exec", "shim", "driver", "plugin", "other"}[min(k, OtherProcess)]
}

// Process is a row of a machine's process table.
type Process struct {
	Identity
	Kind Kind
	// Command is the name of the task, driver or program.
	Command string
	// Task is the start that the process belongs to. It is empty for drivers and other processes.
	Task driver.TaskID
	// Driver is the name of the driver's program, or empty.
	Driver string
	// Cgroup is the cgroup that the process is in, or empty. Contained: it is in a cgroup below, which
	// only the driver has: see [Options].Containers.
	Cgroup    string
	Contained bool
	// Devices are the device files of the host that a task and its children use, or nil.
	Devices []string
	// Ports are the ports of the host that a task and its children have, or nil.
	Ports []int
	// Cores are the cores that a task and its children have for themselves, or nil.
	Cores []int
	// Stuck: the process is in state D. It has received SIGKILL and has not ended yet.
	Stuck     bool
	StartedAt time.Time
	// Ended states whether the process is gone, EndedAt since when, and Exit how.
	Ended   bool
	EndedAt time.Time
	Exit    driver.ExitResult
	// Signals are in the order in which they were sent.
	Signals []SignalSent
}

// Signalled returns the first time at which the signal was sent to the process.
func (p *Process) Signalled(signal Signal) (SignalSent, bool) {
	for _, s := range p.Signals {
		if s.Signal == signal {
			return s, true
		}
	}
	return SignalSent{}, false
}

// SignalSent is one signal to one process.
type SignalSent struct {
	At     time.Time
	Signal Signal
	By     Sender
}

// Sender is the part of the node that sends a signal.
type Sender uint8

// The senders of signals.
const (
	// ByDriver: the task's driver, or its shim.
	ByDriver Sender = iota
	// ByClient: the client, without the driver.
	ByClient
	// ByKernel: the parent of the process has died, or the machine halts.
	ByKernel
	// ByFault: a fault of the simulation, or a person.
	ByFault
	// ByWatchdog: the watchdog of a client that is dead.
	ByWatchdog
)

// String returns "driver", "client", "kernel", "fault" or "watchdog".
func (s Sender) String() string {
	return [...]string{"driver", "client", "kernel", "fault", "watchdog"}[min(s, ByWatchdog)]
}

// Change is one change of the process table.
type Change struct {
	At      time.Time
	What    ChangeKind
	Process Identity
	// Signal and By are set if What is Signalled.
	Signal Signal
	By     Sender
}

// ChangeKind is the kind of a [Change].
type ChangeKind uint8

// The kinds of changes.
const (
	Started ChangeKind = iota
	Signalled
	Ended
)

// String returns "started", "signalled" or "ended".
func (k ChangeKind) String() string {
	return [...]string{"started", "signalled", "ended"}[min(k, Ended)]
}

// process is a row with its behaviour.
type process struct {
	row Process
	// react handles a signal that is not SIGKILL; nil is the default action of the kernel.
	react func(Signal)
	// killTakes is the time from SIGKILL to the end.
	killTakes time.Duration
	// ended run when the process has ended, in this order.
	ended []func()
}

// signalExit is the result of a process that the signal has ended.
func signalExit(s Signal) driver.ExitResult {
	return driver.ExitResult{Code: 128 + int(s), Signal: int(s)}
}
