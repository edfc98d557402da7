package node

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	api "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// changesWait is how long the servers wait for a change before they answer without one.
// changesTimeout is the timeout of the request: the servers wait up to a sixteenth longer, to
// spread the requests.
const (
	changesWait    = 30 * time.Second
	changesTimeout = changesWait + changesWait/16 + 10*time.Second
)

// httpServers are servers with the HTTP API. After a failure the next request goes to the next
// server.
type httpServers struct {
	all []httpServer
	// at is the index of the server for the next request, modulo their number.
	at atomic.Uint64
	// sessionAt is the index of the server for the next session, modulo their number.
	sessionAt atomic.Uint64
	// registeredIn is the cluster version of the last registration. The servers dropped fields of
	// newer versions.
	registeredIn atomic.Uint64
	// token registers an unknown node. Only Register uses it, in one goroutine.
	token machineToken
}

var _ Servers = (*httpServers)(nil)

// httpServer is one server, with a client for each of two kinds of callers.
type httpServer struct {
	// config has no token.
	config api.Config
	// member has the secret of the node; stranger has none.
	member, stranger *api.Client
	self             api.NodeSide
	close            func()
}

// newHTTPServers sends no request.
func newHTTPServers(c config.Servers, self identity) (*httpServers, error) {
	s := &httpServers{token: machineToken{file: c.TokenFile, last: c.Token}}
	for _, address := range c.Addresses {
		one := httpServer{config: api.Config{Address: address, TLS: api.TLS{
			CACert: c.CAFile, ClientCert: c.CertFile, ClientKey: c.KeyFile, ServerName: c.ServerName,
		}}}
		var err error
		if one.member, err = one.client(self.Secret); err == nil {
			one.stranger, err = one.client("")
		}
		if err != nil {
			return nil, fmt.Errorf("server %s: %w", address, err)
		}
		one.self = one.member.NodeSide(self.ID)
		one.close = func() {
			one.member.Close()
			one.stranger.Close()
		}
		s.all = append(s.all, one)
	}
	return s, nil
}

// client returns a client of the server with this token.
func (s httpServer) client(token string) (*api.Client, error) {
	c := s.config
	c.Token = token
	return api.New(c)
}

// close closes idle connections.
func (s *httpServers) close() error {
	for _, one := range s.all {
		one.close()
	}
	return nil
}

// ask sends a request to a server. If it failed, the next request goes to the next server.
func (s *httpServers) ask(question func(httpServer) error) error {
	at := s.at.Load()
	err := question(s.all[at%uint64(len(s.all))])
	if err != nil && !api.Refused(err) {
		s.at.CompareAndSwap(at, at+1)
	}
	return err
}

// Register implements [Servers]. A known node registers with its secret. An unknown node registers
// with the token.
func (s *httpServers) Register(ctx context.Context, n *cluster.Node) (ttl time.Duration, err error) {
	err = s.ask(func(one httpServer) error {
		answer, err := one.member.Register(ctx, n)
		if forbidden(err) {
			answer, err = s.token.register(ctx, one, n)
		}
		if err == nil {
			ttl = answer.HeartbeatTTL
			s.registeredIn.Store(uint64(answer.ClusterVersion))
		}
		return err
	})
	return ttl, err
}

// Heartbeat implements [Servers]. If the cluster version has increased since the registration, the
// node counts as not registered.
func (s *httpServers) Heartbeat(ctx context.Context) (ttl time.Duration, err error) {
	var version cluster.Version
	err = s.ask(func(one httpServer) error {
		answer, err := one.self.Heartbeat(ctx)
		ttl, version = answer.HeartbeatTTL, answer.ClusterVersion
		return err
	})
	if before := cluster.Version(s.registeredIn.Load()); err == nil && version > before {
		return ttl, fmt.Errorf("%w in cluster version %d, but in version %d", presence.ErrNotRegistered, version, before)
	}
	if api.UnknownNode(err) {
		err = fmt.Errorf("%w: %w", presence.ErrNotRegistered, err)
	}
	return ttl, err
}

// Changes implements [Servers].
func (s *httpServers) Changes(ctx context.Context, clusterID string, index uint64) (w client.Wanted, err error) {
	ctx, cancel := context.WithTimeout(ctx, changesTimeout)
	defer cancel()
	err = s.ask(func(one httpServer) error {
		c, err := one.self.Changes(ctx, api.Since{ClusterID: clusterID, Index: index}, changesWait)
		w = wanted(c)
		if err == nil && w.Complete {
			w.Claims, err = one.claims(ctx)
		}
		return err
	})
	return w, err
}

// claims reads the claims of the node from the server that has just answered with a list of
// allocations. So the claims are not older than the list. A server of an older release has no
// claims.
func (s httpServer) claims(ctx context.Context) (claims []*cluster.VolumeClaim, err error) {
	all, _, err := s.self.Volumes(ctx, 0, 0)
	if api.NotFound(err) {
		return nil, nil
	}
	for _, v := range all {
		claims = append(claims, v.Claims...)
	}
	return claims, err
}

// wanted converts an answer for the core.
func wanted(c api.Changes) client.Wanted {
	w := client.Wanted{ClusterID: c.ClusterID, Index: c.Index, Allocs: c.Allocs, All: c.Complete, Known: c.Live, Complete: c.Live != nil, Nameless: c.Nameless}
	for _, u := range c.Unreadable {
		w.Unreadable = append(w.Unreadable, client.Unreadable(u))
	}
	return w
}

// Report implements [Servers].
func (s *httpServers) Report(ctx context.Context, reports []cluster.AllocReport) error {
	return s.ask(func(one httpServer) error {
		_, err := one.self.ReportAllocs(ctx, reports)
		return err
	})
}

// OpenSession implements [Servers]. Each session uses the server after the server of the last
// session, because that one may be stopping.
func (s *httpServers) OpenSession(ctx context.Context) (*session.NodeEnd, error) {
	at := s.sessionAt.Add(1) - 1
	return s.all[at%uint64(len(s.all))].self.OpenSession(ctx)
}
