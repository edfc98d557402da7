package statestore

import (
	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

var (
	_ rules.View = (*Snapshot)(nil)
	_ rules.View = (*Txn)(nil)
)

// Snapshot is one state of the store. It never changes. It is safe for concurrent use, except the
// one that [Store.Blocking] passes to a query.
type Snapshot struct {
	reads
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
func (s *Snapshot) watching(ws memdb.WatchSet) *Snapshot {
	watched := *s.tables
	watched.ws = ws
	return &Snapshot{readsOf(&watched), s.removals, s.abandoned}
}
