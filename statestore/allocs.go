package statestore

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

var errSkeleton = errors.New("not written yet")

// AllocUpdate is a client's report on one of its allocations.
type AllocUpdate struct {
	ID                cluster.AllocID
	ClientStatus      cluster.ClientStatus
	ClientDescription string
	// DeploymentStatus carries the client's verdict on health and when it was
	// given, or is nil.
	DeploymentStatus *cluster.DeploymentStatus
	// ModifyTime is when the client's server received the report.
	ModifyTime time.Time
}

// UpdateAllocsFromClient applies clients' reports.
func (t *Txn) UpdateAllocsFromClient(updates []AllocUpdate) {}

// ApplyPlan applies an accepted plan. It returns the ids of the places it
// dropped.
func (t *Txn) ApplyPlan(p *cluster.Plan) (dropped []cluster.AllocID, err error) {
	return nil, errSkeleton
}
