package statestore

import (
	"context"

	"github.com/hashicorp/go-memdb"
)

// Blocking runs a query until its index is above minIndex, and waits for what
// the query has read to change in between. A minIndex of zero never waits. The query reads
// nothing that changes but its snapshot, and from one goroutine.
//
// It returns the last index the query returned, and why it ended: the query's
// error, the context's, or [ErrAbandoned].
func (s *Store) Blocking(ctx context.Context, minIndex uint64, query func(*Snapshot) (index uint64, err error)) (uint64, error) {
	for {
		ws := memdb.NewWatchSet()
		ws.Add(s.abandoned)
		index, err := query(s.Snapshot().watching(ws))
		if err != nil || minIndex == 0 || index > minIndex {
			return index, err
		}
		if err := ws.WatchCtx(ctx); err != nil {
			return index, err
		}
		select {
		case <-s.abandoned:
			return index, ErrAbandoned
		default:
		}
	}
}
