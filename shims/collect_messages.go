package shims

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Collect deletes ended allocations, evaluations and jobs. The FSM checks each row in the state in
// which it applies the entry, and keeps a row that is still needed: see package collect. The last
// evaluation of a job is deleted with the job.
type Collect struct {
	// At is the proposer's time. The request has its own times, to which it compares the ages of
	// rows.
	At time.Time
	collect.Request
}

func (*Collect) Type() MessageType       { return CollectType }
func (*Collect) responds(CollectApplied) {}
func (*Collect) check() error            { return nil }
func (*Collect) needs() cluster.Version  { return collect.Version }

func (m *Collect) apply(txn *statestore.Txn) Response {
	deleted, err := collect.Apply(txn.State().WorkView(), txn, &m.Request)
	if err != nil {
		return Refused{Err: err}
	}
	return CollectApplied{Deleted: deleted, Kept: m.Len() - deleted.Len()}
}
