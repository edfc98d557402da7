package server

import (
	"io"
	"sync"

	"github.com/hashicorp/raft"
)

// MemorySnapshots keeps the newest snapshot in memory. A snapshot is visible when it is complete:
// [raft.InmemSnapshotStore] shows a snapshot while it is written, and raft may send it to another
// server then. It is safe for concurrent use. The zero value is an empty store.
type MemorySnapshots struct {
	mu sync.Mutex
	// newest holds one complete snapshot, or is nil; guarded by mu.
	newest *raft.InmemSnapshotStore
}

var _ raft.SnapshotStore = (*MemorySnapshots)(nil)

// Create begins a snapshot. The snapshot replaces the newest one when the sink is closed.
func (m *MemorySnapshots) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, configIndex uint64, t raft.Transport) (raft.SnapshotSink, error) {
	store := raft.NewInmemSnapshotStore()
	sink, err := store.Create(version, index, term, c, configIndex, t)
	if err != nil {
		return nil, err
	}
	return &memorySink{SnapshotSink: sink, publish: func() { m.publish(store) }}, nil
}

// List returns the newest snapshot, if there is one.
func (m *MemorySnapshots) List() ([]*raft.SnapshotMeta, error) { return m.current().List() }

// Open opens the newest snapshot. It returns an error for any other id.
func (m *MemorySnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	return m.current().Open(id)
}

func (m *MemorySnapshots) publish(store *raft.InmemSnapshotStore) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest = store
}

// current returns the store of the newest snapshot, or an empty store.
func (m *MemorySnapshots) current() *raft.InmemSnapshotStore {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.newest == nil {
		m.newest = raft.NewInmemSnapshotStore()
	}
	return m.newest
}

// memorySink is a snapshot that is being written. A cancelled one is never published.
type memorySink struct {
	raft.SnapshotSink
	publish func()
}

// Close publishes the snapshot.
func (s *memorySink) Close() error {
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	s.publish()
	return nil
}
