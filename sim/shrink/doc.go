// Package shrink makes a failing scenario small enough to be read.
//
// A swarm's scenario has some thirty events in a cluster of five nodes. What it fails
// for usually needs a few of them. [Shrink] takes out and simplifies whatever can be
// missed, and [Freeze] writes down what chance has decided, so that the scenario
// fails tomorrow too.
//
// # Candidates
//
// An edit takes one thing out of a scenario, or makes one thing in it simpler. A
// pass is edits of one kind: all events, or all ranges. It does as many of them as
// can be done together, trying first all at once, then halves, quarters, and at last
// each by itself; that is how delta debugging works, and why four needles among two
// hundred events cost some sixty plays and not two hundred. Passes are repeated
// until a whole round of them has found nothing. No event of what is left can then
// be missed.
//
// A candidate is taken if it
//
//   - is a scenario: what it is printed as can be read back,
//   - is smaller, by the measure of all candidates: events, the weight of faults,
//     parts of the cluster, words, and so on down to the digits of times,
//   - fails the very check that the first scenario failed. One that fails another
//     check, or cannot be played, tells nothing.
//
// So nothing ever grows, and shrinking ends.
//
// # Order
//
// The run is ended soon after the failure, for all that follows to be short. Events
// and faults go first, together, since what is left is then cheaper to play;
// then jobs, nodes, allocations and clients without a use, and what refers to
// them; then settings; then counts are halved, ranges become times that are known,
// times become round, and faults become lighter ones. Early and late the seeds that
// draw nothing or little are tried, for what happens at one time to happen in the
// order of the file.
//
// # Determinism
//
// Equal scenarios shrink equally, if playing them is deterministic and the context
// does not end before.
package shrink
