package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// readIndex finds the index that the state must show before a read. One round answers all
// callers of the same time. It owns one goroutine while a caller waits.
type readIndex struct {
	raft *raft.Raft
	log  raft.LogStore
	fsm  *shims.FSM
	own  *shims.Proposer
	// working ends when the state machine stops.
	working context.Context
	// caughtUp is the term whose barrier the state shows, or zero.
	caughtUp atomic.Uint64

	mu      sync.Mutex
	next    *readRound     // the round that has not begun, or nil; guarded by mu
	running bool           // guarded by mu
	closed  bool           // guarded by mu
	rounds  sync.WaitGroup // added to under mu while closed is false
}

// readRound is one confirmation. Callers do not join a round that has begun: its answer may be
// older than their request.
type readRound struct {
	done  chan struct{} // closed when index and err are set
	index uint64
	err   error
}

// request returns the index of an entry that the state must show.
func (r *readIndex) request(ctx context.Context) (uint64, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return 0, fmt.Errorf("%w: %w", shims.ErrRejected, shims.ErrClosed)
	}
	if r.next == nil {
		r.next = &readRound{done: make(chan struct{})}
	}
	round := r.next
	if !r.running {
		r.running = true
		r.rounds.Go(r.run)
	}
	r.mu.Unlock()

	select {
	case <-round.done:
		return round.index, round.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// run answers rounds until no caller waits.
func (r *readIndex) run() {
	for {
		r.mu.Lock()
		round := r.next
		r.next = nil
		r.running = round != nil
		r.mu.Unlock()
		if round == nil {
			return
		}
		round.index, round.err = r.confirm()
		close(round.done)
	}
}

// close refuses later requests, and waits for the answers to earlier ones.
func (r *readIndex) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.rounds.Wait()
}

// confirm returns the index of the newest command that was certainly committed before the
// call, once the other servers have confirmed that this server still leads.
//
// The server's commit index may miss entries of earlier terms until an entry of its own
// term is committed: hence the barrier. The server may lose leadership and win it again
// during the round. The index is then that of a state before the barrier of the new term,
// so confirm compares the terms at the end.
func (r *readIndex) confirm() (uint64, error) {
	for {
		term := r.raft.CurrentTerm()
		if r.raft.State() != raft.Leader {
			return 0, fmt.Errorf("%w: %w", shims.ErrRejected, raft.ErrNotLeader)
		}
		if r.caughtUp.Load() != term {
			if err := r.barrier(); err != nil {
				return 0, err
			}
		}
		committed := r.raft.CommitIndex()
		if err := r.raft.VerifyLeader().Error(); err != nil {
			return 0, fmt.Errorf("%w: %w", shims.ErrRejected, err)
		}
		if r.raft.CurrentTerm() == term {
			r.caughtUp.Store(term)
			return r.lastCommand(committed)
		}
	}
}

// barrier returns when the state shows every entry before it.
func (r *readIndex) barrier() error {
	answers := make(chan shims.Answer, 1)
	if !r.own.Barrier(func(a shims.Answer) { answers <- a }) {
		return fmt.Errorf("%w: %w", shims.ErrRejected, shims.ErrBusy)
	}
	if a := <-answers; a.Outcome != raftwrite.Applied {
		return fmt.Errorf("%w: %w", shims.ErrRejected, a.Err)
	}
	return nil
}

// lastCommand returns the index of the newest command, up to the committed index, that the
// state does not show yet, or zero. Raft's own entries never reach the state, so the state
// may stay below the committed index for a long time. An entry that is no longer in the
// log is in a snapshot, which was written from the state or has replaced it.
func (r *readIndex) lastCommand(committed uint64) (uint64, error) {
	for index := committed; index > r.fsm.Store().Snapshot().Index(); index-- {
		var entry raft.Log
		err := r.log.GetLog(index, &entry)
		switch {
		case errors.Is(err, raft.ErrLogNotFound):
			return 0, nil
		case err != nil:
			return 0, fmt.Errorf("%w: reading raft's log: %w", shims.ErrRejected, err)
		case entry.Type == raft.LogCommand:
			return index, nil
		}
	}
	return 0, nil
}

// awaitEntry waits until the state shows the entry of that index.
func (r *readIndex) awaitEntry(ctx context.Context, index uint64) error {
	const before, there = 1, 2
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.working, cancel)()
	_, err := r.fsm.Store().Blocking(ctx, before, func(state *statestore.Snapshot) (uint64, error) {
		if state.Index() >= index {
			return there, nil
		}
		return before, nil
	})
	if err != nil && r.working.Err() != nil {
		return context.Cause(r.working)
	}
	return err
}
