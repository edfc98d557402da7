// Package telemetry keeps the metrics of a server, and judges the drainer with a witness. Begin
// with [New]: each server has one [Telemetry], and package httpapi serves its metrics.
// docs/metrics.md lists the metrics.
//
// # Where numbers come from
//
// A scrape reads numbers from the present state: the running drains, the reasons of waiting
// allocations, the indexes of raft ([Sources]). Nothing updates them between two scrapes.
//
// Events are counted when they happen: a proposer calls [Telemetry.Answered], the HTTP API calls
// [Telemetry.Request], the drainer's goroutine calls [Telemetry.Stepped]. Each Telemetry has its
// own Prometheus registry, so several servers in one process have separate numbers.
//
// Each server passes every entry that it applies to [Telemetry.OnApply], which puts it into a
// queue and returns. A goroutine takes the entries from the queue and shows them to a
// [witness.Witness], which judges the decisions of the drainer and of the FSM. The witness shares
// no code with them. Each broken guarantee adds to a counter that must stay zero. The goroutine
// also measures drains, by the times in their records.
//
// # Bounds
//
// Raft's goroutine for the FSM never waits. If the queue is full, the witness misses the entry, and
// a counter counts it. The witness continues from the state after it. A new witness that starts
// from the state replaces one that has grown too large. All labels have a fixed set of values,
// except the routes of HTTP requests and the names of drains. Only [MaxRoutes] routes have their
// own label. The others share the label "other". Each series that names drains names
// [MaxNamedDrains].
//
// # Raft's own numbers
//
// hashicorp/raft emits its metrics through go-metrics' global instance, which belongs to the
// process. This package leaves that instance alone and reads the numbers of raft itself. A program that owns its
// process may have all of raft's metrics:
//
//	metrics.NewGlobal(metrics.DefaultConfig("nodedrain"), t.Sink())
//
// # Goroutines
//
// A [Telemetry] owns one goroutine, which takes entries from the queue. [Telemetry.Close] lets it
// finish the queue, and joins it.
package telemetry
