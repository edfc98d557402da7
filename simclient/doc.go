// Package simclient simulates the clients of a cluster: they start what is placed
// on their nodes, report its health, and stop it within its stop time.
//
// A [Fleet] holds the clients of all nodes. What they are to do is read from the
// [State] wherever it is told that something has changed, and what they say goes to
// the servers through an [Applier], many clients in one batch. How an allocation
// fares is its [Behaviour], drawn when its client first sees it:
//
//	pending ── Start ──▶ running ── Verdict ──▶ running, judged
//	   │                    │                        │
//	   │ told to stop       │ Run is over, or told to stop and Stop is over
//	   ▼                    ▼                        ▼
//	complete             complete                 complete
//
// A replacement that inherits the data of its predecessor stays pending until
// that has ended and the data is copied.
//
// # What holds
//
//   - A fleet remembers nothing that it cannot do without: a new one over a state
//     in which allocations run goes on with them. It only watches their health
//     anew, and lets those that end by themselves run anew.
//   - A report is repeated until the servers have taken it. Whatever was said in
//     between is in it: a report carries all that the client knows.
//   - A client whose node is down or disconnected hears nothing and says nothing.
//     What it runs goes on meanwhile; it says so when its node is back.
//   - Equal seeds make equal behaviours for equal allocation ids, in whatever
//     order the allocations are seen.
//
// # Time
//
// [Fleet.Step] neither blocks, sleeps, nor reads a clock: a simulator steps a
// fleet in its own time. [Fleet.Run] is the shell that steps it in real time. A
// clock that is set back takes what is to come back with it.
// Durations come from the jobs, and from [Options]: whoever wants a simulation
// that runs faster than life scales both.
package simclient
