// Package shim is the small process that is the parent of one raw_exec task. It continues to run
// when the client or the driver ends. Each task has one shim, which is a process of the same
// program.
//
// # What a shim does
//
// It reads a [Spec] from stdin, starts the task in its control group, in a new session, and waits.
// It rotates the logs if the host requested that. It sends signals and stops the task on request.
// The kill at the end of the grace does not need the driver. The shim is a child subreaper, so
// orphaned descendants of the task become its children.
//
// When the task's first process has ended, the shim kills all other processes of the task and waits
// until they have ended. Then it writes the result to its [Record] and exits. So if the record states
// "exited", no process of the task is left, and an ended task needs no process.
//
// If the shim dies first, the kernel kills the task's first process, and the driver kills the rest that it finds.
//
// # The folder
//
// Each task has a folder below one folder of mode 0700 in the driver's config. Its name is a hash
// of the task id:
//
//	lock     locked while a shim lives, or is being started
//	record   a Record as JSON, one page of a fixed size, so that a full disk cannot refuse the result
//	socket   the shim listens here for requests of processes with its own uid or root's
//	log      messages of the shim
//
// # Versions
//
// A record contains the protocol version of its shim. A driver uses this version for older shims,
// and refuses newer shims. So the client can be upgraded while tasks run.
package shim
