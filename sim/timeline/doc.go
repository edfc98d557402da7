// Package timeline shows one simulated run in two forms: as text for a terminal, and as an SVG picture
// for a report. "nodedrain sim run" uses it. Begin with a [Recorder].
//
// # Recording
//
// A [Recorder] watches a world ([Recorder.Watch]): every applied raft entry in order, the leaders, and
// the strikes of faults. [Recorder.Result] adds the violations of guarantees. A strike is one time at
// which a fault acts. The recorder computes the health of nodes, allocations and groups from the
// states before and after each entry, with package witness/opinion. That package shares no code
// with the drainer, so that a picture does not repeat the drainer's mistakes.
//
// # Lanes
//
// A node gets a lane when its first drain starts. The lane has a row for each allocation that the
// node had then or got later. At each time, a row has one [Phase]. The usual order is
//
//	starting ─▶ running ─▶ marked ─▶ stopping ─▶ gone
//
// A running allocation may become unhealthy, and healthy again. An allocation is unknown while its
// node is disconnected. It then returns to the phase that its record has, or is gone. Every phase
// may be skipped: an allocation may fail before it runs, or be marked while it starts.
//
// A service group gets a lane when a draining node has one of its allocations. The lane shows the
// number of healthy allocations, the count of the job, and the limit of the migrate block:
// count − max_parallel. At the limit the group has no room: the drainer may mark no more
// allocations. A group is below the limit only after a crash or a bug.
//
// A picture shows a limited number of lanes and counts the others. It prefers nodes with
// violations, then nodes that still drain, then nodes whose drain did not end as complete, then
// nodes whose drain ended last. It prefers groups with violations, then groups that were below the
// limit, then groups with the most marks, then groups with the least room.
//
// # Cost
//
// For each entry the recorder reads the rows that the entry touches. It reads all allocations of a
// node when the node's drain starts, ends or changes, and when the node becomes reachable or
// unreachable. It reads all allocations of a group when the group gets its lane. The memory grows
// with the number of changes.
//
// # Determinism
//
// Equal calls give equal bytes. The package reads no clock, starts no goroutine and uses no random
// numbers. No method is safe for concurrent use.
package timeline
