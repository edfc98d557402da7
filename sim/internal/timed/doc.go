// Package timed counts how long the allocations of a simulated world take, and compares the counts with the times that
// the state learns. A [Judge] reads the entries of reports, and the rows of allocations before and after them. It shares no
// code with packages cluster/learned and statestore.
//
// The guarantee is S8, truth of the learned times. After each entry, for each group:
//
//   - The state has counted the time from the placement of an allocation to the first report that it runs, once,
//     and no time of one whose node was away then. If it waited for the end of its predecessor, because it was on
//     the same node or copied its data, the time is from the report of that end.
//   - It has counted the time from that report to the first verdict, if it is good and the node was not away.
//   - It has counted the time from the mark of an allocation that runs, or the plan that stops it without a mark,
//     to the report of its end.
//   - It has counted nothing else, nothing below the cluster version of learned times, and it has no times of a
//     group that the current version of its job does not have.
package timed

import "github.com/seed-f9cf0b39/nodedrain/sim/invariant"

// The checks of this package.
const (
	Start   invariant.Check = "S8 wrong start"   // times from placement to running are missing, or too many
	Verdict invariant.Check = "S8 wrong verdict" // the same of times from running to a verdict
	Stop    invariant.Check = "S8 wrong stop"    // the same of times from mark to end
	NoGroup invariant.Check = "S8 no group"      // times of a group that does not exist
	Below   invariant.Check = "S8 below version" // times below the cluster version of learned times
)

// Checks returns all checks.
func Checks() []invariant.Check { return []invariant.Check{Start, Verdict, Stop, NoGroup, Below} }
