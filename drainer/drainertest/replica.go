package drainertest

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// replica is one server: a state machine, and how much of the log it has seen.
// Only the leader applies as the log grows. The others fall behind, and catch up
// when one of them leads and has something committed: until then a new leader
// sees an old state, as in raft.
type replica struct {
	fsm *shims.FSM
	// applied is how many entries of the log it has applied.
	applied int
	// ahead is how far its clock is ahead of the world's time.
	ahead time.Duration
}

func newReplica(observe func(shims.Applied)) *replica {
	return &replica{fsm: shims.NewFSM(shims.FSMConfig{OnApply: observe})}
}

// catchUp applies the entries that the replica has not seen. It returns the
// response to the last of the log, nil if that is no message.
func (r *replica) catchUp(entries []logEntry) (response shims.Response, err error) {
	for r.applied < len(entries) && err == nil {
		e := entries[r.applied]
		r.applied++
		response = nil
		switch index := uint64(r.applied); {
		case e.begin != nil:
			err = r.write(index, e.begin)
		case e.data != nil:
			response, err = r.fsm.ApplyEntry(index, e.data)
		}
	}
	return response, err
}

func (r *replica) write(index uint64, do func(*statestore.Txn) error) error {
	txn := r.fsm.Store().Begin(index)
	defer txn.Abort()
	if err := do(txn); err != nil {
		return err
	}
	txn.Commit()
	return nil
}

// state is the replica's newest state.
func (r *replica) state() *statestore.Snapshot { return r.fsm.Store().Snapshot() }
