package placement

import "github.com/seed-f9cf0b39/nodedrain/sim/invariant"

// The checks of S1, the guarantee of the scheduler.
const (
	Overcommitted  invariant.Check = "S1 overcommitted"      // the allocations of a node need more than its resources
	NotReady       invariant.Check = "S1 not ready"          // a placement on a node that is not ready, not eligible, or drains
	Unsuitable     invariant.Check = "S1 unsuitable"         // a placement on a node outside the group's pool, datacenters or classes
	Together       invariant.Check = "S1 together"           // a placement on a node with another allocation of a group whose allocations are on distinct nodes
	OtherVersion   invariant.Check = "S1 other version"      // a placement of another version of the job than the current one
	OtherResources invariant.Check = "S1 other resources"    // a placement with other resources than its group specifies
	GivenTwice     invariant.Check = "S1 device given twice" // a device of a new allocation that another one has
	WrongDevices   invariant.Check = "S1 wrong devices"      // a placement with devices that are missing, unhealthy, or not those that its tasks request
	PortGivenTwice invariant.Check = "S1 port given twice"   // a port of a new allocation that another one has
	WrongPorts     invariant.Check = "S1 wrong ports"        // a placement with ports other than those that its group requests
	CoreGivenTwice invariant.Check = "S1 core given twice"   // a core of a new allocation that another task has
	WrongCores     invariant.Check = "S1 wrong cores"        // a placement with cores that its node has not, or other than as many as its tasks request
	AboveCount     invariant.Check = "S1 above count"        // a placement above the count of its group
	NameTwice      invariant.Check = "S1 name twice"         // a placement with the name of another allocation in a slot
	ReplacedTwice  invariant.Check = "S1 replaced twice"     // a second replacement of one allocation
	BrokenLineage  invariant.Check = "S1 broken lineage"     // a replacement of an allocation of another group or deployment
	StandsBy       invariant.Check = "S1 stands by"          // a placement beside an allocation for which no drain requests one, or under another name
	StillRunning   invariant.Check = "S1 still running"      // a replacement of an allocation that is not stopped
	ReplacedOften  invariant.Check = "S1 replaced too often" // a replacement after too many failures in a row
	ReplacedEarly  invariant.Check = "S1 replaced too early" // a replacement before the delay of the policy is over
	NotStopped     invariant.Check = "S1 not stopped"        // a surplus allocation runs, and no evaluation is pending
	LeftShort      invariant.Check = "S1 left short"         // a slot is empty, and no evaluation is open for it
	Miscounted     invariant.Check = "S1 miscounted"         // a blocked evaluation counts the wrong number of empty slots
	BlockedTwice   invariant.Check = "S1 two blocked evaluations"
	// BlockedWithRoom: an evaluation waits for room, nothing happens, and a node has room.
	BlockedWithRoom invariant.Check = "S1 blocked with room"
)

// Checks returns all checks.
func Checks() []invariant.Check {
	return []invariant.Check{
		Overcommitted, NotReady, Unsuitable, Together, OtherVersion, OtherResources, GivenTwice, WrongDevices, PortGivenTwice, WrongPorts, CoreGivenTwice,
		WrongCores, AboveCount, NameTwice, ReplacedTwice,
		StandsBy, BrokenLineage, StillRunning, ReplacedOften, ReplacedEarly, NotStopped, LeftShort, Miscounted, BlockedTwice, BlockedWithRoom,
	}
}
