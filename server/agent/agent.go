package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/datadir"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/outlook"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Agent is one process of a cluster: a server with its sockets and its disk. Build
// it with [New] and end it with [Agent.Stop]. All methods are safe for concurrent
// use.
type Agent struct {
	config  Config
	started time.Time

	disk       *datadir.Dir // or nil: in memory
	port       *port
	server     *server.Server
	heartbeats *heartbeats
	membership *membership
	versions   *versions
	digests    *digests
	outlook    *outlook.Outlook
	leaders    *leaders
	contacts   *contacts
	sessions   *sessions
	processes  *processes
	transport  *http.Transport
	// listener accepts connections of clients. clientHTTP serves clients, peerHTTP serves peers.
	listener             net.Listener
	clientHTTP, peerHTTP *http.Server
	conns                gates
	// restoring is held while a saved state is read and restored.
	restoring sync.Mutex

	// life ends when Stop ends blocking queries. requests is the base context of all requests: it
	// ends when Stop no longer waits for them.
	life, requests             context.Context
	cancelLife, cancelRequests context.CancelFunc
	// running counts the agent's own goroutines.
	running sync.WaitGroup
	stop    func() error // calls close once
}

// New starts an agent. It returns when the agent's sockets listen. The server may then have no
// cluster or no leader yet: see [Agent.Ready].
func New(config Config) (*Agent, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	config.warn()
	a := &Agent{config: config, started: time.Now(), leaders: newLeaders()}
	a.life, a.cancelLife = context.WithCancel(context.Background())
	a.requests, a.cancelRequests = context.WithCancel(context.Background())
	a.stop = sync.OnceValue(a.close)
	a.sessions, a.processes = newSessions(a), newProcesses(a)
	if err := a.start(); err != nil {
		return nil, fmt.Errorf("agent: %w", errors.Join(err, a.release()))
	}
	a.running.Go(a.membership.run)
	return a, nil
}

// start starts the parts of the agent in the order of their dependencies. After an error, release
// stops the parts that were started.
func (a *Agent) start() (err error) {
	c := &a.config
	if c.DataDir != "" {
		if a.disk, err = datadir.Open(c.DataDir, datadir.Options{Name: c.Name, Logger: c.Logger}); err != nil {
			return err
		}
		c.Name = a.disk.Name()
	}
	if c.Name == "" {
		c.Name = uuid.NewString()
	}
	if a.listener, err = net.Listen("tcp", c.HTTPAddr); err != nil {
		return fmt.Errorf("listening for HTTP: %w", err)
	}
	a.conns = newGates(c)
	a.listener = a.conns.http.Listen(a.listener)
	if a.port, err = newPort(c, &a.conns); err != nil {
		return err
	}
	a.transport = newTransport(a.port)
	a.membership, a.versions, a.digests = newMembership(a), newVersions(a), newDigests(a)
	a.outlook = outlook.New(func() *statestore.Store { return a.server.Store() }, a.config.Drainer)
	if err := a.membership.createID(); err != nil {
		return err
	}
	if err := a.startServer(); err != nil {
		return err
	}
	return a.startHTTP()
}

// startServer starts the server with the disk and the port.
func (a *Agent) startServer() (err error) {
	c := &a.config
	a.heartbeats = newHeartbeats(c.Heartbeats, c.Logger.Named("heartbeats"))
	settings := server.Config{
		ID:           raft.ServerID(c.Name),
		Voters:       c.Voters,
		Logger:       c.Logger,
		Raft:         c.Raft,
		Transport:    newRaftTransport(a.port, c.Logger.Named("raft-net")),
		Drainer:      c.Drainer,
		Scheduler:    c.Scheduler,
		Collect:      c.Collect,
		OnApply:      a.applied,
		WhileLeading: a.lead,
		Controllers:  controllers{a},
	}
	if c.BootstrapExpect == 1 {
		settings.Voters = []raft.Server{{ID: settings.ID, Address: settings.Transport.LocalAddr()}}
	}
	if a.disk != nil {
		settings.Log, settings.Stable, settings.Snapshots = a.disk.Log(), a.disk.Stable(), a.disk.Snapshots()
	}
	a.observeServer(&settings)
	if a.server, err = server.New(settings); err != nil {
		return err
	}
	if err := a.checkPeers(); err != nil {
		return err
	}
	a.contacts = newContacts(settings.ID)
	a.running.Go(func() { a.leaders.follow(a.life, a.server.Raft()) })
	a.running.Go(func() { a.contacts.follow(a.life, a.server.Raft()) })
	a.heartbeats.server = a.server
	close(a.heartbeats.ready)
	a.port.serve()
	return nil
}

