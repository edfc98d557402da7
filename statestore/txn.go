package statestore

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// Txn is the write transaction of one raft entry. Its reads see what it has
// written. It belongs to one goroutine, which ends it with Commit or Abort.
//
// No write reads a clock: times are the proposer's, from the entry.
type Txn struct {
	reads
	store *Store
	done  bool
}

// written is what a transaction has written besides rows.
type written struct {
	index uint64
	// usage and healthy hold the accounts that it may have changed, or are
	// nil: they are written at the end, each once.
	usage   map[cluster.NodeID]*usageEdit
	healthy map[cluster.GroupKey]*healthEdit
	// changes is what feeds are told of; nil once it was given back.
	changes *changes
}

func newWritten(index uint64, c *changes) *written {
	return &written{index: index, changes: c}
}

// Commit makes the transaction's writes the newest state, all at once, and then
// tells feeds and blocking queries. Commit after Commit or Abort does nothing.
func (t *Txn) Commit() {
	if t.done {
		return
	}
	t.done = true
	t.flush()
	t.store.commit(t)
}

// Abort drops the transaction's writes. Abort after Commit or Abort does nothing.
func (t *Txn) Abort() {
	if t.done {
		return
	}
	t.done = true
	t.store.giveBack(t)
	t.txn.Abort()
}

// flush writes what was gathered while rows were written.
func (t *Txn) flush() {
	t.flushUsage()
	t.flushHealth()
	t.insert(tableLedger, t.counters)
}
