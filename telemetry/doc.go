// Package telemetry counts what a server does, for whoever watches it.
//
// # Where numbers come from
//
// Numbers that stand in the state are pulled when somebody asks: how many drains run,
// what allocations wait for, how far raft is ([Sources]). Nothing is kept up to date
// between two scrapes, and there is no timer.
//
// Things that happen are counted when they do: [Telemetry.Answered] by a proposer,
// [Telemetry.Request] by the HTTP API, [Telemetry.Stepped] by the drainer's goroutine.
// They go through an instance of go-metrics of our own into a Prometheus registry of
// our own; several servers in one process do not see each other's.
//
// What the log did is read from the log: each server gives every entry it applies to
// [Telemetry.OnApply], which puts it into a queue and returns. Behind the queue, a
// [witness.Witness] counts again what the drainer and the FSM have decided, sharing
// no code with them, and every guarantee that it finds broken adds to a counter that
// must stay zero. Drains are timed there too, by the times in their records.
//
// # Bounds
//
// Raft's goroutine for the FSM never waits: when the queue is full an entry goes by
// unseen, which is counted, and the witness goes on from the state behind it. When the
// witness has come to remember much that is over it is replaced by one that starts
// from the state. Labels come from closed sets, except the routes of HTTP requests:
// beyond [MaxRoutes] of them the rest is "other".
//
// # Raft's own numbers
//
// hashicorp/raft emits its metrics through go-metrics' global instance, which belongs
// to the process and not to us: it is left alone. What matters of them is pulled from
// raft itself. A program that owns its process may still have them all:
//
//	metrics.NewGlobal(metrics.DefaultConfig("nodedrain"), t.Sink())
//
// # Goroutines
//
// A [Telemetry] owns one goroutine, which takes entries from the queue. [Telemetry.Close]
// lets it finish what is queued, and joins it.
package telemetry
