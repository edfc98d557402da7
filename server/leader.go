package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// lead follows leadership until the server or its state machine stops. Raft's channel may
// leave out a change that the next one undid, so every value begins a new term.
func (s *Server) lead(changes <-chan bool) {
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
		case leads := <-changes:
			endTerm()
			endTerm = func() {}
			if leads {
				endTerm = s.leader.begin()
			}
		case <-s.restored:
			if s.leader.scheduler.Load() != nil {
				endTerm()
				endTerm = s.leader.begin()
			}
		}
	}
}

// leader runs what only a leader runs: the drainer, the scheduler and
// [Config].WhileLeading.
type leader struct {
	config *Config
	fsm    *shims.FSM
	own    *shims.Proposer
	// consistent returns when the state is the newest one, and the server certainly leads.
	consistent func(context.Context) error
	drainer    *drainer.NodeDrainer
	// scheduler is that of the present term, or nil.
	scheduler atomic.Pointer[scheduler.Scheduler]
	// held is what the collector has found, or nil.
	held atomic.Pointer[collect.Held]
	// failing are the calls of controllers that fail, or nil.
	failing atomic.Pointer[[]volumes.FailedCall]
}

// begin begins a term. The function that it returns ends the term and waits: nothing of the
// term begins a write afterwards.
func (l *leader) begin() (end func()) {
	store := l.fsm.Store()
	l.enableDrainer(true, store.Reader())
	sched, err := l.newScheduler(store)
	if err != nil {
		l.config.Logger.Error("the scheduler does not run", "error", err)
		return func() { l.enableDrainer(false, nil) }
	}
	l.scheduler.Store(sched)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { sched.Run(ctx) })
	running.Go(func() { l.collect(ctx, store) })
	running.Go(func() { l.release(ctx, store) })
	if l.config.Controllers != nil {
		running.Go(func() { l.callControllers(ctx, store) })
	}
	if l.config.WhileLeading != nil {
		running.Go(func() { l.config.WhileLeading(ctx) })
	}
	return func() {
		l.enableDrainer(false, nil)
		l.scheduler.Store(nil)
		cancel()
		running.Wait()
	}
}

func (l *leader) enableDrainer(enabled bool, state drainer.StateReader) {
	if err := l.drainer.SetEnabled(enabled, state); err != nil {
		l.config.Logger.Error("the node drainer does not run", "error", err)
	}
}

// newScheduler builds the scheduler of one term.
func (l *leader) newScheduler(store *statestore.Store) (*scheduler.Scheduler, error) {
	config := l.config.Scheduler
	config.Logger = l.config.Logger
	config.Snapshot = func() scheduler.View { return store.Snapshot().WorkView() }
	config.Applier = shims.NewSchedulerApplier(l.own)
	return scheduler.New(config)
}

// wake wakes the scheduler, if one runs: the FSM has applied an entry.
func (l *leader) wake() {
	if sched := l.scheduler.Load(); sched != nil {
		sched.Wake()
	}
}
