// Package watchdog is a small process that stops tasks when their client is dead and no server
// answers: those of groups with StopOnClientAfter. Package guard states what it stops, and when.
//
// A client starts a watchdog with [Start] before such a task starts, and ends it after the last one
// has ended. There is at most one for each client. It is the same program as the client, started
// with one argument ([Argument]). It lives in its own session and its own control group, so neither
// the end of the client nor a kill of the client's control group ends it.
//
// The client writes the guards and the answered heartbeats to a pipe. The end of the pipe is the
// end of the client, also if the client stops on purpose. Nothing is polled and nothing is written
// to the disk while the client lives. What a dead client has written to the pipe is still read.
//
// One watchdog at a time has the lock of its folder. A new one gets all guards first, kills the old
// one, and takes the lock. So the deadline is guarded at each moment, and the old watchdog stops
// nothing after [Start] has returned. Each start has a number, and a watchdog that finds a later
// one ends. A client that has nothing to guard calls [End].
//
// The watchdog identifies tasks by their control group only. It removes a group that has no process, so
// that a driver that still works on a start of the dead client cannot finish it. It does not reach
// tasks that a driver runs elsewhere, and it does nothing on a machine without control groups.
//
// Before the first signal it writes a [guard.Stopped] to the folder. [Notes] returns them to the
// next client. If the disk is full, the note is lost and the tasks still stop.
//
// Protocol: the arguments are "-protocol 1" and flags; messages are JSON values. The process prints
// "ready 1" or "error" with a text. A watchdog refuses a protocol that it does not support. A client
// of a later protocol must still understand the lock and the file of the holder: it ends the
// watchdog of an earlier client.
package watchdog
