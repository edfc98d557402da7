package shims

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// FSMConfig configures an [FSM].
type FSMConfig struct {
	// Logger is told of restores and skipped entries; nil logs nothing.
	Logger hclog.Logger
	// OnApply is called after each entry, in the order of the log and by raft's
	// goroutine for the FSM, which waits for it; or nil.
	OnApply func(Applied)
	// OnRestore is called with the new store after a snapshot was restored, by
	// raft's goroutine for the FSM, which waits for it; or nil. The old store has
	// been abandoned by then. A leader enables its drainer again from here, but
	// not in here.
	OnRestore func(*statestore.Store)
}

// Applied is one entry that was applied. Nothing in it is written to.
type Applied struct {
	Index uint64
	Type  MessageType
	// Message is the entry's message; nil if the entry was [Skipped].
	Message Message
	// Response is what the entry was answered with, never nil.
	Response Response
	// Before and After are the states around the entry, never nil.
	Before, After *statestore.Snapshot
}

// FSM applies raft's log to a state store. Only raft calls Apply, Snapshot and
// Restore, one at a time; Store is safe for concurrent use.
type FSM struct {
	config FSMConfig
	store  atomic.Pointer[statestore.Store]
}

var _ raft.FSM = (*FSM)(nil)

// NewFSM returns an FSM over an empty store.
func NewFSM(config FSMConfig) *FSM {
	if config.Logger == nil {
		config.Logger = hclog.NewNullLogger()
	}
	f := &FSM{config: config}
	f.store.Store(statestore.New())
	return f
}

// Store returns the current store, never nil. A restore puts another in its
// place and abandons this one.
func (f *FSM) Store() *statestore.Store { return f.store.Load() }

// Apply applies a committed entry and returns its [Response]. It panics if the
// entry is broken: a server that skipped what others apply, or that applied what
// others skip, would have another state than theirs from then on. It stops every
// server of the same version alike; upgrade them to one that knows the entry.
func (f *FSM) Apply(entry *raft.Log) any {
	response, err := f.ApplyEntry(entry.Index, entry.Data)
	if err != nil {
		panic(fmt.Sprintf("nodedrain: raft entry %d cannot be applied, and must not be skipped: %v", entry.Index, err))
	}
	return response
}

// ApplyEntry applies the entry of that index. It reads the state and the entry
// and nothing else, so that every server comes to the same state. An error
// means that the entry is broken, and that no part of it was applied.
//
// Whatever else the entry says, the state's index is the entry's afterwards.
func (f *FSM) ApplyEntry(index uint64, data []byte) (Response, error) {
	message, err := Decode(data)
	if err != nil {
		return nil, err
	}
	store := f.Store()
	before := store.Snapshot()
	if index <= before.Index() {
		return nil, fmt.Errorf("%w: index %d after %d", ErrBroken, index, before.Index())
	}
	applied := Applied{Index: index, Type: MessageType(data[0]), Message: message, Before: before}
	applied.Response = f.write(store, index, applied.Type, message)
	applied.After = store.Snapshot()
	if f.config.OnApply != nil {
		f.config.OnApply(applied)
	}
	return applied.Response, nil
}

// write applies a message, nil for one to skip, in a transaction of its own.
func (f *FSM) write(store *statestore.Store, index uint64, t MessageType, m Message) Response {
	txn := store.Begin(index)
	defer func() { txn.Abort() }() // for a panic: after Commit it does nothing
	if m == nil {
		f.config.Logger.Warn("skipped a raft entry of an unknown type", "index", index, "type", uint8(t))
		txn.Commit()
		return Skipped{Type: t}
	}
	response := m.apply(txn)
	if _, refused := response.(Refused); refused {
		txn.Abort()
		txn = store.Begin(index)
	}
	txn.Commit()
	return response
}

// Snapshot returns the present state, to be written while others are applied.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	return &fsmSnapshot{f.Store().Snapshot()}, nil
}

// Restore puts the state of a snapshot in the place of the present one. After an
// error the present one stays.
func (f *FSM) Restore(source io.ReadCloser) error {
	restored, err := statestore.Restore(source)
	if err != nil {
		return fmt.Errorf("restoring the state: %w", err)
	}
	old := f.store.Swap(restored)
	old.Abandon()
	f.config.Logger.Info("restored the state from a snapshot", "index", restored.Snapshot().Index())
	if f.config.OnRestore != nil {
		f.config.OnRestore(restored)
	}
	return nil
}

// fsmSnapshot is one state that raft may write to a file, or not.
type fsmSnapshot struct{ state *statestore.Snapshot }

var _ raft.FSMSnapshot = (*fsmSnapshot)(nil)

// Persist writes the state.
func (s *fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	if err := s.state.Persist(sink); err != nil {
		_ = sink.Cancel() // the error that matters is the one before
		return fmt.Errorf("persisting the state: %w", err)
	}
	return sink.Close()
}

// Release does nothing: the snapshot holds no more than memory.
func (s *fsmSnapshot) Release() {}
