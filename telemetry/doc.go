// Package telemetry counts what a server does.
//
// # Where numbers come from
//
// Numbers of the present state are read at a scrape: how many drains run, why allocations wait,
// how far raft is ([Sources]). Nothing is updated between two scrapes, and there is no timer.
//
// Events are counted when they happen: [Telemetry.Answered] by a proposer, [Telemetry.Request] by
// the HTTP API, [Telemetry.Stepped] by the drainer's goroutine. They go through an own instance
// of go-metrics into an own Prometheus registry, so several servers in one process have separate
// numbers.
//
// Each server gives every entry that it applies to [Telemetry.OnApply], which puts it into a
// queue and returns. Behind the queue, a [witness.Witness] counts again what the drainer and the
// FSM have decided. It shares no code with them. Every guarantee that it finds broken adds to a
// counter that must stay zero. Drains are measured there too, by the times in their records.
//
// # Bounds
//
// Raft's goroutine for the FSM never waits. An entry that finds the queue full is missed, and
// counted as missed, and the witness continues from the state behind it. A witness that remembers
// many ended drains is replaced by a new one that starts from the state. Labels have a fixed set
// of values. Only the routes of HTTP requests do not: beyond [MaxRoutes] of them the label is
// "other".
//
// # Raft's own numbers
//
// hashicorp/raft emits its metrics through go-metrics' global instance, which belongs to the
// process. This package leaves that instance alone and asks raft itself. A program that owns its
// process may have all of raft's metrics:
//
//	metrics.NewGlobal(metrics.DefaultConfig("nodedrain"), t.Sink())
//
// # Goroutines
//
// A [Telemetry] owns one goroutine, which takes entries from the queue. [Telemetry.Close] lets it
// finish the queue, and joins it.
package telemetry
