package shims

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// VolumeRegister registers a volume, or changes a registered one. The FSM fills in defaults, and
// refuses an invalid volume and a change that claims forbid.
type VolumeRegister struct {
	At     time.Time
	Volume *cluster.Volume
}

func (*VolumeRegister) Type() MessageType      { return VolumeRegisterType }
func (*VolumeRegister) responds(ChangeApplied) {}
func (*VolumeRegister) needs() cluster.Version { return cluster.VersionOfVolumes }

func (m *VolumeRegister) check() error {
	if m.Volume == nil {
		return errors.New("volume is missing")
	}
	return nil
}

func (m *VolumeRegister) apply(txn *statestore.Txn) Response {
	return done(nil, txn.UpsertVolume(m.Volume, m.At))
}

// VolumeDeregister deletes a volume. Without Force the FSM refuses it while claims of the volume
// exist.
type VolumeDeregister struct {
	Volume cluster.VolumeKey
	// Force deletes the claims too.
	Force bool
}

func (*VolumeDeregister) Type() MessageType      { return VolumeDeregisterType }
func (*VolumeDeregister) responds(ChangeApplied) {}
func (*VolumeDeregister) needs() cluster.Version { return cluster.VersionOfVolumes }
func (*VolumeDeregister) check() error           { return nil }

func (m *VolumeDeregister) apply(txn *statestore.Txn) Response {
	return done(nil, txn.DeleteVolume(m.Volume, m.Force))
}

// VolumeDetach takes a volume off a node at an operator's request.
type VolumeDetach struct {
	// At is the proposer's time.
	At     time.Time
	Volume cluster.VolumeKey
	Node   cluster.NodeID
	// Force changes the claims as if the node had unmounted the volume. Allocations on the node
	// that use the volume are stopped and replaced, as by [AllocStop], because their node must not
	// use it any more.
	Force bool
}

func (*VolumeDetach) Type() MessageType      { return VolumeDetachType }
func (*VolumeDetach) responds(ChangeApplied) {}
func (*VolumeDetach) needs() cluster.Version { return cluster.VersionOfVolumes }
func (*VolumeDetach) check() error           { return nil }

func (m *VolumeDetach) apply(txn *statestore.Txn) Response {
	stopped, err := txn.DetachVolume(m.Volume, m.Node, m.Force, m.At)
	if err != nil {
		return Refused{Err: err}
	}
	var required []*cluster.Evaluation
	for _, id := range stopped {
		required = append(required, scheduler.AllocEval(txn.State().WorkView(), id, cluster.TriggerAllocStop, m.At, unnamed())...)
	}
	return done(evaluate(txn, nil, required))
}

// ClaimUpdate moves claims of volumes to later states. The FSM checks each change in the state in
// which it applies the entry.
type ClaimUpdate struct {
	cluster.ClaimUpdate
}

func (*ClaimUpdate) Type() MessageType      { return ClaimUpdateType }
func (*ClaimUpdate) responds(ClaimsUpdated) {}
func (*ClaimUpdate) needs() cluster.Version { return cluster.VersionOfVolumes }

func (m *ClaimUpdate) check() error {
	if len(m.Changes) > cluster.MaxClaimChanges {
		return fmt.Errorf("an update has at most %d changes of claims but found %d", cluster.MaxClaimChanges, len(m.Changes))
	}
	return nil
}

func (m *ClaimUpdate) apply(txn *statestore.Txn) Response {
	return ClaimsUpdated{Refused: txn.UpdateClaims(&m.ClaimUpdate)}
}

// ClaimsUpdated answers [ClaimUpdate].
type ClaimsUpdated struct {
	// Refused are the refused changes, or nil. The others are applied, or were already.
	Refused []cluster.ClaimRefusal
}

func (ClaimsUpdated) response() {}
