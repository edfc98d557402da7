// Package guard decides what must stop on a node whose client has died or hangs.
//
// The servers free a volume for one writer when the client of an unreachable node must have stopped
// its task: StopOnClientAfter, the stop time and a margin after the last answered heartbeat. A
// client that was killed stops nothing. So a second process, the watchdog (client/watchdog), keeps
// this promise for it. [Watch] is what the watchdog decides. The simulator steps it too.
//
// A [Guard] describes how the tasks of one allocation stop. It derives from the allocation alone. The
// deadline of a guard is StopOnClientAfter after the client has sent the last heartbeat that was
// answered, but not before its TTL has passed: see [Contact.Limit]. All times are times since the machine booted, including suspend.
//
// While the client lives, it stops the tasks. A Watch sends no signal, because two processes that stop
// one task would count two kill timeouts. But a client can be frozen, and its driver can hang. So a
// Watch kills what still runs [cluster.KillMarginOfNode] after the deadline and the stop time. An
// answered heartbeat ends that, because a client that has sent it is not frozen any more.
//
// When the client is gone, the tasks stop in the order of the client: the group's shutdown delay, then
// phase by phase the shutdown delay, the kill signal and the kill timeout of each task. The times count
// from the deadline and not from the death of the client. So tasks that the client was stopping when it
// died get the rest of their kill timeout, and everything has ended within the stop time that the
// servers wait.
//
// The package does no I/O.
package guard
