package shims

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// RaiseClusterVersion raises the cluster version of the state. The leader proposes it when every
// server of the cluster has reported that it understands the version. An FSM that does not
// understand the version stops at this entry, before any entry that needs it.
//
// Its encoding never changes: no version adds a field to it.
type RaiseClusterVersion struct {
	Version cluster.Version
}

func (*RaiseClusterVersion) Type() MessageType      { return RaiseClusterVersionType }
func (*RaiseClusterVersion) responds(ChangeApplied) {}

// check refuses a version that this build does not understand.
func (m *RaiseClusterVersion) check() error {
	if m.Version < 2 {
		return fmt.Errorf("a raise to cluster version %d", m.Version)
	}
	return cluster.Require(m.Version)
}

// needs is the version that introduced the type.
func (*RaiseClusterVersion) needs() cluster.Version { return 2 }

func (m *RaiseClusterVersion) apply(txn *statestore.Txn) Response {
	txn.RaiseClusterVersion(m.Version)
	return ChangeApplied{}
}

// versioned is a message of a type, or with fields, that a server of version 1 does not
// understand.
type versioned interface {
	// needs is the lowest cluster version that understands the message with the fields
	// that it has set.
	needs() cluster.Version
}

// neededVersion is the lowest cluster version that understands the message.
func neededVersion(m Message) cluster.Version {
	if m, ok := m.(versioned); ok {
		return m.needs()
	}
	return 1
}

// checkWritable refuses a message that an older server of the cluster may not understand.
func checkWritable(m Message, state *statestore.Snapshot) error {
	needed := neededVersion(m)
	if needed == 1 || m.Type() == RaiseClusterVersionType {
		return nil
	}
	if has := state.ClusterVersion(); needed > has {
		return fmt.Errorf("%w yet: %s needs version %d, and the cluster has version %d: upgrade every server of the cluster", cluster.ErrVersion, m.Type(), needed, has)
	}
	return nil
}
