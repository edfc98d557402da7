// Package shrink makes a failing scenario small enough to read.
//
// A scenario of a swarm has about thirty events in a cluster of five nodes. Its failure usually
// needs only a few of them. [Shrink] removes and simplifies everything that the failure does not
// need. [Freeze] replaces random faults by faults at fixed times, so that the scenario still fails
// after a change of the draws.
//
// # Candidates
//
// An edit removes or simplifies one part of a scenario. A pass is all edits of one kind, for
// example all events or all ranges. A pass applies as many of its edits as possible: it tries all
// edits at once, then halves, then quarters, and at last each edit alone. This is delta debugging.
// To find four events of two hundred it needs about sixty plays. The passes repeat until none of
// them makes progress. Then the failure needs every event that is left.
//
// A candidate is accepted if it
//
//   - is valid: its printed text can be read,
//   - is smaller. The measure compares the number of events, the weight of faults, the parts of the
//     cluster, the words and so on, down to the digits of times,
//   - fails the same check as the first scenario. A candidate that fails another check, or cannot be
//     played, is rejected.
//
// So a scenario never grows, and shrinking ends.
//
// # Order
//
// First the run is made to end soon after the failure, because this shortens all later plays. Next
// go events and faults, because the remaining scenario is then cheaper to play. Next go unused
// jobs, nodes, allocations and clients, with all references to them, and then settings. At last
// counts are halved, ranges become single times, times become round, and faults become lighter
// ones. At the beginning and at the end of a round, simple seeds are tried. Seed 0 draws nothing
// and keeps the order of the file.
//
// # Determinism
//
// Equal scenarios shrink to equal scenarios, if a play is deterministic and the context does not
// end.
package shrink
