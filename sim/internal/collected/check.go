package collected

import "github.com/seed-f9cf0b39/nodedrain/sim/invariant"

// The checks of S2, the guarantee of the collection.
const (
	Outside      invariant.Check = "S2 outside"       // a change of a row that the entry does not name
	WrongAnswer  invariant.Check = "S2 wrong answer"  // the answer does not name the deleted rows
	TooYoung     invariant.Check = "S2 too young"     // a deleted row was written after the time of the entry
	StillOfUse   invariant.Check = "S2 still of use"  // a deleted row was of use
	SlotChanged  invariant.Check = "S2 slot changed"  // another allocation, or none, holds a slot after the entry
	CountChanged invariant.Check = "S2 count changed" // failures in a row are counted in another way after the entry
	Kept         invariant.Check = "S2 kept"          // an ended row without a use stays
)

// Checks returns all checks.
func Checks() []invariant.Check {
	return []invariant.Check{Outside, WrongAnswer, TooYoung, StillOfUse, SlotChanged, CountChanged, Kept}
}
