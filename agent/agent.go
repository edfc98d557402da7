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

	"github.com/seed-f9cf0b39/nodedrain/agent/datadir"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
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
	leaders    *leaders
	transport  *http.Transport
	// listener is where clients connect, outer serves them and inner the peers.
	listener     net.Listener
	outer, inner *http.Server
	unused       newConns // connections of both

	// life ends when Stop begins to end blocking queries, requests when Stop no longer waits for
	// requests.
	life, requests context.Context
	end, cut       context.CancelFunc
	// running counts the agent's own goroutines.
	running sync.WaitGroup
	stop    func() error // once
}

// New starts an agent. It returns when its sockets listen; the server is in a
// cluster, and that has a leader, some time later: see [Agent.Ready].
func New(config Config) (*Agent, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	config.warn()
	a := &Agent{config: config, started: time.Now(), leaders: newLeaders()}
	a.life, a.end = context.WithCancel(context.Background())
	a.requests, a.cut = context.WithCancel(context.Background())
	a.stop = sync.OnceValue(a.close)
	if err := a.start(); err != nil {
		return nil, fmt.Errorf("agent: %w", errors.Join(err, a.release()))
	}
	a.running.Go(a.membership.run)
	return a, nil
}

// start builds the parts of the agent, from the disk upwards.
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
	if a.port, err = newPort(c); err != nil {
		return err
	}
	a.transport = newTransport(a.port)
	a.membership, a.versions = newMembership(a), newVersions(a)
	if err := a.membership.begin(); err != nil {
		return err
	}
	if err := a.startServer(); err != nil {
		return err
	}
	return a.startHTTP()
}

// startServer starts the server over the disk and the port.
func (a *Agent) startServer() (err error) {
	c := &a.config
	a.heartbeats = newHeartbeats(c.Heartbeats, c.Logger.Named("heartbeats"))
	settings := server.Config{
		ID:     raft.ServerID(c.Name),
		Voters: c.Voters,
		Logger: c.Logger,
		Raft:   c.Raft,
		Transport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: stream{lane: a.port.raft, port: a.port}, MaxPool: 3, Timeout: 10 * time.Second,
			Logger: c.Logger.Named("raft-net"), MsgpackUseNewTimeFormat: true,
		}),
		Drainer:      c.Drainer,
		Scheduler:    c.Scheduler,
		OnApply:      a.applied,
		WhileLeading: a.lead,
	}
	if c.BootstrapExpect == 1 {
		settings.Voters = []raft.Server{{ID: settings.ID, Address: settings.Transport.LocalAddr()}}
	}
	if a.disk != nil {
		settings.Log, settings.Stable, settings.Snapshots = a.disk.Log(), a.disk.Stable(), a.disk.Snapshots()
	}
	a.countServer(&settings)
	if a.server, err = server.New(settings); err != nil {
		return err
	}
	a.running.Go(func() { a.leaders.follow(a.life, a.server.Raft()) })
	a.heartbeats.server = a.server
	close(a.heartbeats.ready)
	a.port.serve()
	return nil
}

// lead runs the agent's own work of a term.
func (a *Agent) lead(ctx context.Context) {
	select {
	case <-a.heartbeats.ready: // the server is built
	case <-ctx.Done():
		return
	}
	var leading sync.WaitGroup
	leading.Go(func() { a.heartbeats.lead(ctx) })
	leading.Go(func() { a.versions.lead(ctx) })
	leading.Wait()
}

// applied is called after each entry, by raft's goroutine for the state.
func (a *Agent) applied(entry shims.Applied) {
	a.heartbeats.applied(entry)
	if a.config.OnApply != nil {
		a.config.OnApply(entry)
	}
}

