package cluster

import "time"

// AllocReport is what a client says of one of its allocations. It carries the
// whole of what the client knows, so that a report sent twice says nothing new
// and one that overtakes another is put right by the next.
type AllocReport struct {
	Alloc AllocID
	// Node is the client's node. A report about another node's allocation is
	// none of its business.
	Node              NodeID
	ClientStatus      ClientStatus
	ClientDescription string
	// Healthy is the verdict on the allocation's health, or nil while there is
	// none. A verdict is not taken back, but may be followed by the other one.
	Healthy *bool
	// HealthyAt is when the verdict was given, or zero.
	HealthyAt time.Time
	// At is the client's time of the report.
	At time.Time
}
