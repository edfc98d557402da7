package shims

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
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
// Restore, one at a time; Store, Stopped and Err are safe for concurrent use.
//
// An FSM stops for good at an entry that it cannot apply, and at a snapshot of a cluster
// version that it does not understand. Its state stays the one before. Its owner must shut
// raft down then: see [FSM.Stopped].
type FSM struct {
	config FSMConfig
	store  atomic.Pointer[statestore.Store]

	// stopped is closed after err is set.
	stopped  chan struct{}
	stopOnce sync.Once
	err      error
}

var _ raft.FSM = (*FSM)(nil)

// NewFSM returns an FSM over an empty store.
func NewFSM(config FSMConfig) *FSM {
	if config.Logger == nil {
		config.Logger = hclog.NewNullLogger()
	}
	f := &FSM{config: config, stopped: make(chan struct{})}
	f.store.Store(statestore.New())
	return f
}

// Store returns the current store, never nil. A restore puts another in its
// place and abandons this one.
func (f *FSM) Store() *statestore.Store { return f.store.Load() }

// Stopped returns a channel that is closed when the FSM stops. Raft cannot be told by an
// error: it would count the entry as applied and go on. So the owner shuts raft down. What
// raft has on disk is intact, and a build that understands it goes on from there.
func (f *FSM) Stopped() <-chan struct{} { return f.stopped }

// Err is why the FSM has stopped, or nil.
func (f *FSM) Err() error {
	select {
	case <-f.stopped:
		return f.err
	default:
		return nil
	}
}

// stop stops the FSM.
func (f *FSM) stop(err error) {
	f.stopOnce.Do(func() {
		f.config.Logger.Error("the state machine has stopped, and this server must be shut down: its data is intact", "error", err)
		f.err = err
		close(f.stopped)
	})
}

// Apply applies a committed entry and returns its [Response]. It stops the FSM if the
// entry is broken or needs a newer build: a server that skipped what others apply, or that
// applied what others skip, would have another state than theirs from then on. An FSM that
// has stopped applies nothing and returns nil.
func (f *FSM) Apply(entry *raft.Log) any {
	if f.Err() != nil {
		return nil
	}
	response, err := f.ApplyEntry(entry.Index, entry.Data)
	if err != nil {
		f.stop(fmt.Errorf("raft entry %d cannot be applied, and must not be skipped: %w", entry.Index, err))
		return nil
	}
	return response
}

// ApplyEntry applies the entry of that index. It reads the state and the entry
// and nothing else, so that every server comes to the same state. An error is one
// of [Decode], and no part of the entry was applied.
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

// Snapshot returns the present state, to be written while others are applied. An FSM that
// has stopped returns why: raft would say of the snapshot that it shows all entries.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	return &fsmSnapshot{f.Store().Snapshot()}, nil
}

// Restore puts the state of a snapshot in the place of the present one. After an
// error the present one stays. A snapshot that needs a newer build stops the FSM: raft
// would try older snapshots, and the log may not reach back to them.
func (f *FSM) Restore(source io.ReadCloser) error {
	if err := f.Err(); err != nil {
		return err
	}
	restored, err := statestore.Restore(source)
	if errors.Is(err, cluster.ErrVersion) {
		f.stop(err)
	}
	if err != nil {
		return err
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
