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
	// Logger logs restores and skipped entries; nil logs nothing.
	Logger hclog.Logger
	// OnApply is called after each entry, in the order of the log, or nil. It runs on
	// raft's goroutine for the FSM and delays it.
	OnApply func(Applied)
	// OnRestore is called with the new store after a snapshot was restored, or nil. It runs on
	// raft's goroutine for the FSM and delays it. The old store is already abandoned. A leader then
	// enables its drainer again, on another goroutine.
	OnRestore func(*statestore.Store)
}

// Applied is one applied entry. The receiver must not change it.
type Applied struct {
	Index uint64
	Type  MessageType
	// Message is the entry's message; nil if the entry was [Skipped].
	Message Message
	// Response is the FSM's response, never nil.
	Response Response
	// Before and After are the states before and after the entry, never nil.
	Before, After *statestore.Snapshot
}

// FSM applies raft's log to a state store. Only raft calls Apply, Snapshot and
// Restore, one at a time; Store, Stop, Stopped and Err are safe for concurrent use.
//
// An FSM stops at an entry that it cannot apply, at a snapshot of a cluster version that it does
// not understand, or when its owner calls Stop. A stopped FSM never continues, and its state does
// not change. Its owner must shut raft down: see [FSM.Stopped].
type FSM struct {
	config FSMConfig
	store  atomic.Pointer[statestore.Store]

	// stopped is closed after err is set.
	stopped  chan struct{}
	stopOnce sync.Once
	err      error
}

var (
	_ raft.FSM                = (*FSM)(nil)
	_ raft.ConfigurationStore = (*FSM)(nil)
)

// NewFSM returns an FSM over an empty store.
func NewFSM(config FSMConfig) *FSM {
	if config.Logger == nil {
		config.Logger = hclog.NewNullLogger()
	}
	f := &FSM{config: config, stopped: make(chan struct{})}
	f.store.Store(statestore.New())
	return f
}

// NewFSMOver returns an FSM over a store, which belongs to the FSM from then on.
func NewFSMOver(store *statestore.Store, config FSMConfig) *FSM {
	f := NewFSM(config)
	f.store.Store(store)
	return f
}

// Store returns the current store, never nil. A restore replaces the store and abandons the
// old one.
func (f *FSM) Store() *statestore.Store { return f.store.Load() }

// Stopped returns a channel that is closed when the FSM stops. The owner then shuts raft
// down: an FSM cannot return an error to raft, which would count the entry as applied and
// continue. Raft's files are intact, and a build that understands them can continue.
func (f *FSM) Stopped() <-chan struct{} { return f.stopped }

// Err returns why the FSM has stopped, or nil.
func (f *FSM) Err() error {
	select {
	case <-f.stopped:
		return f.err
	default:
		return nil
	}
}

// Stop stops the FSM. An owner may call it when the state must not be used. Only the first call has
// an effect.
func (f *FSM) Stop(err error) {
	f.stopOnce.Do(func() {
		f.config.Logger.Error("the state machine has stopped, and this server must be shut down", "error", err)
		f.err = err
		close(f.stopped)
	})
}

// Apply applies a committed entry and returns its [Response]. It stops the FSM if the
// entry is broken or needs a newer build: a server that skipped the entry would have another
// state than the other servers. A stopped FSM applies nothing and returns nil.
func (f *FSM) Apply(entry *raft.Log) any {
	if f.Err() != nil {
		return nil
	}
	response, err := f.ApplyEntry(entry.Index, entry.Data)
	if err != nil {
		f.Stop(fmt.Errorf("raft entry %d cannot be applied, and must not be skipped: %w", entry.Index, err))
		return nil
	}
	return response
}

// ApplyEntry applies the entry with the index. It reads only the state and the entry, so that all
// servers compute the same state. The error is that of [Decode], or wraps [ErrBroken] for an index
// that is not above the state's. After an error no part of the entry is applied.
//
// Every entry sets the state's index to its own, even if it changes nothing else.
func (f *FSM) ApplyEntry(index uint64, data []byte) (Response, error) {
	message, err := Decode(data)
	if err != nil {
		return nil, err
	}
	return f.applyAs(index, data, message)
}

// ApplyMessage applies a message as ApplyEntry applies its entry, without the encoding. The history of the
// state contains only the type of the message. So it is for copies of a state that no other server has.
// The error is that of [Encode], or wraps [cluster.ErrVersion] if the cluster version of the state lacks
// the message.
func (f *FSM) ApplyMessage(index uint64, m Message) (Response, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := checkWritable(m, f.Store().Snapshot()); err != nil {
		return nil, err
	}
	return f.applyAs(index, []byte{byte(m.Type())}, m)
}

// applyAs applies a message whose entry has the data.
func (f *FSM) applyAs(index uint64, data []byte, message Message) (Response, error) {
	store := f.Store()
	before := store.Snapshot()
	if index <= before.Index() {
		return nil, fmt.Errorf("%w: index %d after %d", ErrBroken, index, before.Index())
	}
	applied := Applied{Index: index, Type: MessageType(data[0]), Message: message, Before: before}
	applied.Response = f.write(store, index, data, message)
	applied.After = store.Snapshot()
	if f.config.OnApply != nil {
		f.config.OnApply(applied)
	}
	return applied.Response, nil
}

// write applies the message of an entry in one transaction. A nil message is skipped.
func (f *FSM) write(store *statestore.Store, index uint64, entry []byte, m Message) Response {
	txn := store.Begin(index)
	defer func() { txn.Abort() }() // for a panic: after Commit it does nothing
	if m == nil {
		t := MessageType(entry[0])
		f.config.Logger.Warn("skipped a raft entry of an unknown type", "index", index, "type", uint8(t))
		statestore.Extend(txn, entry)
		txn.Commit()
		return Skipped{Type: t}
	}
	response := m.apply(txn)
	if _, refused := response.(Refused); refused {
		txn.Abort()
		txn = store.Begin(index)
	}
	statestore.Extend(txn, entry)
	txn.Commit()
	return response
}

// StoreConfiguration does nothing: raft stores the list of servers itself. Without this method raft
// takes no snapshot between a change of the servers and the next write.
func (*FSM) StoreConfiguration(uint64, raft.Configuration) {}

// Snapshot returns the current state. Raft persists it while the FSM applies further entries. A
// stopped FSM returns an error: its state lacks entries that raft counts as applied.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	return &fsmSnapshot{f.Store().Snapshot()}, nil
}

// Restore replaces the state by that of a snapshot. After an error the old state stays. A snapshot
// that needs a newer build stops the FSM. Otherwise raft would try older snapshots, and the log may
// lack the entries after them.
func (f *FSM) Restore(source io.ReadCloser) error {
	if err := f.Err(); err != nil {
		return err
	}
	restored, err := statestore.Restore(source)
	if errors.Is(err, cluster.ErrVersion) {
		f.Stop(err)
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

// fsmSnapshot is one state for raft to persist.
type fsmSnapshot struct{ state *statestore.Snapshot }

var _ raft.FSMSnapshot = (*fsmSnapshot)(nil)

// Persist writes the state.
func (s *fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	if err := statestore.Persist(sink, s.state); err != nil {
		_ = sink.Cancel() // the error of Persist matters more
		return fmt.Errorf("persisting the state: %w", err)
	}
	return sink.Close()
}

// Release does nothing: the snapshot holds only memory.
func (s *fsmSnapshot) Release() {}
