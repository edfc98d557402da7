package statestore

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
)

// UpsertNode registers a node. An existing node keeps its eligibility, drain, LastDrain and events:
// a registration neither starts nor ends a drain. The error is [ErrNodeSecret] if the existing node
// has another secret, or names the invalid field.
func (t *Txn) UpsertNode(n *cluster.Node, at time.Time) error {
	t.rows.written.journals.at = at
	if n == nil || n.ID == "" {
		return errors.New("registering a node without an id")
	}
	at = at.UTC()
	before, after := t.State().Node(n.ID), n.Copy()
	if before != nil && before.SecretID != n.SecretID {
		return ErrNodeSecret
	}
	if err := cmp.Or(after.CheckDrivers(), after.CheckDevices(), after.Network.Check(), after.Cores.Check(), after.Unlisted.Check()); err != nil {
		return fmt.Errorf("registering node %s: %w", n.ID, err)
	}
	if err := after.CheckStoragePlugins(); err != nil {
		return fmt.Errorf("registering node %s: %w", n.ID, err)
	}
	after.Drain, after.LastDrain, after.Events = nil, nil, nil
	after.CreateIndex = t.rows.written.index
	if before != nil {
		after.Drain, after.LastDrain, after.Events = before.Drain, before.LastDrain, before.Events
		after.SchedulingEligibility = before.SchedulingEligibility
		after.CreateIndex = before.CreateIndex
		after.LastMissedHeartbeatIndex = max(before.LastMissedHeartbeatIndex, n.LastMissedHeartbeatIndex)
	}
	if before != nil && after.Unlisted == nil { // the client does not report them
		after.Unlisted = before.Unlisted
	}
	after.Canonicalize()
	if !after.Status.Valid() {
		return fmt.Errorf("registering node %s: invalid status %q", n.ID, after.Status)
	}
	if !after.SchedulingEligibility.Valid() {
		return fmt.Errorf("registering node %s: invalid scheduling eligibility %q", n.ID, after.SchedulingEligibility)
	}
	switch {
	case before == nil: // the only event without an index
		after.Events = []cluster.NodeEvent{event(cluster.SubsystemCluster, cluster.EventNodeRegistered, at)}
	case before.Status == cluster.NodeDown:
		after.AppendEvent(event(cluster.SubsystemCluster, cluster.EventNodeReregistered, at), t.rows.written.index)
	}
	after.StatusChangedAt = at
	if before != nil && before.Status == after.Status {
		after.StatusChangedAt = before.StatusChangedAt
	}
	after.AwaySince = awaySince(t.rows.tables, before, after)
	after.StatusUpdatedAt = at.Unix()
	after.ModifyIndex = t.rows.written.index
	t.rows.putNode(before, after)
	confirmations{rows: &t.rows}.unlisted(after, at)
	return nil
}

// UpdateNodeStatus sets the node's status. The error is [ErrNodeNotFound], or states that the
// status is invalid.
func (t *Txn) UpdateNodeStatus(id cluster.NodeID, status cluster.NodeStatus, at time.Time) error {
	t.rows.written.journals.at = at
	if !status.Valid() {
		return fmt.Errorf("invalid node status %q", status)
	}
	before := t.State().Node(id)
	if before == nil {
		return ErrNodeNotFound
	}
	after := touchNode(before, at, t.rows.written.index)
	if status != before.Status {
		changeStatus(after, status, at.UTC(), t.rows.written.index)
		if status == cluster.NodeReady && before.Status == cluster.NodeDisconnected && versionIn(t.rows.tables) >= cluster.VersionOfConfirmation {
			after.AppendEvent(event(cluster.SubsystemCluster, cluster.EventHeartbeatReregister, at.UTC()), t.rows.written.index)
		}
		after.AwaySince = awaySince(t.rows.tables, before, after)
	}
	t.rows.putNode(before, after)
	return nil
}

