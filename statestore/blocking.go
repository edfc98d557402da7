package statestore

import (
	"context"

	"github.com/hashicorp/go-memdb"
)

// Blocking runs the query until its index is above minIndex. Before each repetition it
// waits until a row changes that the query has read. With a minIndex of zero it runs the
// query once. The query must read only its snapshot, and from one goroutine.
//
// Blocking returns the last index of the query. The error is that of the query or of the
// context, or [ErrAbandoned].
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
