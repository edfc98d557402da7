package shims

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/collect"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Collect deletes ended allocations, evaluations and jobs. The FSM judges each row in the state in
// which it applies the entry, and keeps a row that something needs: see package collect. A deleted
// job takes its last evaluation with it.
type Collect struct {
	// At is the proposer's time. The ages of rows count to the times of the request.
	At time.Time
	collect.Request
}

func (*Collect) Type() MessageType      { return CollectType }
func (*Collect) responds(Collected)     {}
func (*Collect) check() error           { return nil }
func (*Collect) needs() cluster.Version { return collect.Version }

func (m *Collect) apply(txn *statestore.Txn) Response {
	deleted, err := collect.Apply(txn, &m.Request)
	if err != nil {
		return Refused{Err: err}
	}
	return Collected{Deleted: deleted, Kept: m.Len() - deleted.Len()}
}
