// Package client is the core of a node's client. It decides what happens to the allocations of one
// node: which tasks run, in which order they start and stop, when a task is restarted, what the
// servers are told, and what is kept on disk. It does no I/O, reads no clock and starts no
// goroutine.
//
// # Core and shell
//
// A [Core] is a step machine. Its owner, the shell, calls [Core.Step] with the time. The core calls
// the methods of [Shell] to act. Each method begins one effect and returns at once; the answer comes
// back through the reply function, from any goroutine, and is handled in the next step. The shell
// also posts what happens by itself: an answer of the servers, a driver that died, a fingerprint.
//
// Package client/node is the shell for a real node. The simulator has another one over scripted
// drivers, in virtual time.
//
// # Records
//
// Before an effect that leaves something behind, the core saves a [Record] that can undo it. A
// record goes when everything that it stands for is gone. After a crash a new core continues from
// the records: it takes a running task over, reports the result of a task that has ended, and
// destroys what it cannot take over.
//
// # Time
//
// The core counts on the clock that starts at the boot of the machine and does not stop in
// suspend: see [Time]. This clock is never set, so a client that is restarted continues to count
// delays, grace and deadlines where the last one stopped. After a boot the clock starts again;
// the records name the boot.
package client
