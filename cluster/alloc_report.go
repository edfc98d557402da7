package cluster

import "time"

// AllocReport is a client's report on one of its allocations. It holds everything that the client
// knows. So a repeated report changes nothing, and the next report corrects one that arrived out
// of order.
type AllocReport struct {
	Alloc AllocID
	// Node is the client's node. A report on an allocation of another node is ignored.
	Node              NodeID
	ClientStatus      ClientStatus
	ClientDescription string
	// TaskStates are the states of all tasks, or nil: then the states of the last report stay.
	TaskStates *TaskStates `codec:",omitempty"`
	// VolumeHolds are the volumes that keep the allocation from ending or that it has left on its node.
	// Nil says nothing, and those of the last report stay. Without volumes it says that none is left.
	VolumeHolds *VolumeHolds `codec:",omitempty"`
	// Healthy is the verdict on the allocation's health, or nil while there is
	// none. A verdict is not taken back, but may be followed by the other one.
	Healthy *bool
	// HealthyAt is when the verdict was given, or zero.
	HealthyAt time.Time
	// At is the client's time of the report.
	At time.Time
}

// NeededVersion is the lowest cluster version that has all fields of the report.
func (r *AllocReport) NeededVersion() Version {
	switch {
	case r.VolumeHolds != nil:
		return VersionOfVolumes
	case r.TaskStates != nil:
		return VersionOfDrivers
	}
	return MinVersion
}
