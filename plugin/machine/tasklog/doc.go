// Package tasklog writes the output of a task to files of limited size. A task never waits for its
// log. Log keepers and the shims of raw_exec use it. Begin with [Log].
//
// The log of one stream is a sequence of files, NAME.0, NAME.1 and so on, for example
// "web.stdout.0". The newest file has the largest number. A [Writer] writes to the newest file,
// opens the next one before it leaves a full one, and deletes the oldest. After a restart it
// continues in the newest file.
//
// A [Log] is a Writer behind a buffer of bounded size. While the disk is slow or full, the buffer
// keeps the oldest lines, and newer lines are dropped and counted. A line in the log states how many.
// [Log.Copy] reads a pipe or a FIFO into a Log. It takes data from the pipe after it has reached the
// file, so that a process that is killed between the two repeats these bytes in its next life and
// loses none.
//
// Log files are not synced: a machine that loses its power may lose the last lines.
package tasklog
