// Package timeline draws one simulated run: for a terminal, as an SVG for a post-mortem, and as
// a trace to search in.
//
// # Recording
//
// A [Recorder] gets the events of a run: every applied raft entry in order ([Recorder.Applied]),
// the leaders, the strikes of faults, and the violations. It computes the health of nodes,
// allocations and groups from the states around each entry, with package witness/opinion. That
// package shares no code with the drainer, so that a picture does not repeat the drainer's
// mistakes.
//
// # Lanes
//
// A node has a lane from its first drain on. The lane has a row for each allocation that the
// node had then or got later. A row has one [Phase] at a time:
//
//	starting ─▶ running ⇄ unhealthy ─▶ marked ─▶ stopping ─▶ gone
//	             └─────────▶ unknown ◀────────┘
//
// A service group has a lane from the time at which a draining node has one of its allocations.
// The lane shows the number of healthy allocations, the count of the job, and the limit of the
// migrate block: count − max_parallel. At the limit the group has no room, as in a drain at full
// pace. Below the limit an allocation was lost, because of a crash or a bug.
//
// A picture shows a limited number of lanes, those first that a post-mortem needs: violated, not
// ended, not ended with complete, ended last; for groups those with the least room. It counts the
// others.
//
// # Trace
//
// A [Trace] has one JSON object in each line. Each line has a [Cause], except the first and those
// of violations: an earlier step, and what happened in it. The cause of a drainer's step is the
// entry, the answer or the election that woke it, or its timer; the cause of an entry is its
// proposer, and the step of the proposal; the cause of a report is the entry to which the client
// reacted. The caller writes a line for every step that is a cause. So a reader repeats
//
//	jq -c 'select(.step == 118)'
//
// to follow the causes of a line back to the scenario or to the first leader. The entry that
// woke the drainer is often not the one it works for: the end of one drain makes room for
// another. So each entry of marks and ends also names the requests for its drains, which
//
//	jq -c 'select(.event == "applied" and .index == 57)'
//
// shows.
//
// # Cost
//
// An entry costs one look at the rows that it touches; a pass over a node's allocations when its
// drain starts, ends or changes, or its reachability changes; and a pass over a group's
// allocations when its lane starts. Memory grows with the changes.
//
// # Determinism
//
// Equal calls give equal bytes. The package reads no clock, starts no goroutine and draws no
// random number. No method is safe for concurrent use.
package timeline
