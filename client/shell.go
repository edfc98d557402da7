package client

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/device"
	"github.com/seed-f9cf0b39/nodedrain/client/driver"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Time is one reading of the node's clocks.
type Time struct {
	// Boot is the time since the machine booted, suspend included. It never goes back.
	Boot time.Duration
	// Wall is the time of day. The core uses it only in reports.
	Wall time.Time
}

// Never means that no step is needed.
const Never time.Duration = 1<<63 - 1

// Life names one life of a plugin's process on this node. Later lives have greater numbers. Zero
// is no life.
type Life uint64

// TaskRef names one start of a task, and the life of the driver that a call is for.
type TaskRef struct {
	Alloc  cluster.AllocID
	Task   string
	ID     driver.TaskID
	Driver string
	// Life is zero in calls that need no driver.
	Life Life
}

// DevicesRef names devices of one kind for a call to a life of their plugin.
type DevicesRef struct {
	Plugin string
	Life   Life
	Kind   cluster.DeviceKind
	IDs    []string
}

// Shell acts for a [Core]. Each method returns at once and does not block. It calls reply exactly
// once, from any goroutine but not before it returns. If the owner stops the core, the replies no
// longer matter.
//
// All effects can be repeated: the core repeats an effect whose answer was lost in a crash.
//
// A call for a life of a plugin that has ended is answered with an error of class [driver.Gone]. A
// call in flight is answered so when the plugin's process is dead, and not before: a process that
// cannot be reached must be killed first. At most one process of a plugin lives at a time.
type Shell interface {
	// Launch starts the plugin's program, or takes over the process that an earlier client has
	// left. Once it is answered without an error, [Core.PluginDown] tells the end of this life.
	// [Core.Fingerprint] tells the health of a driver, and [Core.Devices] the devices of a device
	// plugin.
	Launch(p Plugin, reply func(Launched))
	// Abandon kills the process of a plugin that does not answer. It has no effect on a life that
	// has ended.
	Abandon(p Plugin, life Life)

	// Save writes a record durably. The record belongs to the shell. Only one save for each
	// allocation is in flight.
	Save(record *Record, reply func(error))
	// Discard removes the record of an allocation and its folders.
	Discard(alloc cluster.AllocID, reply func(error))
	// Build makes the folders of an allocation.
	Build(alloc *cluster.Allocation, reply func(error))

	// Reserve asks a device plugin to prepare devices for a start of a task, and answers with what the
	// task needs to use them. The shell limits the call: it then answers with an error of class
	// [driver.Deadline]. There is no call that gives devices back.
	Reserve(task TaskRef, devices DevicesRef, reply func(device.Reservation, error))
	// Start makes the task's cgroup and log readers and starts the task with all that its devices
	// need. After an error that is not [driver.Class.Uncertain] the task does not run. The shell sets
	// no time limit.
	Start(task TaskRef, alloc *cluster.Allocation, devices []device.Part, reply func(driver.Handle, error))
	// Recover gives a task to a new life of its driver, and starts its log readers again if they are
	// gone.
	Recover(task TaskRef, alloc *cluster.Allocation, handle driver.Handle, reply func(error))
	// Wait answers when the task has ended.
	Wait(task TaskRef, reply func(driver.ExitResult, error))
	// Inspect answers with what the driver knows of the task.
	Inspect(task TaskRef, reply func(driver.Status, error))
	// Stop asks the driver to send the signal, and to kill the task after the grace. The shell
	// limits the call to the grace and [StopSlack], whose sum may overflow.
	Stop(task TaskRef, grace time.Duration, signal string, reply func(error))
	// Kill sends SIGKILL to all processes of the task's cgroup, and answers within about a second
	// with those that are left. With a life it asks a driver that keeps its tasks elsewhere to
	// destroy the task instead. An error means that the shell does not know what is left.
	Kill(task TaskRef, reply func([]Process, error))
	// AwaitEmpty answers when no process is left in the task's cgroup. It costs nothing until
	// then.
	AwaitEmpty(task TaskRef, reply func(error))
	// Clean removes all that is left of a start: it makes the driver destroy the task by force,
	// kills the cgroup and removes it, and ends the log readers after they have read the rest. With
	// Life zero it does not ask the driver. Without an ID it cleans up all starts of the task. It answers with the processes that are left; then
	// nothing of them was removed. An error means that the shell does not know what is left.
	Clean(task TaskRef, reply func([]Process, error))

	// Report takes reports to the servers. True means that the servers have them.
	Report(reports []cluster.AllocReport, reply func(taken bool))
	// Publish makes the facts known to the servers. The shell owns them, and repeats it until the
	// servers have them. A later call replaces an earlier one.
	Publish(facts NodeFacts)
}

// StopSlack is the time beyond the grace in which a driver has to answer [Shell.Stop], or to give
// the result of a task that was killed.
const StopSlack = 20 * time.Second

// Launched is the answer to [Shell.Launch].
type Launched struct {
	// Life is the new life, or zero after an error.
	Life Life
	// Capabilities are those of a driver.
	Capabilities driver.Capabilities
	// Reattached: the process was started by an earlier client. It may still work on calls of that
	// client.
	Reattached bool
	Err        error
}

// Process describes a process that did not die.
type Process struct {
	PID     int
	Command string
	// State is the letter of /proc, such as "D".
	State string
}

// Wanted is an answer of the servers: the allocations of the node.
type Wanted struct {
	// ClusterID and Index name the state that the answer is from.
	ClusterID string
	Index     uint64
	// Allocs are the allocations that the servers have changed since the last answer, or all.
	Allocs []*cluster.Allocation
	// Known are the ids of all allocations of the node in that state that are not client-terminal. It
	// is used only if Complete is set: the core stops an allocation that is not among them.
	Known    []cluster.AllocID
	Complete bool
	// Claims are the node's claims on volumes in that state or a later one. They are used only if Complete is
	// set: the core releases those that no allocation of Known has.
	Claims []*cluster.VolumeClaim
}