// checkPeers returns an error if the port for other servers is closed and the data directory is that
// of a cluster with other servers.
func (a *Agent) checkPeers() error {
	if a.port.listener != nil {
		return nil
	}
	members := a.peers().configuration().Servers
	for _, s := range members {
		if string(s.ID) != a.Name() {
			return fmt.Errorf("%w: the data directory is of a cluster with server %s at %s, but this server has neither certificates for servers nor a peer secret",
				ErrPeerAccess, s.ID, s.Address)
		}
	}
	if len(members) == 0 && a.config.BootstrapExpect == 0 && a.config.Voters == nil {
		a.config.Logger.Warn("this server is in no cluster and bootstraps none, and no server can reach it: it has neither certificates for servers nor a peer secret")
	}
	return nil
}

// lead runs the heartbeat timers and the version checks of one term as leader.
func (a *Agent) lead(ctx context.Context) {
	select {
	case <-a.heartbeats.ready: // the server is built
	case <-ctx.Done():
		return
	}
	var leading sync.WaitGroup
	leading.Go(func() { a.heartbeats.lead(ctx) })
	leading.Go(func() { a.versions.lead(ctx) })
	leading.Go(func() { a.digests.lead(ctx) })
	leading.Go(func() { a.outlook.Lead(ctx) })
	leading.Wait()
}

// applied handles an applied entry. Raft's FSM goroutine calls it.
func (a *Agent) applied(entry shims.Applied) {
	a.heartbeats.applied(entry)
	a.processes.applied(entry)
	a.digests.applied(entry)
	if a.config.OnApply != nil {
		a.config.OnApply(entry)
	}
}

// startHTTP serves clients and peers.
func (a *Agent) startHTTP() error {
	a.observeRequests(&a.config.API)
	api, err := httpapi.NewHandler(a.Backend(), a.config.API)
	if err != nil {
		return err
	}
	a.setMetricsSources(api)
	logger := a.config.Logger.Named("http").StandardLogger(nil)
	serve := func(handler http.Handler, at net.Listener) *http.Server {
		s := &http.Server{
			Handler:           a.cancelBlockingOnStop(handler),
			ErrorLog:          logger,
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			BaseContext:       func(net.Listener) context.Context { return a.requests },
			ConnState:         connlimit.Observe,
		}
		a.running.Go(func() {
			if err := s.Serve(at); !errors.Is(err, http.ErrServerClosed) {
				a.config.Logger.Error("the HTTP server has stopped", "address", at.Addr(), "error", err)
			}
		})
		return s
	}
	if a.config.HTTPTLS != nil {
		a.listener = tls.NewListener(a.listener, a.config.HTTPTLS)
	}
	a.clientHTTP = serve(a.config.Around(api), a.listener)
	a.peerHTTP = serve(newPeerHandler(a, api.Forwarded()), a.port.http)
	return nil
}

// cancelBlockingOnStop cancels blocking queries, event streams and plans of drains when the agent stops. Stop waits
// for other requests: the client of a cancelled write could not detect whether the write was executed.
func (a *Agent) cancelBlockingOnStop(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isBlocking(r) || r.URL.Path == httpapi.EventStreamPath || r.URL.Path == httpapi.DrainPlanPath {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(a.life, cancel)()
			r = r.WithContext(ctx)
		}
		handler.ServeHTTP(w, r)
	})
}

// Time limits of HTTP connections, and of requests to peers.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	requestTimeout = 5 * time.Second
)

// Backend returns the backend of the API.
func (a *Agent) Backend() httpapi.Backend {
	return httpapi.Backend{
		Reader: reader{a.server, a.versions},
		Writer: writer{Requests: a.server.Requests(), server: a.server, heartbeats: a.heartbeats},
		Peers:  a.peers(),
		Drains: outlook.Explainer{Explainer: a.server.Drainer(), Outlook: a.outlook},
		Access: a.config.Access,

		Snapshots: snapshots{a},
		Planner:   planner{a.server, a.config.Drainer},
		Nodes:     a.sessions,

		Controllers: a.server,
	}
}

func (a *Agent) peers() peers { return peers{a} }

// Server returns the server that the agent runs.
func (a *Agent) Server() *server.Server { return a.server }

// Failed returns a channel that is closed when the server meets a raft entry or a snapshot that it
// must not apply, as after a downgrade, and when another server leads without the state that this one
// was restoring. The server leaves raft. Stop the agent: Err names the remedy.
func (a *Agent) Failed() <-chan struct{} { return a.server.Failed() }

