// Package process identifies processes, waits for their end and describes them. The client, its log
// keepers and the raw_exec driver use it. Begin with [Open].
//
// A pid alone is not a name: the kernel gives it to another process later. An Identity is boot id,
// pid and start time. Together they identify one process permanently, so a record may contain an
// Identity, and it can be compared after a restart of the client or of the machine.
//
// A Process holds a pidfd of a process whose identity was compared after the pidfd was opened. No
// function of this package signals a process in another way. Wait uses the pidfd and the runtime's
// poller: it costs neither a thread nor a timer.
package process
