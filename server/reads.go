package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Consistent returns when the state shows every write that any leader acknowledged before
// the call. It works on the leader. On another server, and if leadership is lost during
// the call, the error wraps [shims.ErrRejected] and the state may be old.
//
// It writes nothing: the other servers confirm that the leader still leads. Calls at
// the same time share the confirmation.
func (s *Server) Consistent(ctx context.Context) error {
	for {
		index, err := s.reads.request(ctx)
		if err != nil {
			return fmt.Errorf("reading the newest state: %w", err)
		}
		err = s.reads.awaitEntry(ctx, index)
		if !errors.Is(err, statestore.ErrAbandoned) {
			return err
		}
	}
}

// CaughtUp returns when the state shows every write that earlier leaders acknowledged. A
// decision from an older state misses some of them. It costs one barrier in each term,
// and the errors are those of [Server.Consistent].
func (s *Server) CaughtUp(ctx context.Context) error {
	if term := s.raft.CurrentTerm(); s.Leads() && s.reads.caughtUp.Load() == term {
		return nil
	}
	_, err := s.reads.request(ctx)
	return err
}
