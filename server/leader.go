package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// lead follows leadership until the server stops, or its state machine does. Raft's channel may leave out a
// change that the next one undid, so every value begins the term anew.
func (s *Server) lead() {
	defer close(s.stopped)
	endTerm := func() {}
	defer func() { endTerm() }()
	for {
		select {
		case <-s.stop:
			return
		case <-s.fsm.Stopped():
			s.fail(fmt.Errorf("%w: %w", shims.ErrRejected, s.fsm.Err()))
			endTerm()
			endTerm = func() {}
			if err := s.release(); err != nil {
				s.config.Logger.Error("leaving raft", "error", err)
			}
			return
		case leads := <-s.raft.LeaderCh():
			endTerm()
			endTerm = func() {}
			if leads {
				endTerm = s.beginTerm()
			}
		case <-s.restored:
			if s.scheduler.Load() != nil {
				endTerm()
				endTerm = s.beginTerm()
			}
		}
	}
}

// beginTerm starts what only a leader runs. The function it returns ends that and
// waits for it; nothing of the term begins a write afterwards.
func (s *Server) beginTerm() (end func()) {
	store := s.fsm.Store()
	s.enableDrainer(true, store.Reader())
	sched, err := s.newScheduler(store)
	if err != nil {
		s.config.Logger.Error("the scheduler does not run", "error", err)
		return func() { s.enableDrainer(false, nil) }
	}
	s.scheduler.Store(sched)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { sched.Run(ctx) })
	if s.config.WhileLeading != nil {
		running.Go(func() { s.config.WhileLeading(ctx) })
	}
	return func() {
		s.enableDrainer(false, nil)
		s.scheduler.Store(nil)
		cancel()
		running.Wait()
	}
}

func (s *Server) enableDrainer(enabled bool, state drainer.StateReader) {
	if err := s.drainer.SetEnabled(enabled, state); err != nil {
		s.config.Logger.Error("the node drainer does not run", "error", err)
	}
}

// newScheduler builds the scheduler of one term.
func (s *Server) newScheduler(store *statestore.Store) (*scheduler.Scheduler, error) {
	config := s.config.Scheduler
	config.Logger = s.config.Logger
	config.Snapshot = func() scheduler.View { return store.Snapshot() }
	config.Applier = shims.NewSchedulerApplier(s.own)
	return scheduler.New(config)
}
