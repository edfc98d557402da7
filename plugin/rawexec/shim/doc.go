// Package shim is the small process that is the parent of one raw_exec task. It outlives the client
// and the driver. There is one shim for each task, a process of this same program.
//
// # What a shim does
//
// It reads a [Spec] from stdin, starts the task in its control group, in a session of its own, and
// waits. It rotates the logs, if the host asked for it. It sends signals and stops the task when a
// client asks: the kill at the end of the grace needs no living driver. It is a child subreaper, so
// that processes that fork away become its children.
//
// When the task's first process has ended, the shim kills all other processes of the task and waits
// until none lives. Then it writes the result to its [Record] and exits. So a dead shim whose record
// says "exited" leaves nothing, and an ended task costs no process.
//
// If the shim dies first, the kernel kills the task's first process, and the driver kills the rest:
// see [Folder.Settle].
//
// # The folder
//
// Each task has a folder, named after a hash of the task id, below one folder of mode 0700 that the
// driver's config names:
//
//	lock     locked while a shim lives, or is being started
//	record   a Record as JSON, one page of a fixed size, so that a full disk cannot refuse the result
//	socket   the shim listens here for requests of processes with its own uid or root's
//	log      what the shim itself has to say
//
// # Versions
//
// A record names the protocol of its shim. A driver asks older shims in their protocol and refuses
// newer ones. So the client can be updated while tasks run.
package shim
