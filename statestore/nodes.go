package statestore

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func (t *Txn) UpsertNode(n *cluster.Node, at time.Time) error { return errSkeleton }

func (t *Txn) UpdateNodeStatus(id cluster.NodeID, status cluster.NodeStatus, at time.Time) error {
	return errSkeleton
}

func (t *Txn) UpdateNodeEligibility(id cluster.NodeID, e cluster.Eligibility, at time.Time) error {
	return errSkeleton
}

func (t *Txn) DeleteNodes(ids []cluster.NodeID, at time.Time) (missing []cluster.NodeID) { return ids }
