// Package timeline draws one simulated run as text for a terminal and as an SVG for a post-mortem,
// and writes it as a trace that a program can search.
//
// # Recording
//
// A [Recorder] gets the events of a run: every applied raft entry in order ([Recorder.Applied]),
// the leaders, the strikes of faults, and the violations. It computes the health of nodes,
// allocations and groups from the states before and after each entry, with package
// witness/opinion. That package shares no code with the drainer, so that a picture does not
// repeat the drainer's mistakes.
//
// # Lanes
//
// A node gets a lane when its first drain starts. The lane has a row for each allocation that the
// node had then or got later. At each time, a row has one [Phase]:
//
//	starting ─▶ running ⇄ unhealthy ─▶ marked ─▶ stopping ─▶ gone
//	             └─────────▶ unknown ◀────────┘
//
// A service group gets a lane when a draining node has one of its allocations. The lane shows the
// number of healthy allocations, the count of the job, and the limit of the migrate block:
// count − max_parallel. At the limit the group has no room: the drainer may mark no more
// allocations. A group is below the limit only after a crash or a bug.
//
// A picture shows a limited number of lanes and counts the others. Nodes come in this order:
// nodes with violations, nodes that still drain, nodes whose drain did not end as complete, nodes
// whose drain ended last. Groups with violations and groups with the least room come first.
//
// # Trace
//
// A [Trace] has one JSON object in each line. Each line has a [Cause], except the first line and
// the lines of violations. A cause is an earlier step, and the event in it. The cause of a
// drainer's step is the entry, the answer or the election that woke the drainer, or its timer. The
// cause of an entry is its proposer and the step of the proposal. The cause of a report is the
// entry to which the client reacted. The caller writes a line for every step that is a cause. To
// follow the causes of a line back to the scenario or to the first leader, repeat
//
//	jq -c 'select(.step == 118)'
//
// with the step of each cause. The entry that woke the drainer may belong to another drain than
// the drainer's write: the end of one drain makes room for another drain. So each entry of marks
// or ends also has the indexes of the requests for its drains. To show such a request, use
//
//	jq -c 'select(.event == "applied" and .index == 57)'
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
// Equal calls give equal bytes. The package reads no clock, starts no goroutine and draws no
// random number. No method is safe for concurrent use.
package timeline
