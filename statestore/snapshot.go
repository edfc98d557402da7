package statestore

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Snapshot is one state of the store. It never changes. It is safe for concurrent use, except the
// one that [Store.Blocking] passes to a query.
type Snapshot struct {
	State
	history   *history        // of the store
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
	return &Snapshot{stateOf(&watched), s.history, s.removals, s.abandoned}
}

// removals record when allocations were deleted that clients may still run, or whose data they keep, because
// a deleted row has no index. They are neither persisted nor replicated: a store that was restored from a
// snapshot has only the deletions after it.
type removals struct {
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

// RemovedAt returns the last entry that deleted an allocation that its client may still run, or whose data it keeps, or
// zero if there was none since the store was restored. It may be newer than this state, but never older. A
// blocking query does not wake for it.
func (s *Snapshot) RemovedAt() uint64 { return s.removals.newest.Load() }

// history has the states that a store had: their indexes and what identifies them. It is neither
// persisted nor replicated.
type history struct {
	mu sync.RWMutex
	// states are sorted by index, and never empty. The first is the restored state, unless the history has
	// become too long. Guarded by mu.
	states []moment
}

// moment identifies a state: see [Snapshot.History].
type moment struct{ index, history uint64 }

// maxMoments is the number of states that a history has at least, if the store had as many. A reader waits
// for minutes at most, and entries are committed at some hundred a second.
const maxMoments = 1 << 17

// begin makes a restored state the first one.
func (h *history) begin(restored moment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states = []moment{restored}
}

// add adds the state after an entry.
func (h *history) add(m moment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := len(h.states) - 1; m.index == h.states[last].index { // only tests write twice at an index
		h.states = h.states[:last]
	}
	if len(h.states) == 2*maxMoments {
		h.states = slices.Clone(h.states[maxMoments:])
	}
	h.states = append(h.states, m)
}

// has reports whether a reader of a state needs only the changes since then.
func (h *history) has(m moment) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if m.history == 0 {
		return m.index >= h.states[0].index
	}
	at, _ := slices.BinarySearchFunc(h.states, m, func(a, b moment) int { return cmp.Compare(a.index, b.index) })
	return at < len(h.states) && h.states[at] == m
}

// History identifies the entries that led to this state: two states with the same index and the same
// history are equal. It is a checksum of all entries since cluster version 9, and zero below it. A
// query does not wake for it.
func (s *Snapshot) History() uint64 { return s.counters.History }

// InHistory reports whether the store has the changes since the state with this index and
// [Snapshot.History]. Otherwise a reader of that state must read everything again. The store may have
// been restored from a later snapshot, so that the reader may have rows of a replaced state, or rows
// whose deletion it has missed. Or the servers have lost the state: they have continued from an older
// copy of their data. Without a history, the index must not be below that of the snapshot. A store that
// is behind lacks the newest states, too. A blocking query does not wake for it.
func (s *Snapshot) InHistory(index, id uint64) bool { return s.history.has(moment{index, id}) }

// Extend adds the raft entry of a transaction to the history of the state: see [Snapshot.History].
func Extend(t *Txn, entry []byte) {
	c := t.rows.counters
	if versionIn(t.rows.tables) < cluster.VersionOfHistory {
		return
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%d %d ", c.History, c.Entry) // a hash never returns an error
	sum.Write(entry)
	c.History = 0
	for _, b := range sum.Sum(nil)[:8] {
		c.History = c.History<<8 | uint64(b)
	}
	c.History = max(1, c.History) // zero is none
}
