package statestore

import (
	"iter"

	"github.com/hashicorp/go-memdb"
)

// tables are the tables of one state. All readers and the writes of a transaction share them.
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
func first[T any](t *tables, table, index string, k key) *T {
	watch, row, err := t.txn.FirstWatch(table, index, k)
	if err != nil {
		panic("statestore: reading " + table + " by " + index + ": " + err.Error())
	}
	t.ws.Add(watch)
	found, _ := row.(*T)
	return found
}

// scan yields the rows of an index whose keys begin with k, in order. A nil key yields all
// rows.
func scan[T any](t *tables, table, index string, k key) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		rows := iterate(t, table, index, k)
		for row := rows.Next(); row != nil; row = rows.Next() {
			if !yield(row.(*T)) {
				return
			}
		}
	}
}

// iterate returns the rows that scan yields.
func iterate(t *tables, table, index string, k key) memdb.ResultIterator {
	if k == nil {
		k = key{}
	}
	rows, err := t.txn.Get(table, index, k)
	if err != nil {
		panic("statestore: scanning " + table + " by " + index + ": " + err.Error())
	}
	t.ws.Add(rows.WatchCh())
	return rows
}

// watchedCounters returns the counters, and adds them to the watch set of a blocking query.
func watchedCounters(t *tables) *counters {
	if t.ws != nil {
		first[counters](t, tableLedger, indexID, countersKey())
	}
	return t.counters
}
