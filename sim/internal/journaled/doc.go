// Package journaled compares the journals of drains in a simulated world with what the rows of the state
// show at each entry. A [Judge] reads the rows of allocations and nodes. It shares no code with packages
// drainer/journal and statestore.
//
// The guarantee is S7, truth of the journal. When a drain ends:
//
//   - Its journal has each group of which the drain marked allocations, with the number of marks, and the
//     lowest number of healthy allocations that the group had after an entry since its first mark.
//   - Of each group, the lowest number and what the budget required then are those of the witness, from the
//     first mark to the end of the drain. The witness's own report has another lowest level: the one with the
//     least room, of a group that exists, since any draining node first had an allocation of it.
//   - The first event is the request of an operator, and the last one the end with the outcome of the record.
//   - Its events are in the order of the log, and their number and that of the groups is within the bounds.
//   - It has the beginning of each stage of which the drain marked an allocation.
//
// Drains that began below the cluster version of journals, and those of a restored state, are not judged.
package journaled

import "github.com/seed-f9cf0b39/nodedrain/sim/invariant"

// The checks of this package.
const (
	NoJournal    invariant.Check = "S7 no journal"    // an ended drain has no journal
	WrongGroup   invariant.Check = "S7 wrong group"   // a group is missing, or has other numbers
	NotWitnessed invariant.Check = "S7 not witnessed" // the lowest health of a group is not that of the witness
	WrongOrder   invariant.Check = "S7 wrong order"   // events are not in the order of the log, or too many
	WrongEnd     invariant.Check = "S7 wrong end"     // the first or the last event is wrong
	NoStage      invariant.Check = "S7 no stage"      // the beginning of a stage is missing
)

// Checks returns all checks.
func Checks() []invariant.Check {
	return []invariant.Check{NoJournal, WrongGroup, NotWitnessed, WrongOrder, WrongEnd, NoStage}
}
