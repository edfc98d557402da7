package world

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// replica is a state machine, with the number of entries that it has applied.
type replica struct {
	fsm     *shims.FSM
	observe func(shims.Applied) // never nil
	// applied is the number of applied entries.
	applied int
}

// newReplica returns a replica of a cluster whose servers all run this build.
func newReplica(observe func(shims.Applied)) *replica {
	r := &replica{fsm: shims.NewFSM(shims.FSMConfig{OnApply: observe}), observe: observe}
	txn := r.fsm.Store().Begin(0)
	txn.RaiseClusterVersion(cluster.MaxVersion)
	txn.Commit()
	return r
}

// catchUp applies the entries that the replica has not applied yet. It returns the response to
// the last entry, or nil if that entry has no message.
func (r *replica) catchUp(entries []logEntry) (response shims.Response, err error) {
	for r.applied < len(entries) && err == nil {
		e := entries[r.applied]
		r.applied++
		response = nil
		switch index := uint64(r.applied); {
		case e.write != nil:
			err = r.write(index, e.write)
		case e.data != nil:
			response, err = r.fsm.ApplyEntry(index, e.data)
		}
	}
	return response, err
}

// write runs a direct write. Observers get an entry without a message.
func (r *replica) write(index uint64, do func(*statestore.Txn) error) error {
	before := r.state()
	txn := r.fsm.Store().Begin(index)
	defer txn.Abort()
	if err := do(txn); err != nil {
		return err
	}
	txn.Commit()
	r.observe(shims.Applied{Index: index, Response: shims.Skipped{}, Before: before, After: r.state()})
	return nil
}

// state is the replica's newest state.
func (r *replica) state() *statestore.Snapshot { return r.fsm.Store().Snapshot() }
