// Package client is the core of a node's client. It decides what happens to the allocations of one
// node: which tasks run, in which order they start and stop, when a task is restarted, what the
// servers receive, and what is kept on disk. It does no I/O, reads no clock and starts no
// goroutine.
//
// # Core and shell
//
// A [Core] is a step machine. Its owner, the shell, calls [Core.Step] with the time. The core calls
// the methods of [Shell] to act. Each method starts one effect and returns at once. The shell
// passes the answer to the reply function, from any goroutine, and the core handles it in the next
// step. The shell also posts events that no effect caused: an answer of the servers, the end of a
// driver's process, a fingerprint.
//
// Package client/node is the shell for a real node. The simulator has another shell with scripted
// drivers, in virtual time.
//
// # Visits
//
// A node has many allocations and volumes, and an event concerns few of them. A step visits an
// allocation only if it is marked, or if the time has come that its last visit requested. These
// mark an allocation:
//
//   - the answer to an effect of the allocation, and a change of its record
//   - the start of a plugin's process, and the first answer of the servers
//   - the end of the allocation that it replaces
//   - a change of its volumes
//   - for a storage plugin, which may be held for volumes: a change of any volume, and a change of
//     the record of another storage plugin
//
// A task that waits for a device is visited in each step. A step ends when no allocation is marked.
// A test follows each step by one that visits all allocations, and checks that it has no effect.
//
// # Records
//
// Before an effect that leaves something behind, the core saves a [Record] with which a later core
// can undo the effect. The core removes a record when nothing of its allocation is left on the
// node. After a crash a new core continues from the records: it takes running tasks over, reports
// the results of tasks that have ended, and destroys tasks that it cannot take over.
//
// # The end of a task
//
// A driver reports the end of a task with its answer of WaitTask. Some drivers answer as soon as a
// task is being stopped. So during a stop the core also needs the answers of StopTask and
// InspectTask, and then calls WaitTask once more for the exit code: see ending.go.
//
// # Time
//
// The core counts on the clock that starts at the boot of the machine and does not stop in suspend:
// see [Time]. This clock is never set, so a restarted client continues to count delays, kill
// timeouts and deadlines from the recorded times. After a boot the clock starts again at zero. Each
// record names its boot.
package client
