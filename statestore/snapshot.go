package statestore

import (
	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

var (
	_ rules.View = (*Snapshot)(nil)
	_ rules.View = (*Txn)(nil)
)

// Snapshot is one state of the store. It never changes, and is safe for
// concurrent use, but for one that [Store.Blocking] gives to a query.
type Snapshot struct {
	reads
	removals  *removals       // of the store
	abandoned <-chan struct{} // of the store
}

// Abandoned reports whether another store has replaced that of this state: see [Store.Abandon].
func (s *Snapshot) Abandoned() bool {
	select {
	case <-s.abandoned:
		return true
	default:
		return false
	}
}

// watching returns the same state, with every read adding to ws what it has to
// wait for. It belongs to one goroutine.
func (s *Snapshot) watching(ws memdb.WatchSet) *Snapshot {
	watched := *s.tables
	watched.ws = ws
	return &Snapshot{readsOf(&watched), s.removals, s.abandoned}
}
