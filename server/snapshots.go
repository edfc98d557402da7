package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// ErrNothingNew means that the newest snapshot holds the whole state.
var ErrNothingNew = errors.New("the newest snapshot holds the whole state")

// Snapshots takes snapshots of a server's state, and restores others. See [Server.Snapshots].
type Snapshots struct {
	raft  *raft.Raft
	fsm   *shims.FSM
	store stoppableSnapshots
	// taking counts the calls of Take.
	taking sync.WaitGroup
}

// Take makes raft write a snapshot of the state to its stores, so that a restart replays few
// entries. The error is [ErrNothingNew] if no command was applied since the newest snapshot. The
// server works meanwhile. If the context ends first, raft continues in the background, and Shutdown
// stops it. Shutdown must not have begun before the call.
func (s *Snapshots) Take(ctx context.Context) error {
	newest, err := strconv.ParseUint(s.raft.Stats()["last_snapshot_index"], 10, 64)
	if err != nil {
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	if s.fsm.Store().Snapshot().Index() <= newest {
		return ErrNothingNew
	}
	done := make(chan error, 1)
	s.taking.Go(func() { done <- s.raft.Snapshot().Error() }) // ends with raft at the latest
	select {
	case err = <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	return nil
}

// restoreGap is more than the entries that raft may take up between the choice of an index for a
// restored state and its restore.
const restoreGap = 1024

// Restore replaces the state of all servers by the one in the store. It works on the leader. The
// store gets an index above all that were used, and the cluster version, if its own is lower. Every
// entry of the present state is lost, and writes in flight end with an unknown outcome. The scratch
// file is empty, and holds the state meanwhile. Restore returns when most servers have the state. An
// error that wraps [shims.ErrRejected] means that nothing has changed; after one that wraps
// [shims.ErrUnknown] the state may be replaced, now or later, and this server may be the only one that
// has it: if another server leads without it, this one must not go on, because raft does not take the
// state back.
func (s *Snapshots) Restore(store *statestore.Store, v cluster.Version, scratch io.ReadWriteSeeker) (index uint64, err error) {
	present := s.fsm.Store()
	store.Advance(max(s.raft.LastIndex(), store.Snapshot().Index())+restoreGap, v)
	state := store.Snapshot()
	if err := statestore.Persist(scratch, state); err != nil {
		return 0, fmt.Errorf("%w: %w", shims.ErrRejected, err)
	}
	size, err := scratch.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = scratch.Seek(0, io.SeekStart)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", shims.ErrRejected, err)
	}
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: state.Index(), Size: size}
	switch err := s.raft.Restore(meta, scratch, restoreTimeout); {
	case err == nil:
		return state.Index(), nil
	case s.fsm.Store() == present && !errors.Is(err, raft.ErrRaftShutdown): // or the snapshot may be on the disk
		return 0, fmt.Errorf("restoring the state: %w: %w", shims.ErrRejected, err)
	default:
		return 0, fmt.Errorf("restoring the state: %w: %w", shims.ErrUnknown, err)
	}
}

// Fail makes the server fail: see [Server.Failed]. It is for a server whose restored state must not be
// used. The error names the remedy.
func (s *Snapshots) Fail(err error) { s.fsm.Stop(err) }

// restoreTimeout bounds the time until raft takes up a restore, and then until it takes up an entry.
const restoreTimeout = time.Minute

// end stops the writes of snapshots: raft waits for them when it ends.
func (s *Snapshots) end() { close(s.store.ending) }

// stoppableSnapshots is a store of snapshots whose writes can be stopped.
type stoppableSnapshots struct {
	raft.SnapshotStore
	ending chan struct{} // closed by end
}

// Create begins a snapshot.
func (s *stoppableSnapshots) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, configIndex uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(version, index, term, c, configIndex, t)
	if err != nil {
		return nil, err
	}
	return &stoppableSink{SnapshotSink: sink, ending: s.ending}, nil
}

// stoppableSink is a snapshot that is being written.
type stoppableSink struct {
	raft.SnapshotSink
	ending <-chan struct{}
}

// Write writes a part of the snapshot, unless the server ends.
func (s *stoppableSink) Write(b []byte) (int, error) {
	select {
	case <-s.ending:
		return 0, fmt.Errorf("the server is shutting down: %w", io.ErrClosedPipe)
	default:
		return s.SnapshotSink.Write(b)
	}
}
