package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// GroupConfig configures a [Group].
type GroupConfig struct {
	// Servers is the number of servers. Zero is [DefaultServers].
	Servers int
	// Loopback makes the servers use TCP on the loopback interface instead of memory.
	Loopback bool
	// Server is the configuration of every server. The group sets ID, Transport, Voters and the
	// stores.
	Server Config
}

// DefaultServers is the default of [GroupConfig].Servers: it takes three to lose
// one.
const DefaultServers = 3

// Group is a new cluster of servers in one process.
type Group struct {
	mu      sync.Mutex
	servers []*Server // running servers; guarded by mu
}

// NewGroup starts the servers of a new cluster. They elect a leader by themselves.
func NewGroup(c GroupConfig) (*Group, error) {
	if c.Servers == 0 {
		c.Servers = DefaultServers
	}
	transports, err := newTransports(c.Servers, c.Loopback)
	if err != nil {
		return nil, err
	}
	voters := make([]raft.Server, c.Servers)
	for i, t := range transports {
		voters[i] = raft.Server{ID: raft.ServerID(fmt.Sprintf("server-%d", i+1)), Address: t.LocalAddr()}
	}
	g := new(Group)
	for i, t := range transports {
		config := c.Server
		config.ID, config.Transport, config.Voters = voters[i].ID, t, voters
		config.Log, config.Stable, config.Snapshots = nil, nil, nil
		s, err := New(config)
		if err != nil {
			for _, unused := range transports[i:] {
				err = errors.Join(err, closeTransport(unused))
			}
			return nil, errors.Join(err, g.Shutdown())
		}
		g.servers = append(g.servers, s)
	}
	return g, nil
}

// newTransports makes transports that reach each other.
func newTransports(n int, loopback bool) ([]raft.Transport, error) {
	transports := make([]raft.Transport, n)
	for i := range transports {
		if !loopback {
			_, transports[i] = raft.NewInmemTransport("")
			continue
		}
		t, err := raft.NewTCPTransport("127.0.0.1:0", nil, 3, 10*time.Second, io.Discard)
		if err != nil {
			for _, open := range transports[:i] {
				err = errors.Join(err, closeTransport(open))
			}
			return nil, fmt.Errorf("listening for raft: %w", err)
		}
		transports[i] = t
	}
	if !loopback {
		for _, from := range transports {
			for _, to := range transports {
				from.(raft.WithPeers).Connect(to.LocalAddr(), to)
			}
		}
	}
	return transports, nil
}

// Servers returns the servers that run.
func (g *Group) Servers() []*Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.servers)
}

// Leader returns a server that leads, as far as its raft has learned, or nil.
func (g *Group) Leader() *Server {
	for _, s := range g.Servers() {
		if s.Leads() {
			return s
		}
	}
	return nil
}

// Kill ends one server for good, without a message to the others. It closes the transport first, even
// during a write. For the other servers this is a crash.
func (g *Group) Kill(s *Server) error {
	g.remove(s)
	return errors.Join(closeTransport(s.config.Transport), s.Shutdown())
}

// Shutdown shuts all servers down and waits for them. The leader is first, while it has a quorum to
// finish its writes.
func (g *Group) Shutdown() error {
	servers := g.Servers()
	slices.SortStableFunc(servers, func(a, b *Server) int {
		switch {
		case a.Leads() == b.Leads():
			return 0
		case a.Leads():
			return -1
		}
		return 1
	})
	var errs []error
	for _, s := range servers {
		g.remove(s)
		errs = append(errs, s.Shutdown())
	}
	return errors.Join(errs...)
}

func (g *Group) remove(s *Server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.servers = slices.DeleteFunc(g.servers, func(o *Server) bool { return o == s })
}

// retryInterval is the wait before a request is repeated.
const retryInterval = 20 * time.Millisecond

// Do sends a request to the leader until it is answered or the context ends. It repeats a request
// whose outcome is unknown, so the request must be safe to apply twice.
func (g *Group) Do(ctx context.Context, request func(context.Context, *Server) error) error {
	last := errors.New("there is no leader")
	for {
		if s := g.Leader(); s != nil {
			err := request(ctx, s)
			if !errors.Is(err, shims.ErrBusy) && !errors.Is(err, shims.ErrRejected) && !errors.Is(err, shims.ErrUnknown) {
				return err
			}
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-time.After(retryInterval):
		}
	}
}
