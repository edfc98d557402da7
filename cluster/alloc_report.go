package cluster

import "time"

// AllocReport is a client's report on one of its allocations. It is complete.
// So a repeated report changes nothing, and the next report corrects one that arrived out
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
	// Nil means no report, and those of the last report stay. Without volumes it means that none is left.
	VolumeHolds *VolumeHolds `codec:",omitempty"`
	// DataIn is the move of data into the allocation, or nil without one. The servers set its EndedAt.
	DataIn *DataMove `codec:",omitempty"`
	// DataOut is [DataKept] in the report that ends an allocation whose data a replacement may take, and
	// [DataGivenUp] when the client keeps the data no longer. Nil means no report.
	DataOut *DataMove `codec:",omitempty"`
	// Healthy is the verdict on the allocation's health, or nil while there is
	// none. A verdict is not taken back, but may be followed by the other one.
	Healthy *bool
	// HealthyAt is when the verdict was reached, or zero.
	HealthyAt time.Time
	// At is the client's time of the report.
	At time.Time
}

// NeededVersion is the lowest cluster version that has all fields of the report.
func (r *AllocReport) NeededVersion() Version {
	switch {
	case r.DataIn != nil || r.DataOut != nil:
		return VersionOfData
	case r.VolumeHolds != nil:
		return VersionOfVolumes
	case r.TaskStates != nil:
		return VersionOfDrivers
	}
	return MinVersion
}
