package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// DrainUpdate is a request to start, update or end the drain of a node.
type DrainUpdate struct {
	Node cluster.NodeID
	// Spec is what the operator asks for, or nil to end the drain.
	Spec *cluster.DrainSpec
	// Drain is the id of the drain if the request starts one; it must be new.
	// A request that updates or ends a drain does not use it.
	Drain cluster.DrainID
	// MarkEligible makes the node eligible if the request ends its drain.
	MarkEligible bool
	// At is the proposer's time.
	At time.Time
	// Key is the request's idempotency key, or empty.
	Key string
	// Meta and UpdatedBy are what the operator says of the request, or empty.
	Meta      map[string]string
	UpdatedBy string
}

// DrainUpdated says what a [DrainUpdate] did.
type DrainUpdated struct {
	// Drain is the drain that the request started, updated or ended, or that its
	// key was seen in; empty if the node was not draining and does not.
	Drain cluster.DrainID
	// Repeated says that the request's key was seen before: nothing changed.
	Repeated bool
	// Withdrawn counts the marks that ending the drain withdrew.
	Withdrawn int
	// Stopping are, by id, the allocations whose mark could not be withdrawn:
	// they are to stop already, and have not yet.
	Stopping []cluster.AllocID
}

func (t *Txn) UpdateNodeDrain(u DrainUpdate) (DrainUpdated, error) {
	return DrainUpdated{}, errSkeleton
}

func (t *Txn) CompleteDrains(at time.Time, endings []drainer.Ending) {}

func (t *Txn) ApplyMarks(at time.Time, marks []drainer.Mark, evals []*cluster.Evaluation) error {
	return errSkeleton
}
