package placement

import "strings"

// Guarantee is the name of what the checks hold the scheduler to.
const Guarantee = "S1"

// Check is one rule that a plan can break.
type Check string

// The checks.
const (
	Overcommitted  Check = "overcommitted"      // a node without room for what it runs
	NotReady       Check = "not ready"          // a placement on a node that takes none
	Unsuitable     Check = "unsuitable"         // a placement on a node that the group does not ask for
	OtherVersion   Check = "other version"      // a placement for another version of the job
	OtherResources Check = "other resources"    // a placement that uses other resources than its group asks for
	AboveCount     Check = "above count"        // a placement without a slot
	NameTwice      Check = "name twice"         // a placement under the name of another slot
	ReplacedTwice  Check = "replaced twice"     // a second replacement
	BrokenLineage  Check = "broken lineage"     // a replacement of an allocation of another group
	StillRunning   Check = "still running"      // a replacement of an allocation that is not stopped
	ReplacedOften  Check = "replaced too often" // a replacement after too many failures in a row
	NotStopped     Check = "not stopped"        // a surplus that no evaluation waits for
	LeftShort      Check = "left short"         // an empty slot that no evaluation waits for
	Miscounted     Check = "miscounted"         // a blocked evaluation that miscounts the empty slots
	BlockedTwice   Check = "two blocked evaluations"
)

// Known reports whether a violation of that guarantee and check exists: "S1 above count".
func Known(check string) bool {
	name, found := strings.CutPrefix(check, Guarantee+" ")
	if !found {
		return false
	}
	switch Check(name) {
	case Overcommitted, NotReady, Unsuitable, OtherVersion, OtherResources, AboveCount, NameTwice, ReplacedTwice, BrokenLineage,
		StillRunning, ReplacedOften, NotStopped, LeftShort, Miscounted, BlockedTwice:
		return true
	}
	return false
}
