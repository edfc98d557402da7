package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Server is one server of a cluster. Build it with [New] and end it with
// [Server.Shutdown]. All methods are safe for concurrent use.
type Server struct {
	config Config
	raft   *raft.Raft
	fsm    *shims.FSM
	// requests proposes the requests of callers, own the leader's own writes: neither fills the
	// other's queue.
	requests, own *shims.Proposer
	leader        leader
	reads         readIndex
	snapshots     Snapshots

	// restored has capacity 1 and is sent to, without blocking, when a snapshot
	// has replaced the state.
	restored chan struct{}
	// stop is closed when Shutdown begins, stopped when lead has ended.
	stop, stopped chan struct{}
	// working ends when the state machine stops.
	working context.Context
	fail    context.CancelCauseFunc
	// shutdown and release are done once.
	shutdown, release func() error
}

// New starts a server. If the cluster is new it elects a leader when most of its
// voters run.
func New(config Config) (*Server, error) {
	s, err := open(config)
	if err == nil {
		go s.lead(s.raft.LeaderCh())
	}
	return s, err
}

// open starts a server that does not follow leadership yet.
func open(config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		config:   config,
		restored: make(chan struct{}, 1),
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	s.working, s.fail = context.WithCancelCause(context.Background())
	s.shutdown, s.release = sync.OnceValue(s.close), sync.OnceValue(s.releaseAll)
	s.fsm = shims.NewFSM(shims.FSMConfig{Logger: config.Logger, OnApply: s.applied, OnRestore: s.replaced})
	if err := s.start(); err != nil {
		return nil, fmt.Errorf("server %s: %w", config.ID, errors.Join(err, s.release()))
	}
	return s, nil
}

// start builds the parts of the server, from the log upwards.
func (s *Server) start() (err error) {
	c := &s.config
	if c.Voters != nil {
		known, err := raft.HasExistingState(c.Log, c.Stable, c.Snapshots)
		if err != nil {
			return fmt.Errorf("reading raft's stores: %w", err)
		}
		if !known {
			voters := raft.Configuration{Servers: c.Voters}
			if err := raft.BootstrapCluster(c.Raft, c.Log, c.Stable, c.Snapshots, c.Transport, voters); err != nil {
				return fmt.Errorf("bootstrapping raft: %w", err)
			}
		}
	}
	snapshots := &s.snapshots
	snapshots.store = stoppableSnapshots{SnapshotStore: c.Snapshots, ending: make(chan struct{})}
	s.raft, err = raft.NewRaft(c.Raft, s.fsm, c.Log, c.Stable, &snapshots.store, c.Transport)
	if err != nil {
		return fmt.Errorf("starting raft: %w", cmp.Or(s.fsm.Err(), err)) // raft's error does not contain why the FSM refused the snapshot
	}
	snapshots.raft, snapshots.fsm = s.raft, s.fsm
	options := shims.Options{Logger: c.Logger, OnAnswer: c.OnAnswer}
	if s.requests, err = shims.NewProposer(s.raft, s.fsm, options); err != nil {
		return err
	}
	if s.own, err = shims.NewProposer(s.raft, s.fsm, options); err != nil {
		return err
	}
	c.Drainer.Logger = slog.New(shims.NewLogHandler(c.Logger.Named("drain")))
	c.Drainer.Raft = shims.NewDrainerApplier(s.own)
	nodeDrainer, err := drainer.NewNodeDrainer(c.Drainer)
	if err != nil {
		return err
	}
	s.reads.raft, s.reads.log, s.reads.fsm, s.reads.own, s.reads.working = s.raft, c.Log, s.fsm, s.own, s.working
	s.leader.config, s.leader.fsm, s.leader.own, s.leader.drainer = c, s.fsm, s.own, nodeDrainer
	s.leader.consistent = s.Consistent
	if _, err := collect.NewCollector(c.Collect, time.Now()); err != nil {
		return fmt.Errorf("Config.Collect: %w", err)
	}
	_, err = s.leader.newScheduler(s.fsm.Store()) // refuses a bad config before the server leads
	return err
}

// applied is called after each entry, by raft's goroutine for the FSM.
func (s *Server) applied(a shims.Applied) {
	s.leader.wake()
	if s.config.OnApply != nil {
		s.config.OnApply(a)
	}
}

// replaced is called when a snapshot has replaced the state.
func (s *Server) replaced(*statestore.Store) {
	select {
	case s.restored <- struct{}{}:
	default: // lead has not received the last one yet, and will find the newest state
	}
}

// ID returns the server's name among its peers.
func (s *Server) ID() raft.ServerID { return s.config.ID }

// Snapshots takes and restores snapshots.
func (s *Server) Snapshots() *Snapshots { return &s.snapshots }

// Raft returns the server's raft, for its members and its numbers.
func (s *Server) Raft() *raft.Raft { return s.raft }

// Leads reports whether the server leads, as far as its raft has learned. Two may report it for a
// moment; only one can write.
func (s *Server) Leads() bool { return s.raft.State() == raft.Leader }

// Store returns the server's state, which a restored snapshot replaces.
func (s *Server) Store() *statestore.Store { return s.fsm.Store() }

// Drainer returns the drainer, for [drainer.NodeDrainer.Explain] and Status. It
// is enabled while the server leads.
func (s *Server) Drainer() *drainer.NodeDrainer { return s.leader.drainer }

// Failed returns a channel that is closed after [Snapshots.Fail], and when the server meets a raft
// entry or a snapshot that it must not apply, see [shims.FSM.Stopped]. The server leaves raft soon
// after: it neither votes nor leads. Its owner calls Shutdown.
func (s *Server) Failed() <-chan struct{} { return s.fsm.Stopped() }

// Err is why the server has failed, or nil. It names the remedy.
func (s *Server) Err() error {
	if err := s.fsm.Err(); err != nil {
		return fmt.Errorf("server %s: %w", s.config.ID, err)
	}
	return nil
}

// Shutdown ends the server without handing over leadership, and waits for its
// goroutines. A request under way ends with an error. A second call waits as the
// first and returns the same.
func (s *Server) Shutdown() error { return s.shutdown() }

func (s *Server) close() error {
	close(s.stop)
	<-s.stopped
	return s.release()
}

// settleTimeout bounds the wait for raft's answers at the end. A leader without
// a quorum takes its lease to step down, half a second by default, and answers
// them then.
const settleTimeout = 10 * time.Second

// releaseAll releases the parts that start built, from the top down.
func (s *Server) releaseAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	var errs []error
	for _, p := range []*shims.Proposer{s.own, s.requests} {
		if p != nil {
			p.Close()
			errs = append(errs, p.Settle(ctx))
		}
	}
	s.reads.close() // raft still answers
	var ended raft.Future
	if s.raft != nil {
		s.snapshots.end()
		ended = s.raft.Shutdown()
	}
	errs = append(errs, closeTransport(s.config.Transport)) // or raft waits for peers that do not answer
	if ended != nil {
		errs = append(errs, ended.Error())
	}
	s.snapshots.taking.Wait()
	return errors.Join(errs...)
}

func closeTransport(t raft.Transport) error {
	if closer, ok := t.(raft.WithClose); ok {
		return closer.Close()
	}
	return nil
}
