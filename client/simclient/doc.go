// Package simclient simulates the clients of a cluster. They start the allocations that are
// placed on their nodes, report their health, and stop them within their stop time.
//
// A [Fleet] holds the clients of all nodes. Its owner names the nodes that have changed, and the
// fleet reads their allocations from the [State]. An [Applier] takes the reports to the servers, those of
// many clients in one batch. An allocation follows its [Behaviour], which is drawn when its
// client first reads it:
//
//	pending ── Start ──▶ running ── Verdict ──▶ running, judged
//	   │                    │                        │
//	   │ ordered to stop    │ Run is over, or ordered to stop and Stop is over
//	   ▼                    ▼                        ▼
//	complete             complete                 complete
//
// A verdict may become bad later, and good again. An allocation may also crash again and again: then its
// verdicts follow the rule of package verdict, as those of real clients do.
//
// A replacement starts at once, while its predecessor stops, as on a real client of another node. One that inherits
// data stays pending until its predecessor has ended and the data is copied.
//
// # Guarantees
//
//   - A new fleet over the same state continues with its running allocations. Only the
//     times until a missing verdict, and until an allocation ends by itself, start again.
//   - A report is repeated until the servers have taken it. The repeated report carries the
//     newest status.
//   - A client whose node is down or disconnected receives nothing and reports nothing. Its
//     allocations continue, unless their group has a StopOnClientAfter and this time has passed. It
//     reports them when the node is back, also the end of those that the servers gave up as lost.
//   - Equal seeds make equal behaviours for equal allocation ids, in any order of the
//     allocations.
//
// # Time
//
// [Fleet.Step] neither blocks, sleeps nor reads a clock: a simulator steps a fleet in virtual
// time. [Fleet.Run] steps it in real time. When the clock is set back, the fleet moves all
// its future times back with it. Durations come from the jobs and from [Options]: to run
// faster than real time, scale both.
package simclient
