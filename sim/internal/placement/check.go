package placement

// Guarantee is the name of the scheduler's guarantee. Each check is one part of it.
const Guarantee = "S1"

// Check is one rule that a plan can break.
type Check string

// The checks.
const (
	Overcommitted  Check = "overcommitted"      // the allocations of a node need more than its resources
	NotReady       Check = "not ready"          // a placement on a node that is not ready, not eligible, or drains
	Unsuitable     Check = "unsuitable"         // a placement on a node outside the group's pool, datacenters or classes
	OtherVersion   Check = "other version"      // a placement of another version of the job than the current one
	OtherResources Check = "other resources"    // a placement with other resources than its group specifies
	GivenTwice     Check = "device given twice" // a device of a new allocation that another one has
	WrongDevices   Check = "wrong devices"      // a placement with devices that are missing, unhealthy, or not those that its tasks request
	AboveCount     Check = "above count"        // a placement above the count of its group
	NameTwice      Check = "name twice"         // a placement with the name of another allocation in a slot
	ReplacedTwice  Check = "replaced twice"     // a second replacement of one allocation
	BrokenLineage  Check = "broken lineage"     // a replacement of an allocation of another group or deployment
	StillRunning   Check = "still running"      // a replacement of an allocation that is not stopped
	ReplacedOften  Check = "replaced too often" // a replacement after too many failures in a row
	NotStopped     Check = "not stopped"        // a surplus allocation runs, and no evaluation is pending
	LeftShort      Check = "left short"         // a slot is empty, and no evaluation is open for it
	Miscounted     Check = "miscounted"         // a blocked evaluation counts the wrong number of empty slots
	BlockedTwice   Check = "two blocked evaluations"
	// BlockedWithRoom: an evaluation waits for room, nothing happens, and a node has room.
	BlockedWithRoom Check = "blocked with room"
)

// Checks returns all checks.
func Checks() []Check {
	return []Check{
		Overcommitted, NotReady, Unsuitable, OtherVersion, OtherResources, GivenTwice, WrongDevices, AboveCount, NameTwice, ReplacedTwice,
		BrokenLineage, StillRunning, ReplacedOften, NotStopped, LeftShort, Miscounted, BlockedTwice, BlockedWithRoom,
	}
}
