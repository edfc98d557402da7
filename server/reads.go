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

// Consistent returns when the state shows every write that was acknowledged
// before the call, by whichever leader. It works on the leader; elsewhere, and if
// leadership is lost meanwhile, the error wraps [shims.ErrRejected] and nothing
// is known of the state.
//
// It writes nothing: the leader asks the others whether it still leads. Calls at
// the same time share the question.
func (s *Server) Consistent(ctx context.Context) error {
	for {
		index, err := s.reads.ask(ctx)
		if err != nil {
			return fmt.Errorf("reading the newest state: %w", err)
		}
		err = s.awaitEntry(ctx, index)
		if !errors.Is(err, statestore.ErrAbandoned) {
			return err
		}
	}
}

// CaughtUp returns when the state shows every write that earlier leaders have
// acknowledged: what is decided from the state before it misses some. It costs
// one barrier in each term, and the errors are those of [Server.Consistent].
func (s *Server) CaughtUp(ctx context.Context) error {
	if term := s.raft.CurrentTerm(); s.Leads() && s.reads.caughtUp.Load() == term {
		return nil
	}
	_, err := s.reads.ask(ctx)
	return err
}

// awaitEntry waits until the state shows the entry of that index.
func (s *Server) awaitEntry(ctx context.Context, index uint64) error {
	const before, there = 1, 2
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.working, cancel)()
	_, err := s.Store().Blocking(ctx, before, func(state *statestore.Snapshot) (uint64, error) {
		if state.Index() >= index {
			return there, nil
		}
		return before, nil
	})
	if err != nil && s.working.Err() != nil {
		return context.Cause(s.working)
	}
	return err
}

// readIndex finds out, for all who ask at the same time at once, up to where the
// state has to be. It owns one goroutine while somebody asks.
type readIndex struct {
	// confirm is asked for each round; never nil.
	confirm func() (uint64, error)
	// caughtUp is the term whose barrier the state shows, or zero.
	caughtUp atomic.Uint64

	mu      sync.Mutex
	next    *readRound     // the round that has not begun, or nil; guarded by mu
	running bool           // guarded by mu
	closed  bool           // guarded by mu
	rounds  sync.WaitGroup // added to under mu while closed is false
}

// readRound is one question and its answer. A round that has begun is not joined
// any more: its answer may be older than the new question.
type readRound struct {
	done  chan struct{} // closed when index and err are set
	index uint64
	err   error
}

// ask returns the index of an entry that the state has to show.
func (r *readIndex) ask(ctx context.Context) (uint64, error) {
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

// run answers rounds until nobody asks.
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

// close refuses what is asked from now on, and waits for what was asked before.
func (r *readIndex) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.rounds.Wait()
}

// confirmRead returns the index of the newest command that is surely committed
// before the call, once the others have said that this server still leads.
//
// What the server has committed itself says nothing of earlier terms until an
// entry of its own term is: hence the barrier. The term is looked at again in the
// end, because the server may have lost leadership and won it back meanwhile, and
// the index is then that of a state before the barrier of the new term.
func (s *Server) confirmRead() (uint64, error) {
	for {
		term := s.raft.CurrentTerm()
		if !s.Leads() {
			return 0, fmt.Errorf("%w: %w", shims.ErrRejected, raft.ErrNotLeader)
		}
		if s.reads.caughtUp.Load() != term {
			if err := s.barrier(); err != nil {
				return 0, err
			}
		}
		committed := s.raft.CommitIndex()
		if err := s.raft.VerifyLeader().Error(); err != nil {
			return 0, fmt.Errorf("%w: %w", shims.ErrRejected, err)
		}
		if s.raft.CurrentTerm() == term {
			s.reads.caughtUp.Store(term)
			return s.lastCommand(committed)
		}
	}
}

// barrier returns when the state shows everything before it.
func (s *Server) barrier() error {
	answers := make(chan shims.Answer, 1)
	if !s.own.Barrier(func(a shims.Answer) { answers <- a }) {
		return fmt.Errorf("%w: %w", shims.ErrRejected, shims.ErrBusy)
	}
	if a := <-answers; a.Outcome != raftwrite.Applied {
		return fmt.Errorf("%w: %w", shims.ErrRejected, a.Err)
	}
	return nil
}

// lastCommand returns the index of the newest entry up to one that the state does
// not show yet, or zero: raft's own entries never reach the state, so it may be
// that the state will not come up to the committed index for long. What is not in
// the log any more is in a snapshot, which was made from the state or put in its
// place.
func (s *Server) lastCommand(committed uint64) (uint64, error) {
	for index := committed; index > s.Store().Snapshot().Index(); index-- {
		var entry raft.Log
		err := s.config.Log.GetLog(index, &entry)
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
