package world

import (
	"bytes"
	"fmt"
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

// SameStates has every server catch up with the log, and says which of them has
// come to another state than the leader.
func (w *World) SameStates() error {
	want, err := w.dump(w.leader.replica)
	if err != nil {
		return err
	}
	for i, r := range w.replicas {
		got, err := w.dump(r)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("server %d has another state than the leader: %s", i, difference(got, want))
		}
	}
	return nil
}

// dump is a replica's state, once it has applied the whole log.
func (w *World) dump(r *replica) ([]byte, error) {
	if _, err := r.catchUp(w.log.entries); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := r.state().Dump(&b); err != nil {
		return nil, fmt.Errorf("dumping a state: %w", err)
	}
	return b.Bytes(), nil
}

// difference shows the first lines in which two dumps differ.
func difference(got, want []byte) string {
	ours, theirs := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(ours), len(theirs)) {
		if !bytes.Equal(ours[i], theirs[i]) {
			return fmt.Sprintf("%s\ninstead of %s", ours[i], theirs[i])
		}
	}
	return fmt.Sprintf("%d lines instead of %d", len(ours), len(theirs))
}
