package statestore

import (
	"sync/atomic"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// removals tell since when a client may have to be told that allocations were deleted. A deleted
// row has no index. They are neither persisted nor replicated: a server that is restored from a
// snapshot knows only the deletions after it.
type removals struct {
	// from is the index of the restored state, or zero. It does not change once the store is shared.
	from uint64
	// newest is the last entry that deleted an allocation that its client may still run.
	newest atomic.Uint64
}

// noteRemoval notes the deletion of an allocation, unless its client has ended it. Only a client
// reports complete or failed, and only about the allocations of its own node. All others are deleted
// while their client may still run them: a purge does so, and a lost allocation has not been
// reported.
func (t *rowWrites) noteRemoval(a *cluster.Allocation) {
	if a.ClientStatus != cluster.ClientComplete && a.ClientStatus != cluster.ClientFailed {
		t.written.removed = true
	}
}

// HistoryFrom returns the index of the snapshot from which the store was restored, or zero. A reader
// that knows the state at a lower index may know rows of a state that was replaced, or rows that were
// deleted unnoticed. It must read again all that it needs.
func (s *Snapshot) HistoryFrom() uint64 { return s.removals.from }

// RemovedAt returns the last entry that deleted an allocation that its client may still run, zero if
// there was none since HistoryFrom. It may be newer than this state, and never is older. It waits for
// nothing in a blocking query.
func (s *Snapshot) RemovedAt() uint64 { return s.removals.newest.Load() }