// Err returns the reason for which the server has failed, or nil. The text names the remedy.
func (a *Agent) Err() error { return a.server.Err() }

// Name returns the server's name among its peers.
func (a *Agent) Name() string { return a.config.Name }

// HTTPAddr returns the "host:port" at which the agent serves the API.
func (a *Agent) HTTPAddr() string { return a.listener.Addr().String() }

// ServerAddr returns the "host:port" at which peers reach the server. Without [Config].ServerTLS and
// [Config].PeerSecret the server does not listen there.
func (a *Agent) ServerAddr() string { return a.port.advertise.String() }

// Ready waits until the server is in a cluster that has a leader. It returns an error when the
// context ends, the agent stops or the server fails.
func (a *Agent) Ready(ctx context.Context) error {
	for {
		if a.peers().awaitLeader(ctx) != "" && a.membership.member() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for a cluster with a leader: %w", context.Cause(ctx))
		case <-a.life.Done():
			return errors.New("waiting for a cluster with a leader: the agent was stopped")
		case <-a.Failed():
			return fmt.Errorf("waiting for a cluster with a leader: %w", a.Err())
		case <-time.After(readyInterval):
		}
	}
}

// readyInterval is the time between two checks of Ready.
const readyInterval = 10 * time.Millisecond

// Leave removes the server from its cluster. A leader transfers leadership first. The agent then
// runs without a leader until it is stopped. For the only server of a cluster, Leave does nothing.
func (a *Agent) Leave(ctx context.Context) error { return a.membership.leave(ctx) }

// Stop ends the agent and waits for its goroutines. It takes a snapshot if there is a data directory,
// leaves the cluster if [Config].LeaveOnStop is set, cancels blocking queries, waits up to
// [Config].StopTimeout for other requests, cancels the rest, and shuts the server down. A second
// call waits for the first and returns its result.
func (a *Agent) Stop() error { return a.stop() }

func (a *Agent) close() error {
	var errs []error
	a.lastSnapshot()
	if a.config.LeaveOnStop {
		ctx, cancel := context.WithTimeout(context.Background(), a.config.StopTimeout)
		errs = append(errs, a.Leave(ctx))
		cancel()
	}
	return errors.Join(append(errs, a.release())...)
}

// lastSnapshot takes a snapshot, so that the next start replays few entries. The server answers
// requests and leads meanwhile. Without the snapshot the next start takes longer, and loses nothing.
func (a *Agent) lastSnapshot() {
	if a.disk == nil || a.server.Err() != nil {
		return
	}
	if a.digests.differs() {
		a.config.Logger.Warn("no snapshot before the shutdown: the state differs from that of the other servers")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.config.SnapshotTimeout)
	defer cancel()
	logger, began := a.config.Logger, time.Now()
	switch err := a.server.Snapshots().Take(ctx); {
	case err == nil:
		logger.Info("took a snapshot before the shutdown", "index", a.server.Store().Snapshot().Index(), "took", time.Since(began))
	case errors.Is(err, server.ErrNothingNew):
		logger.Info("no snapshot before the shutdown: the newest one holds the whole state")
	case errors.Is(err, context.DeadlineExceeded):
		logger.Warn("no snapshot before the shutdown: it takes too long, and the next start replays the log", "timeout", a.config.SnapshotTimeout)
	default:
		logger.Warn("no snapshot before the shutdown, and the next start replays the log", "error", err)
	}
}

// release stops the parts that start has started, in reverse order.
func (a *Agent) release() error {
	a.cancelLife()
	a.sessions.end()
	a.conns.stop()
	ctx, cancel := context.WithTimeout(context.Background(), a.config.StopTimeout)
	defer cancel()
	var errs []error
	for _, s := range []*http.Server{a.clientHTTP, a.peerHTTP} {
		if s == nil {
			continue
		}
		if err := s.Shutdown(ctx); err != nil {
			a.cancelRequests()
			errs = append(errs, fmt.Errorf("waiting for requests: %w", err), s.Close())
		}
	}
	a.cancelRequests()
	if a.clientHTTP == nil && a.listener != nil {
		errs = append(errs, a.listener.Close())
	}
	if a.server != nil {
		errs = append(errs, a.server.Shutdown())
	}
	if a.transport != nil {
		a.transport.CloseIdleConnections()
	}
	if a.port != nil {
		errs = append(errs, a.port.close())
	}
	a.sessions.running.Wait()
	a.running.Wait()
	if a.disk != nil {
		errs = append(errs, a.disk.Close())
	}
	return errors.Join(errs...)
}
