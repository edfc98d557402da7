package statestore

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

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
	// tables are those it wrote to.
	tables set[string]
	// capacity says that more may fit on the nodes than before.
	capacity bool
	// usage holds the rows of that table it has changed.
	usage map[cluster.NodeID]usage
	// healthy holds the counts of groups that it has changed, or is nil.
	healthy map[cluster.GroupKey]int
	// changes is what feeds are told of; nil once it was given back.
	changes *changes
}

func newWritten(index uint64, c *changes) *written {
	return &written{index: index, usage: make(map[cluster.NodeID]usage), changes: c}
}

// counter is a row of the table index: the raft index of the last entry that
// wrote to the table of that name, or one of the counters below.
type counter struct {
	Key   string
	Value uint64
}

const (
	// counterEntry is the raft index of the newest entry.
	counterEntry = "entry"
	// counterCapacity is that of the last entry after which more may fit.
	counterCapacity = "capacity"
	// counterRecords counts the records of ended drains.
	counterRecords = "records"
)

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
	for _, table := range slices.Sorted(slices.Values(t.written.tables.items)) {
		t.count(table, t.written.index)
	}
	if t.written.capacity {
		t.count(counterCapacity, t.written.index)
	}
	t.count(counterEntry, t.written.index)
}

func (t *Txn) count(key string, value uint64) { t.insert(tableIndex, &counter{Key: key, Value: value}) }
