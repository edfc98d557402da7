package client

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/checks"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Time is one reading of the node's clocks.
type Time struct {
	// Boot is the time since the machine booted, including suspend. It never goes back.
	Boot time.Duration
	// Wall is the time of day. The core uses it only in reports.
	Wall time.Time
}

// wallAt converts a time of the boot clock to the time of day.
func (t Time) wallAt(boot time.Duration) time.Time { return t.Wall.Add(boot - t.Boot) }

// Never means that no step is needed.
const Never time.Duration = 1<<63 - 1

// Generation identifies one process of a plugin on this node, from its start to its end. A later
// process has a greater number. Zero means that no process runs.
type Generation uint64

// TaskRef names one start of a task, and the process of the driver that a call is for.
type TaskRef struct {
	Alloc  cluster.AllocID
	Task   string
	ID     driver.TaskID
	Driver string
	// Generation is zero in calls that need no driver.
	Generation Generation
}

// DevicesRef names devices of one kind, and the process of their plugin that a call is for.
type DevicesRef struct {
	Plugin     string
	Generation Generation
	Kind       cluster.DeviceKind
	IDs        []string
}

// Shell executes the effects of a [Core]. Each method returns at once and does not block. It calls
// reply exactly once, from any goroutine, and not before it returns. After the owner has stopped
// the core, replies are no longer needed.
//
// All effects must be repeatable: the core repeats an effect whose answer was lost in a crash.
//
// If the plugin's process in a call has ended, the shell answers with an error of class
// [driver.Gone]. It gives this answer to a call in flight only after the process is dead. So it
// must kill a process that it cannot reach before it answers. At most one process of a plugin runs
// at a time.
type Shell interface {
	// Launch starts the plugin's program, or takes over the process of an earlier client. After an
	// answer without an error, and not before it, the shell calls [Core.PluginDown] when the
	// process ends. It calls [Core.Fingerprint] with the health of a driver, and [Core.Devices]
	// with the devices of a device plugin.
	Launch(p Plugin, reply func(Launched))
	// Abandon kills the process of a plugin that does not answer. It has no effect if this process
	// has ended.
	Abandon(p Plugin, generation Generation)

	// Save writes a record durably. The shell owns the record. At most one save of each allocation
	// is in flight.
	Save(record *Record, reply func(error))
	// Discard removes the record of an allocation and its folders.
	Discard(alloc cluster.AllocID, reply func(error))
	// Build creates the folders of an allocation.
	Build(alloc *cluster.Allocation, reply func(error))

	// CopyData requests the data of the allocation that alloc replaces from the servers, and receives it into a
	// folder of alloc that no task sees. It continues where the last call of the same shell ended. It calls
	// progress when data begins to arrive, and then at most about once in a second, until it calls reply. It
	// does not wait for more data when nothing has arrived for some seconds.
	CopyData(alloc *cluster.Allocation, progress func(DataProgress), reply func(DataAnswer))
	// DropData ends a call of CopyData in flight, whose answer is no longer needed, and removes what has arrived
	// for the allocation. It answers after the end of that call.
	DropData(alloc cluster.AllocID, reply func(error))
	// PlaceData moves all that has arrived for an allocation into its folders. With from it moves the data out of
	// the folders of that ended allocation of the node instead. It can also be repeated after a success.
	PlaceData(alloc *cluster.Allocation, from cluster.AllocID, reply func(error))

	// Reserve requests a device plugin to prepare devices for a start of a task, and answers with what
	// the task needs to use them. The shell limits the time of the call. After the limit it answers
	// with an error of class [driver.Deadline]. There is no call to release devices.
	Reserve(task TaskRef, devices DevicesRef, reply func(device.Reservation, error))
	// Start creates the task's cgroup and log readers, and starts the task with everything that its
	// devices need. After an error that is not [driver.Class.Uncertain] the task does not run. The
	// shell sets no time limit.
	Start(task TaskRef, alloc *cluster.Allocation, devices []device.Part, reply func(driver.Handle, error))
	// Recover passes a task to a new process of its driver, and restarts the task's log readers if
	// they do not run.
	Recover(task TaskRef, alloc *cluster.Allocation, handle driver.Handle, reply func(error))
	// Wait answers when the task has ended, or earlier if the driver answers during a stop.
	Wait(task TaskRef, reply func(driver.ExitResult, error))
	// Inspect answers with the state of the task, by its driver.
	Inspect(task TaskRef, reply func(driver.Status, error))
	// Stop requests the driver to send the signal, and to kill the task after the grace (the kill
	// timeout). The shell limits the call to the sum of the grace and [StopSlack], which may
	// overflow.
	Stop(task TaskRef, grace time.Duration, signal string, reply func(error))
	// Kill sends SIGKILL to all processes of the task's cgroup, and answers within about a second
	// with the processes that still run. If task.Generation is set and the driver does not keep its
	// tasks in this cgroup, Kill requests the driver to destroy the task instead. If task.ID is empty,
	// the processes of all starts first get the default kill timeout. An error means that the shell
	// cannot determine what is left.
	Kill(task TaskRef, reply func([]Process, error))
	// AwaitEmpty answers when no process is left in the task's cgroup. It waits for an event of the
	// kernel and does not poll.
	AwaitEmpty(task TaskRef, reply func(error))
	// Clean removes the remains of a start. It requests the driver to destroy the task by force, kills
	// and removes the cgroup, and stops the log readers after they have read the rest. If
	// task.Generation is zero, it does not call the driver. If task.ID is empty, it removes all
	// starts of the task, like Kill. If processes still run, it answers with them and has not removed the
	// cgroup. An error means that the shell cannot determine what is left.
	Clean(task TaskRef, reply func([]Process, error))

	// Check executes one run of a check. The shell limits it to the timeout of the check.
	Check(run CheckRun, reply func(checks.Result))
	// EndCheck ends a run of an allocation whose result is no longer needed. Check still answers.
	EndCheck(alloc cluster.AllocID, run uint64)

	// Report sends reports to the servers. taken means that the servers have them.
	Report(reports []cluster.AllocReport, reply func(taken bool))
	// Publish sends the facts to the servers. The shell owns the facts, and retries until the
	// servers have them. A later call replaces an earlier one.
	Publish(facts NodeFacts)
}

