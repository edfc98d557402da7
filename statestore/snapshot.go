package statestore

import (
	"sync/atomic"

	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Snapshot is one state of the store. It never changes. It is safe for concurrent use, except the
// one that [Store.Blocking] passes to a query.
type Snapshot struct {
	State
	removals  *removals       // of the store
	abandoned <-chan struct{} // of the store
}

// Abandoned reports whether the store of this state was replaced: see [Store.Abandon].
func (s *Snapshot) Abandoned() bool {
	select {
	case <-s.abandoned:
		return true
	default:
		return false
	}
}

// watching returns the same state. Every read of it adds to ws the channels that signal a change.
// It belongs to one goroutine.
func watching(s *Snapshot, ws memdb.WatchSet) *Snapshot {
	watched := *s.tables
	watched.ws = ws
	return &Snapshot{stateOf(&watched), s.removals, s.abandoned}
}

// removals record when allocations were deleted that clients may still run, or whose data they keep, because
// a deleted row has no index. They are neither persisted nor replicated: a store that was restored from a
// snapshot has only the deletions after it.
type removals struct {
	// from is the index of the restored state, or zero. It does not change after the store is
	// shared.
	from uint64
	// newest is the last entry that deleted an allocation that its client may still run, or whose data it keeps.
	newest atomic.Uint64
}

// noteRemoval records the deletion of an allocation, unless its client has ended it and keeps no data. Only the
// client of its node reports complete or failed. The client may still run any other allocation: a
// purge below [cluster.VersionOfConfirmation] deletes running ones, and the end of a lost one was never
// reported.
func (t *rowWrites) noteRemoval(a *cluster.Allocation) {
	if a.ClientStatus != cluster.ClientComplete && a.ClientStatus != cluster.ClientFailed || a.DataOut.Kept() {
		t.written.removed = true
	}
}

// HistoryFrom returns the index of the snapshot from which the store was restored, or zero. A
// reader that has read at a lower index may have rows of a replaced state, or rows whose deletion
// it has missed. It must read everything again.
func (s *Snapshot) HistoryFrom() uint64 { return s.removals.from }

// RemovedAt returns the last entry that deleted an allocation that its client may still run, or whose data it keeps, or
// zero if there was none since HistoryFrom. It may be newer than this state, but never older. A
// blocking query does not wake for it.
func (s *Snapshot) RemovedAt() uint64 { return s.removals.newest.Load() }
