// Package process identifies processes, waits for their end and describes them.
//
// A pid alone is not a name: the kernel gives it to another process later. An Identity is boot id,
// pid and start time. Together they name one process for ever, so that an Identity may be kept in
// a record and compared after a restart of the client or of the machine.
//
// A Process holds a pidfd of a process whose identity was compared after the pidfd was opened. No
// function of this package signals a process in another way. Wait uses the pidfd and the runtime's
// poller: it costs neither a thread nor a timer.
package process
