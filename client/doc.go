// Package client is the core of a node's client. It decides what happens to the allocations of one
// node: which tasks run, in which order they start and stop, when a task is restarted, what the
// servers are told, and what is kept on disk. It does no I/O, reads no clock and starts no
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
// # Records
//
// Before an effect that leaves something behind, the core saves a [Record] with which a later core
// can undo the effect. The core removes a record when nothing of its allocation is left on the
// node. After a crash a new core continues from the records: it takes running tasks over, reports
// the results of tasks that have ended, and destroys tasks that it cannot take over.
//
// # Time
//
// The core counts on the clock that starts at the boot of the machine and does not stop in suspend:
// see [Time]. This clock is never set, so a restarted client continues to count delays, kill
// timeouts and deadlines from the recorded times. After a boot the clock starts again at zero. Each
// record names its boot.
package client
