package statestore

import (
	"iter"

	"github.com/hashicorp/go-memdb"
)

// reads are the reads that a snapshot and a write transaction have in common.
type reads struct {
	*tables
	nodeReads
	jobReads
	allocReads
	volumeReads
}

func readsOf(t *tables) reads {
	return reads{t, nodeReads{t}, jobReads{t}, allocReads{t}, volumeReads{t}}
}

// tables are the tables of one state.
type tables struct {
	txn *memdb.Txn
	// counters are those of the state or of the transaction. Never nil.
	counters *counters
	// ws collects the channels that signal a change of the rows that were read, or is nil.
	ws memdb.WatchSet
	// written is nil in a snapshot.
	written *written
}

// first returns the row with the key in an index, or nil.
func first[T any](r *tables, table, index string, k key) *T {
	watch, row, err := r.txn.FirstWatch(table, index, k)
	if err != nil {
		panic("statestore: reading " + table + " by " + index + ": " + err.Error())
	}
	r.ws.Add(watch)
	found, _ := row.(*T)
	return found
}

// scan yields the rows of an index whose keys begin with k, in order. A nil key yields all
// rows.
func scan[T any](r *tables, table, index string, k key) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		rows := r.rows(table, index, k)
		for row := rows.Next(); row != nil; row = rows.Next() {
			if !yield(row.(*T)) {
				return
			}
		}
	}
}

// rows are the rows that scan yields.
func (r *tables) rows(table, index string, k key) memdb.ResultIterator {
	if k == nil {
		k = key{}
	}
	rows, err := r.txn.Get(table, index, k)
	if err != nil {
		panic("statestore: scanning " + table + " by " + index + ": " + err.Error())
	}
	r.ws.Add(rows.WatchCh())
	return rows
}

// Index is the raft index of the newest entry in the state.
func (r *tables) Index() uint64 {
	r.watchCounters()
	return r.counters.Entry
}

// TableIndex is the raft index of the last entry that wrote to the table, or zero.
func (r *tables) TableIndex(table string) uint64 {
	index := r.counters.of(table)
	if index == nil {
		return 0
	}
	r.watch(table) // not the counters, which every entry changes
	return *index
}

// CapacityIndex is the raft index of the last entry that may have added capacity: a node became
// ready or fits more work, an allocation ended, or a volume was registered or freed.
func (r *tables) CapacityIndex() uint64 {
	r.watchCounters()
	return r.counters.Capacity
}

// watchCounters adds the counters to the watch set of a blocking query.
func (r *tables) watchCounters() {
	if r.ws != nil {
		first[counters](r, tableLedger, indexID, countersKey())
	}
}

// watch adds all rows of the table to the watch set of a blocking query.
func (r *tables) watch(table string) {
	if r.ws != nil {
		r.rows(table, indexID, nil)
	}
}