// StopSlack is how long after the grace a driver may take to answer [Shell.Stop], or to return the
// result of a task that was killed.
const StopSlack = 20 * time.Second

// Launched is the answer to [Shell.Launch].
type Launched struct {
	// Generation is the number of the new process, or zero after an error.
	Generation Generation
	// Capabilities are set for a driver only.
	Capabilities driver.Capabilities
	// Reattached: an earlier client has started the process. The process may still work on calls of
	// that client.
	Reattached bool
	Err        error
}

// CheckRun is one run of a check of an allocation, for [Shell.Check].
type CheckRun struct {
	checks.Run
	Alloc *cluster.Allocation
	// Task is the start of the task in which a script runs. Other checks need none.
	Task TaskRef
}

// DataProgress is what has arrived of the data of an ephemeral disk.
type DataProgress struct {
	// Source is the allocation whose data it is, as the servers name it, or empty.
	Source cluster.AllocID
	// Bytes counts the contents of files, and Entries the files, folders and links. Skipped counts the special
	// files that are left out.
	Bytes, Entries, Skipped int64
	// Mounts names the folders that are left out because another file system is mounted there, or is empty.
	Mounts string
}

// DataAnswer is the answer to [Shell.CopyData].
type DataAnswer struct {
	DataProgress
	Result DataResult
	// Why is the reason for operators, or empty if all data has arrived.
	Why string
}

// DataResult is how a call of [Shell.CopyData] ended.
type DataResult uint8

// The results of a copy.
const (
	// DataArrived: all data has arrived and is on the disk.
	DataArrived DataResult = iota
	// DataWaits: the allocation with the data has not ended, or other copies run first.
	DataWaits
	// DataUnreached: no server has answered, or the one that did cannot serve any request now.
	DataUnreached
	// DataFailed: a server has answered with an error, or the copy was cut.
	DataFailed
	// DataRefused: a retry cannot help. The data does not exist, or is too large.
	DataRefused
	// DataNoRoom: the disk of the node has no room for the data.
	DataNoRoom
)

// DeviceReport is what a device plugin reports.
type DeviceReport struct {
	// Groups are all devices of the plugin, as [device.Check] returns them.
	Groups []*cluster.DeviceGroup
	// Ignored states which parts of the report the client ignores and why, or is empty.
	Ignored string
	// Err is the error with which the plugin has stopped reporting, or nil. After an error the
	// devices of the plugin are unhealthy until the next report, and the other fields are not used.
	Err error
}

// Process describes a process that did not die.
type Process struct {
	PID     int
	Command string
	// State is the letter of /proc, such as "D".
	State string
}

// Changes is an answer of the servers: the allocations of the node.
type Changes struct {
	// ClusterID, Index and History identify the state of the servers that gave the answer. History is empty
	// if the servers do not have it.
	ClusterID string
	Index     uint64
	History   string
	// Version is the cluster version by which the servers answer, or zero if it is unknown.
	Version cluster.Version
	// Allocs are the allocations that the servers have changed since the last answer, or all
	// allocations. All states that they are all allocations that are not client-terminal. The servers
	// send them at the first request, and if they do not have the state of the last answer.
	Allocs []*cluster.Allocation
	All    bool
	// Unreadable are other allocations like these, with fields that the client cannot read. The core
	// reports one that it does not run as failed. It continues one that it runs.
	Unreadable []Unreadable
	// Nameless are the reasons for each allocation whose id the client cannot read. The core logs it.
	Nameless []string
	// Known are the ids of all allocations of the node in that state that are not client-terminal, and of those
	// whose data the client keeps.
	// The core uses it only if Complete is set: it then stops each allocation that is not in Known.
	Known    []cluster.AllocID
	Complete bool
	// Claims are the node's claims on volumes in that state or a later one. The core uses them only
	// if Complete is set: it then releases the claims whose allocations are not in Known.
	Claims []*cluster.VolumeClaim
}

// Unreadable is an allocation that the client cannot read in full.
type Unreadable struct {
	// Alloc has its id and the fields that can be read. Its job is nil.
	Alloc *cluster.Allocation
	// Reason states which field cannot be read and why, such as "Job is nested 10001 levels deep".
	Reason string
}