// startHTTP serves clients and peers.
func (a *Agent) startHTTP() error {
	a.countRequests(&a.config.API)
	api, err := httpapi.NewHandler(a.Backend(), a.config.API)
	if err != nil {
		return err
	}
	a.watch(api)
	logger := a.config.Logger.Named("http").StandardLogger(nil)
	serve := func(handler http.Handler, at net.Listener) *http.Server {
		s := &http.Server{
			Handler:           a.untilStop(handler),
			ErrorLog:          logger,
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			BaseContext:       func(net.Listener) context.Context { return a.requests },
			ConnState:         a.unused.observe,
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
	a.outer = serve(a.config.Around(api), a.listener)
	a.inner = serve(newInner(a, api.Forwarded()), a.port.http)
	return nil
}

// untilStop ends blocking queries when the agent stops. Stop waits for other requests: a write that
// is cut off may have been made.
func (a *Agent) untilStop(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if waits(r) {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(a.life, cancel)()
			r = r.WithContext(ctx)
		}
		handler.ServeHTTP(w, r)
	})
}

// Time limits of an HTTP connection, and of a peer's answer.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	askTimeout    = 5 * time.Second
)

// Backend is the backend of the API.
func (a *Agent) Backend() httpapi.Backend {
	return httpapi.Backend{
		Reader: reader{a.server},
		Writer: writer{server: a.server, heartbeats: a.heartbeats},
		Peers:  a.peers(),
		Drains: a.server.Drainer(),
		Access: a.config.Access,
	}
}

func (a *Agent) peers() peers { return peers{a} }

// Server returns the server that the agent runs.
func (a *Agent) Server() *server.Server { return a.server }

// Failed returns a channel that is closed when the server meets a raft entry or a snapshot that it
// must not apply, as after a downgrade. The server leaves raft, and its data is intact: stop the
// agent, and start a newer build.
func (a *Agent) Failed() <-chan struct{} { return a.server.Failed() }

// Err is why the server has failed, or nil. It names the remedy.
func (a *Agent) Err() error { return a.server.Err() }

// Name is the server's name among its peers.
func (a *Agent) Name() string { return a.config.Name }

// HTTPAddr is the "host:port" at which the API is served.
func (a *Agent) HTTPAddr() string { return a.listener.Addr().String() }

// ServerAddr is the "host:port" by which peers know the server.
func (a *Agent) ServerAddr() string { return a.port.advertise.String() }

// Ready returns when the server is in a cluster that has a leader.
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

// readyInterval is how often Ready looks.
const readyInterval = 10 * time.Millisecond

// Leave takes the server out of its cluster, after handing over leadership if it
// has it. The agent goes on until it is stopped, and knows no leader any more. A
// server without others has nothing to leave.
func (a *Agent) Leave(ctx context.Context) error { return a.membership.leave(ctx) }

// Stop ends the agent and waits for its goroutines. It leaves the cluster if that is configured,
// ends blocking queries, waits up to StopTimeout for other requests, cuts off the rest, and shuts
// the server down. A second call waits for the first and returns the same.
func (a *Agent) Stop() error { return a.stop() }

func (a *Agent) close() error {
	var errs []error
	if a.config.LeaveOnStop {
		ctx, cancel := context.WithTimeout(context.Background(), a.config.StopTimeout)
		errs = append(errs, a.Leave(ctx))
		cancel()
	}
	return errors.Join(append(errs, a.release())...)
}

// release releases the parts that start built, from the top down.
func (a *Agent) release() error {
	a.end()
	a.unused.close()
	ctx, cancel := context.WithTimeout(context.Background(), a.config.StopTimeout)
	defer cancel()
	var errs []error
	for _, s := range []*http.Server{a.outer, a.inner} {
		if s == nil {
			continue
		}
		if err := s.Shutdown(ctx); err != nil {
			a.cut()
			errs = append(errs, fmt.Errorf("waiting for requests: %w", err), s.Close())
		}
	}
	a.cut()
	if a.outer == nil && a.listener != nil {
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
	a.running.Wait()
	if a.disk != nil {
		errs = append(errs, a.disk.Close())
	}
	return errors.Join(errs...)
}
