package rules

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Records is a state with the records of drains.
type Records interface {
	// ClusterVersion is the cluster version.
	ClusterVersion() cluster.Version
	// Node returns the node, or nil.
	Node(cluster.NodeID) *cluster.Node
	// Alloc returns the allocation, or nil.
	Alloc(cluster.AllocID) *cluster.Allocation
	// DrainsByNode yields the records of the ended drains of the node.
	DrainsByNode(cluster.NodeID) iter.Seq[*cluster.Drain]
}

// Needs returns why the drainer needs an allocation that has ended, or the empty string. A store that
// deletes ended allocations keeps those that the drainer needs. Otherwise a slot of a group is free
// too early, a record never finds the end of an allocation that it counts, or a drain does not wait for
// data that is copied.
func Needs(r Records, a *cluster.Allocation) (why string) {
	n := r.Node(a.NodeID)
	if n.Draining() && (a.MarkedBy(n.Drain.ID) || r.ClusterVersion() >= cluster.VersionOfConfirmation && a.Unconfirmed()) {
		return "a drain needs it"
	}
	if a.DesiredTransition.Class == cluster.MarkCanary {
		if next := r.Alloc(a.NextAllocation); next != nil && !next.ClientTerminal() {
			return "its replacement may keep a slot of a drain"
		}
	}
	if a.Standby {
		return "a standby allocation replaces it"
	}
	if n != nil && cluster.KeepsData(a) { // the client of a deleted node sends no data
		return "its client keeps its data for a replacement"
	}
	if awaitsData(r, a) {
		return "an allocation that replaces it waits for data"
	}
	if n == nil || !a.Unconfirmed() { // a deleted node never reports the end
		return ""
	}
	for d := range r.DrainsByNode(n.ID) {
		if d.CountUnconfirmed() > 0 && d.CountsUnconfirmed(a) {
			return "the record of a drain counts it as unconfirmed"
		}
	}
	return ""
}

// awaitsData reports whether an allocation that replaces this one may take data, from this one or from one before
// it. Those between them ended before they had the data. The taker may not have reported yet, and may not be placed
// yet.
func awaitsData(r Records, a *cluster.Allocation) bool {
	taker, last := cluster.DataTaker(a, r.Alloc)
	switch {
	case r.ClusterVersion() < cluster.VersionOfData:
		return false
	case taker != nil:
		return taker.DataIn.Pending() || taker.Job.Group(taker.TaskGroup).MovesData()
	case last == nil, last == a: // a plan that replaces it needs it
		return false
	}
	for range cluster.MaxFailedCopies {
		if a = r.Alloc(a.PreviousAllocation); a == nil || cluster.KeepsData(a) {
			return a != nil && r.Node(a.NodeID) != nil
		}
	}
	return false
}
