package wire

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// RegisterRequest is the body of PUT /v1/client/{id}/register. Ours.
type RegisterRequest struct {
	// Node is the client's node, with its secret. Its id is empty or that of the path.
	Node *Node
}

// HeartbeatResponse answers a registration and a heartbeat. Ours.
type HeartbeatResponse struct {
	// HeartbeatTTL is the time, in nanoseconds, within which the next heartbeat is due; later the
	// node goes down.
	HeartbeatTTL time.Duration
	// ClusterVersion is the cluster version of the servers' state, at a registration that before it. Servers
	// leave out what the version does not have: a client registers again when it has grown. Zero is from a
	// server of an older release.
	ClusterVersion cluster.Version `json:",omitempty"`
	State          StateID         `json:",omitzero"`
}

// StateID identifies a state that contains what a request of a client has written, and all that was written before.
// It is zero below cluster version 9, and from a server of an older release. The next request for changes
// names it: see [AllocChanges].
type StateID struct {
	Index   uint64
	History string
}

// AllocsRequest is the body of PUT /v1/client/{id}/allocations: a client's report of its
// allocations. Ours.
type AllocsRequest struct {
	Allocs []AllocReport
}

// AllocReport is a client's report of one of its allocations: its whole state, each time.
type AllocReport struct {
	ID                string
	ClientStatus      string
	ClientDescription string
	// TaskStates are the states of all tasks, or nil: then those of the last report stay.
	TaskStates map[string]*TaskState `json:",omitempty"`
	// VolumeHolds are the volumes that keep the allocation from ending or that it has left on the
	// node, or nil: then those of the last report stay.
	VolumeHolds *VolumeHolds `json:",omitempty"`
	// DataIn and DataOut are the moves of an ephemeral disk's data into the allocation and out of it, or
	// nil: see [Allocation].
	DataIn  *DataMove `json:",omitempty"`
	DataOut *DataMove `json:",omitempty"`
	// Healthy is nil while there is no verdict; HealthyAt is the time of the verdict.
	Healthy   *bool
	HealthyAt Time
}

// AllocsResponse answers an [AllocsRequest]. Ours.
type AllocsResponse struct {
	// Index is that of the entry that was written.
	Index uint64
	State StateID `json:",omitzero"`
}

// Reports are the reports of a node at a time. The error names the first report that a client
// cannot make.
func (r *AllocsRequest) Reports(node cluster.NodeID, at time.Time) ([]cluster.AllocReport, error) {
	reports := make([]cluster.AllocReport, len(r.Allocs))
	for i := range r.Allocs {
		report, err := r.Allocs[i].report(node, at)
		if err != nil {
			return nil, fmt.Errorf("report %d: %w", i, err)
		}
		reports[i] = report
	}
	return reports, nil
}

func (r *AllocReport) report(node cluster.NodeID, at time.Time) (cluster.AllocReport, error) {
	if r.ID == "" {
		return cluster.AllocReport{}, errors.New("missing allocation ID")
	}
	in, err := r.DataIn.reported("DataIn")
	if err != nil {
		return cluster.AllocReport{}, err
	}
	out, err := r.DataOut.reported("DataOut")
	if err != nil {
		return cluster.AllocReport{}, err
	}
	switch status := cluster.ClientStatus(r.ClientStatus); status {
	case cluster.ClientPending, cluster.ClientRunning, cluster.ClientComplete, cluster.ClientFailed:
		return cluster.AllocReport{
			Alloc: cluster.AllocID(r.ID), Node: node, ClientStatus: status, ClientDescription: r.ClientDescription,
			TaskStates: reportedStates(r.TaskStates), VolumeHolds: r.VolumeHolds.holds(),
			DataIn: in, DataOut: out,
			Healthy: r.Healthy, HealthyAt: r.HealthyAt.Time, At: at,
		}, nil
	}
	return cluster.AllocReport{}, fmt.Errorf("a client cannot report the status %q", r.ClientStatus)
}

// NewAllocReport returns the report as it travels. Each text travels once.
func NewAllocReport(r cluster.AllocReport) AllocReport {
	w := AllocReport{
		ID: string(r.Alloc), ClientStatus: string(r.ClientStatus), ClientDescription: r.ClientDescription,
		VolumeHolds: newVolumeHolds(r.VolumeHolds), DataIn: newDataMove(r.DataIn), DataOut: newDataMove(r.DataOut),
		Healthy: r.Healthy, HealthyAt: NewTime(r.HealthyAt),
	}
	if r.TaskStates != nil {
		w.TaskStates = newTaskStates(r.TaskStates)
	}
	//lint:order each event is changed by itself
	for _, t := range w.TaskStates {
		for _, e := range t.Events {
			e.DisplayMessage = ""
		}
	}
	return w
}

// NewRegistration returns the node as its client registers it, with its secret.
func NewRegistration(n *cluster.Node) *RegisterRequest {
	w := NewNode(n)
	w.SecretID, w.ComputedClass = n.SecretID, ""
	w.Attributes, w.Meta, w.Links = n.Attributes, n.Meta, n.Links
	return &RegisterRequest{Node: w}
}
