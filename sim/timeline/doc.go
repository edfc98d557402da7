// Package timeline draws what happened in one simulated run: for a terminal, as
// an SVG to put into a post-mortem, and as a trace to search in.
//
// # Recording
//
// A [Recorder] is fed while the run goes on: every applied raft entry in order
// ([Recorder.Applied]), who leads, what faults struck, what guarantees were
// broken. It asks nobody. What it knows of nodes, allocations and groups it has
// from the states around each entry, counted by package witness/opinion, which
// shares no code with the drainer: a picture drawn by the drainer's own opinion
// would show what the drainer believes.
//
// # Lanes
//
// A node has a lane from its first drain on, and in it a row for each allocation
// that was there then or came later. A row is in one [Phase] at a time:
//
//	starting ─▶ running ⇄ unhealthy ─▶ marked ─▶ stopping ─▶ gone
//	             └──────────▶ away ◀──────────┘
//
// A service group has a lane from when one of its allocations is on a draining
// node, and in it, entry by entry, how many are healthy, how many it wants and
// how few its migrate block allows: its limit, count − max_parallel. Where the
// two meet there is no room, which is how a drain at full pace looks. Below the
// limit is where something was lost, by a crash or by a bug.
//
// A picture shows as many lanes as can be read, those first that a post-mortem
// would ask for: violated, not ended, ended otherwise than complete, ended last;
// for groups the lowest against its limit. It says how many it leaves out.
//
// # Trace
//
// A [Trace] is for looking things up, one JSON object a line. Each line but the first and
// those of violations names its [Cause]: the step before it in the story, and what of that
// step it was. Of a drainer's step that is the entry, answer or election that woke it, or
// that its time has come; of an entry who proposed it, and in which step; of a report the
// entry that had the client do it. Whoever writes the trace has a line for each step that is
// named so. So
//
//	jq -c 'select(.step == 118)'
//
// again and again leads from a line back, by what had each happen when it did, to what the
// scenario asks for or to the first leader. What woke the drainer is often not what it works
// for: to make room for one drain is to go on with another. So each entry of marks and ends
// also names the entries in which operators asked for its drains, as its requests, and
//
//	jq -c 'select(.event == "applied" and .index == 57)'
//
// is what was asked for.
//
// # Cost
//
// An entry costs a look at the rows it touched, a pass over a node's allocations
// when its drain begins, ends or changes or it comes into or out of reach, and one
// over a group's when its lane begins. Memory grows with what changed, and a picture
// costs what is recorded.
//
// # Determinism
//
// The same calls give the same bytes. Nothing here reads a clock, starts a
// goroutine or draws anything at random, and no method is safe for concurrent
// use.
package timeline
