package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// Txn is the write transaction of one raft entry. Its reads see its own writes. It belongs
// to one goroutine, which ends it with Commit or Abort.
//
// No write reads a clock: all times come from the entry.
type Txn struct {
	rows  rowWrites
	store *Store
	done  bool
}

// written is the state of a transaction that is not in rows.
type written struct {
	index uint64
	// usage and healthy are the accounts that the transaction may have changed, or nil.
	usage   accountEdits[cluster.NodeID, usage]
	healthy accountEdits[cluster.GroupKey, health]
	// times are the learned times that the transaction may have changed, or nil.
	times accountEdits[cluster.GroupKey, groupTimes]
	// began are the allocations that began to run in the transaction, if each replaces another one.
	began []*cluster.Allocation
	// removed means that the transaction has deleted an allocation that its client may still run.
	removed  bool
	journals journals
	// changes are for the feeds; nil after the end of the transaction.
	changes *changes
}

func newWritten(index uint64, c *changes) *written {
	return &written{index: index, changes: c}
}

// State returns the state with the writes of the transaction so far.
func (t *Txn) State() State { return stateOf(t.rows.tables) }

// Commit makes the transaction's writes the newest state atomically, and then wakes feeds
// and blocking queries. Commit after Commit or Abort does nothing.
func (t *Txn) Commit() {
	if t.done {
		return
	}
	t.done = true
	t.rows.flush()
	t.store.commit(t)
}

// Abort drops the transaction's writes. Abort after Commit or Abort does nothing.
func (t *Txn) Abort() {
	if t.done {
		return
	}
	t.done = true
	t.store.giveBack(t)
	t.rows.txn.Abort()
}

// flush writes the journals, the learned times, the accounts and the counters.
func (t *rowWrites) flush() {
	journalWriter{t}.flush()
	learner{t}.flush()
	t.flushUsage()
	t.flushHealth()
	t.insert(tableLedger, t.counters)
}
