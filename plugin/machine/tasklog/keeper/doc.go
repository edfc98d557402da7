// Package keeper is a small process that writes the log of one task. Drivers that do not write logs
// themselves send the output of their tasks to two FIFOs. The keeper reads them.
//
// The client starts a keeper with [Start] before it starts the task. The keeper creates the FIFOs,
// opens them for reading and for writing, so that the task gets neither SIGPIPE nor a full pipe
// without a reader, and reports that it is ready. It runs in its own session and survives the
// client. After a restart, Start finds it again: while a keeper runs, it holds a lock on a file
// beside the FIFOs. That file has its identity: boot id, pid and start time.
//
// One keeper serves all runs of a task. [Keeper.Stop] ends it after the rest of the FIFOs has
// reached the log, at most [DrainTime] later.
//
// The death of a keeper does not end the task while a client lives: the client's [Keeper] holds the
// FIFOs open, and the next Start continues with what is in them.
//
// Protocol: the arguments of the process are "-protocol 1" and the fields of [Config]. It prints
// "ready 1" or "error" with a text to its standard output, and closes it. SIGTERM requests it to end. A
// keeper refuses a protocol that it does not support. A client of a later protocol must still understand
// the lock, the identity file and SIGTERM.
package keeper
