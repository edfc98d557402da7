package collected

// Guarantee is the name of the guarantee. Each check is one part of it.
const Guarantee = "S2"

// Check is one rule that the collection can break.
type Check string

// The checks.
const (
	Outside      Check = "outside"       // a change of a row that the entry does not name
	WrongAnswer  Check = "wrong answer"  // the answer does not name the deleted rows
	TooYoung     Check = "too young"     // a deleted row was written after the time of the entry
	StillOfUse   Check = "still of use"  // a deleted row was of use
	SlotChanged  Check = "slot changed"  // another allocation, or none, holds a slot after the entry
	CountChanged Check = "count changed" // failures in a row are counted in another way after the entry
	Kept         Check = "kept"          // an ended row without a use stays
)

// Checks returns all checks.
func Checks() []Check {
	return []Check{Outside, WrongAnswer, TooYoung, StillOfUse, SlotChanged, CountChanged, Kept}
}