// changeStatus sets a status that differs from the node's status.
func changeStatus(n *cluster.Node, status cluster.NodeStatus, at time.Time, index uint64) {
	message := ""
	switch {
	case status == cluster.NodeDown, status == cluster.NodeDisconnected:
		message = cluster.EventHeartbeatMissed
		n.LastMissedHeartbeatIndex = index
	case status == cluster.NodeReady:
		if n.Status == cluster.NodeDown {
			message = cluster.EventHeartbeatReregister
		}
		n.LastMissedHeartbeatIndex = 0
	}
	if message != "" {
		n.AppendEvent(event(cluster.SubsystemCluster, message, at), index)
	}
	n.Status = status
	n.StatusChangedAt = at
}

// awaySince returns since when the servers have no contact with a node whose status is written, or
// zero. before is the stored row, or nil.
func awaySince(t *tables, before, after *cluster.Node) time.Time {
	switch {
	case after.Reachable() || versionIn(t) < cluster.VersionOfConfirmation:
		return time.Time{}
	case before == nil || before.Reachable():
		return after.StatusChangedAt
	case before.AwaySince.IsZero(): // an older server has written the row
		return before.StatusChangedAt
	}
	return before.AwaySince
}

// UpdateNodeEligibility sets whether a scheduler may place allocations on the node. If the node has
// that eligibility, nothing changes. The error is [ErrNodeNotFound], [ErrNodeDraining], or states
// that the eligibility is invalid.
func (t *Txn) UpdateNodeEligibility(id cluster.NodeID, e cluster.Eligibility, at time.Time) error {
	if !e.Valid() {
		return fmt.Errorf("invalid scheduling eligibility %q", e)
	}
	before := t.State().Node(id)
	switch {
	case before == nil:
		return ErrNodeNotFound
	case before.Draining() && e == cluster.NodeEligible:
		return ErrNodeDraining
	case before.SchedulingEligibility == e:
		return nil
	}
	message := cluster.EventNodeEligible
	if e == cluster.NodeIneligible {
		message = cluster.EventNodeIneligible
	}
	after := touchNode(before, at, t.rows.written.index)
	after.SchedulingEligibility = e
	after.AppendEvent(event(cluster.SubsystemCluster, message, at.UTC()), t.rows.written.index)
	t.rows.putNode(before, after)
	return nil
}

// AppendNodeEvent appends an event to a node's history. The error is [ErrNodeNotFound].
func AppendNodeEvent(t *Txn, id cluster.NodeID, e cluster.NodeEvent) error {
	before := t.State().Node(id)
	if before == nil {
		return ErrNodeNotFound
	}
	after := touchNode(before, e.Timestamp, t.rows.written.index)
	after.AppendEvent(e, t.rows.written.index)
	t.rows.putNode(before, after)
	return nil
}

// DeleteNodes deletes nodes. Drains of these nodes end as [cluster.OutcomeNodeGone]. The
// allocations stay, and the scheduler marks them as lost. Their claims stay too, with the time of
// the deletion, because a deleted node may be healthy and have its volumes mounted. It returns the
// ids that do not exist; the other nodes are deleted.
func (t *Txn) DeleteNodes(ids []cluster.NodeID, at time.Time) (missing []cluster.NodeID) {
	t.rows.written.journals.at = at
	deleted := make(map[cluster.NodeID]bool, len(ids))
	for _, id := range ids {
		n := t.State().Node(id)
		if n == nil {
			if !deleted[id] {
				missing = append(missing, id)
			}
			continue
		}
		if record := lifecycle.NodeGone(t.State().DrainView(), n, at, t.rows.written.index); record != nil {
			record.VolumesLeft = volumesLeft(t, record)
			t.rows.recordDrain(record)
		}
		t.rows.putNode(n, nil)
		(claimEdits{&t.rows}).nodeGone(n, at.UTC())
		confirmations{rows: &t.rows}.nodeGone(n, at.UTC())
		deleted[id] = true
	}
	return missing
}

// touchNode returns a copy of the node with its time and index of modification.
func touchNode(n *cluster.Node, at time.Time, index uint64) *cluster.Node {
	c := n.Copy()
	c.StatusUpdatedAt = at.Unix()
	c.ModifyIndex = index
	return c
}

func event(subsystem, message string, at time.Time) cluster.NodeEvent {
	return cluster.NodeEvent{Message: message, Subsystem: subsystem, Timestamp: at}
}
