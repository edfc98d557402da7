package agent

import (
	"context"
	"errors"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// reader reads the state of a server for the API.
type reader struct{ server *server.Server }

var (
	_ httpapi.Reader = reader{}
	_ httpapi.State  = (*statestore.Snapshot)(nil)
)

// Read calls the query until the index that the query returns is above minIndex. When a restored
// snapshot replaces the state, Read continues on the new state.
func (r reader) Read(ctx context.Context, minIndex uint64, query func(httpapi.State) (uint64, error)) error {
	for {
		_, err := r.server.Store().Blocking(ctx, minIndex, func(state *statestore.Snapshot) (uint64, error) {
			return query(state)
		})
		if !errors.Is(err, statestore.ErrAbandoned) {
			return err
		}
	}
}

// CaughtUp waits until the state contains every write of earlier leaders.
func (r reader) CaughtUp(ctx context.Context) error { return apiErrorOf(r.server.CaughtUp(ctx)) }

// Consistent waits until the state contains every acknowledged write.
func (r reader) Consistent(ctx context.Context) error { return apiErrorOf(r.server.Consistent(ctx)) }
