package shims

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// ConfirmStops confirms the ends of lost allocations on nodes that must have stopped them by the time of
// the entry. The FSM checks each allocation.
type ConfirmStops struct {
	// At is the proposer's time.
	At    time.Time
	Nodes []cluster.NodeID
}

// MaxConfirmedNodes bounds the nodes of one [ConfirmStops].
const MaxConfirmedNodes = 100

func (*ConfirmStops) Type() MessageType      { return ConfirmStopsType }
func (*ConfirmStops) responds(ChangeApplied) {}
func (*ConfirmStops) needs() cluster.Version { return cluster.VersionOfConfirmation }

func (m *ConfirmStops) check() error {
	if len(m.Nodes) > MaxConfirmedNodes {
		return fmt.Errorf("an entry confirms the stops of at most %d nodes but found %d", MaxConfirmedNodes, len(m.Nodes))
	}
	return nil
}

func (m *ConfirmStops) apply(txn *statestore.Txn) Response {
	before := held(txn, m.Nodes...)
	for _, id := range m.Nodes {
		txn.ConfirmStops(id, m.At)
	}
	return done(evaluate(txn, nil, confirmedEvals(txn, m.At, before)))
}

// ConfirmDrain confirms, on the request of an operator, that no task of an ended drain runs on its node.
type ConfirmDrain struct {
	// At is the proposer's time.
	At    time.Time
	Drain cluster.DrainID
	// By is the operator.
	By string
}

func (*ConfirmDrain) Type() MessageType       { return ConfirmDrainType }
func (*ConfirmDrain) responds(DrainConfirmed) {}
func (*ConfirmDrain) needs() cluster.Version  { return cluster.VersionOfConfirmation }
func (*ConfirmDrain) check() error            { return nil }

func (m *ConfirmDrain) apply(txn *statestore.Txn) Response {
	var before []cluster.AllocID
	if d := txn.State().DrainRecord(m.Drain); d != nil {
		before = held(txn, d.NodeID)
	}
	confirmed, err := txn.ConfirmDrain(m.Drain, m.By, m.At)
	if err != nil {
		return Refused{Err: err}
	}
	evals, err := evaluate(txn, nil, confirmedEvals(txn, m.At, before))
	if err != nil {
		return Refused{Err: err}
	}
	return DrainConfirmed{Allocs: confirmed, Evals: evals}
}

// DrainConfirmed answers [ConfirmDrain].
type DrainConfirmed struct {
	// Allocs is how many allocations the record counted before. With zero nothing has changed.
	Allocs int
	// Evals are the written evaluations, or nil.
	Evals []cluster.EvalID
}

func (DrainConfirmed) response() {}
