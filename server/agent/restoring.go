package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

const (
	// restoreGrace is how long another server may lead before its entries must follow the restored
	// state.
	restoreGrace = 10 * time.Second
	// restoreWait bounds the wait of a request for the outcome of an interrupted restore. The agent
	// waits longer.
	restoreWait = 30 * time.Second
	// settleInterval is the time between two checks of raft during that wait.
	settleInterval = 50 * time.Millisecond
)

// errRestoreLost is why a server fails that alone has the restored state.
var errRestoreLost = errors.New("another server has become the leader while this one restored a saved state, and has another state: " +
	"run \"nodedrain server recover -discard\" on the data directory of this server: it describes how this server joins again as a new member; " +
	"then read the state, and restore again if it is the old one")

// replaceState makes raft replace the state, see [server.Snapshots.Restore]. If leadership is lost
// meanwhile, this server may be the only one that has the restored state, beyond the end of the next
// leader's log. Raft does not take it back: it either sends entries in vain for ever, or this server
// counts them as applied and skips them. So the server notes on its disk that it restores. It fails if
// another server leads without that state, and does not start again if it was killed.
func (s snapshots) replaceState(ctx context.Context, store *statestore.Store, v cluster.Version, scratch io.ReadWriteSeeker) (index uint64, err error) {
	a := s.agent
	if len(a.peers().configuration().Servers) < 2 {
		return a.server.Snapshots().Restore(store, v, scratch)
	}
	if a.disk != nil {
		if err := a.disk.BeginRestore(); err != nil {
			return 0, fmt.Errorf("%w: %w", httpapi.ErrUnavailable, err)
		}
	}
	index, err = a.server.Snapshots().Restore(store, v, scratch)
	if !errors.Is(err, shims.ErrUnknown) {
		return index, errors.Join(err, s.end())
	}
	settled := make(chan error, 1)
	index = store.Snapshot().Index()
	a.running.Go(func() { settled <- s.settle(index) })
	select {
	case cause := <-settled:
		if cause == nil {
			return index, nil
		}
		return 0, fmt.Errorf("%w: %w", err, cause)
	case <-ctx.Done():
	case <-time.After(restoreWait):
	}
	return 0, err
}

// settle waits until raft has committed an entry after the restored state, so that every
// leader has it. If another server leads without it, this server fails.
func (s snapshots) settle(index uint64) error {
	a := s.agent
	var other time.Time // since when another server leads
	for {
		leader := a.peers().Leader()
		switch {
		case a.server.Raft().CommitIndex() > index:
			return s.end()
		case leader == "" || leader == a.ServerAddr():
			other = time.Time{}
		case other.IsZero():
			other = time.Now()
		case time.Since(other) > restoreGrace:
			a.server.Snapshots().Fail(errRestoreLost)
		}
		select {
		case <-time.After(settleInterval):
		case <-a.Failed():
			return a.Err()
		case <-a.life.Done():
			return errors.New("the server stops")
		}
	}
}

func (s snapshots) end() error {
	if s.agent.disk == nil {
		return nil
	}
	return s.agent.disk.EndRestore()
}
