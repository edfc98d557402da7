// Package checks decides when the client runs the checks of one allocation, and what their results
// mean. A [Set] is a step machine: it reads no clock, does no I/O and starts no goroutine. Its owner
// executes the runs that [Set.Step] returns, and passes each result to [Set.Answer]. Package probe
// executes runs on a real node.
//
// # When a check runs
//
// A check runs while its task runs and need not stop. Its task is the one that the check, its service
// or the place of the service names, or all main tasks. The first run begins at once, and each later
// one an interval after the beginning of the last. The times have no jitter: checks of different
// allocations begin with their tasks, which do not start at the same time. After a restart of the
// client they would: there the first runs are spread over the interval, by a hash of the check.
//
// A check has at most one run at a time. A run that is not answered some time after its timeout, such as
// a script that its driver cannot end, counts as a failure once in each interval. The next run waits for
// its answer.
//
// A new start of the task begins with the status pending, and no result of an earlier start counts.
package checks
