package datamove

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// View is the part of the state that [Find] reads.
type View interface {
	ClusterVersion() cluster.Version
	// Node and Alloc return the row, or nil.
	Node(cluster.NodeID) *cluster.Node
	Alloc(cluster.AllocID) *cluster.Allocation
}

// Source is where the data for a replacement is.
type Source struct {
	// Alloc is the allocation that has the data or may still have it, or nil if there is none.
	Alloc *cluster.Allocation
	// Node is the node of Alloc, or nil.
	Node  *cluster.Node
	State State
	// Why is the reason of the state for operators, or empty for [Ready].
	Why string
}

// State is whether the data can be copied.
type State uint8

const (
	// Waits means that the data may be ready later.
	Waits State = iota
	// Ready means that the allocation has ended, and its client keeps the data.
	Ready
	// Gone means that no data will come.
	Gone
)

// Find returns where the data for a replacement is. It is the data of the allocation that the replacement
// replaces. Find passes over replacements that ended before they had the data: the next one takes the
// data from the same allocation.
//
// Gone ends the move for ever, and its data is deleted. So a replacement that must stop itself waits: the next
// replacement may take the data.
func Find(s View, id cluster.AllocID) Source {
	to := s.Alloc(id)
	switch {
	case to == nil:
		return Source{Why: fmt.Sprintf("allocation %s does not exist", id)}
	case to.Terminal():
		return Source{Why: fmt.Sprintf("allocation %s has ended or must stop", id)}
	case s.ClusterVersion() < cluster.VersionOfData:
		return Source{State: Gone, Why: "the cluster version has no moves of data"}
	case !to.Job.Group(to.TaskGroup).MovesData():
		return Source{State: Gone, Why: "the group of the allocation does not move data"}
	case to.DataIn != nil && to.DataIn.State.Ended():
		return Source{State: Gone, Why: fmt.Sprintf("the move of the data has ended: %s", to.DataIn.State)}
	}
	a := to
	for range cluster.MaxFailedCopies {
		if a.PreviousAllocation == "" {
			return Source{State: Gone, Why: "no earlier allocation has data"}
		}
		from := s.Alloc(a.PreviousAllocation)
		if from == nil {
			return Source{State: Gone, Why: fmt.Sprintf("allocation %s does not exist any more", a.PreviousAllocation)}
		}
		if !passedOver(from) {
			return at(from, s.Node(from.NodeID))
		}
		a = from
	}
	return Source{State: Gone, Why: fmt.Sprintf("%d replacements in a row have ended without the data", cluster.MaxFailedCopies)}
}

// passedOver reports whether an allocation has ended and never had data.
func passedOver(a *cluster.Allocation) bool { return a.ClientTerminal() && !hadData(a) }

// hadData reports whether an allocation has had data, as far as its client has reported.
func hadData(a *cluster.Allocation) bool {
	switch {
	case a.DataOut != nil, a.DataIn != nil && a.DataIn.State.Ended():
		return true
	case a.TaskStates == nil: // some clients report no states of tasks
		return a.DataIn == nil && a.ClientStatus != cluster.ClientPending && a.ClientStatus != cluster.ClientLost
	}
	for _, t := range a.TaskStates.Tasks {
		if !t.StartedAt.IsZero() {
			return true
		}
	}
	return false
}

// at returns the source at an allocation. The node may be nil.
func at(from *cluster.Allocation, node *cluster.Node) Source {
	found := Source{Alloc: from, Node: node}
	gone := func(format string, args ...any) Source {
		found.State, found.Why = Gone, fmt.Sprintf("allocation %s ", from.ID)+fmt.Sprintf(format, args...)
		return found
	}
	running := !from.ClientTerminal()
	switch {
	case from.ClientStatus == cluster.ClientUnknown:
		return gone("is on node %s, which is disconnected", from.NodeName)
	case from.ClientStatus == cluster.ClientLost:
		return gone("is lost")
	case !running && from.DataOut == nil:
		return gone("has ended, and its client has kept no data")
	case !running && from.DataOut.State == cluster.DataCopied:
		return gone("has no data any more: allocation %s has it", from.DataOut.Peer)
	case !running && !from.DataOut.Kept():
		return gone("has no data any more: it was given up")
	case running && !hadData(from): // it may end without data, and is passed over then
	case node == nil:
		return gone("was on node %s, which is deleted", from.NodeName)
	case node.Status == cluster.NodeDown:
		return gone("is on node %s, which is down", from.NodeName)
	}
	if running {
		found.Why = fmt.Sprintf("allocation %s on node %s has not ended", from.ID, from.NodeName)
		return found
	}
	found.State = Ready
	return found
}
