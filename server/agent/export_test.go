package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

// CallController calls a controller as the leader does.
func CallController(ctx context.Context, a *Agent, controller cluster.NodeID, call *volumes.Call) error {
	_, err := controllers{a}.Call(ctx, controller, call)
	return err
}

// NewTestSecret returns the peer secret of test clusters.
func NewTestSecret() *PeerSecret {
	secret, err := NewPeerSecret("the peer secret of the clusters of tests")
	if err != nil {
		panic(err)
	}
	return secret
}

// Pass answers a request with the first answer 200 of the servers with these ids, which send returns.
func Pass(w http.ResponseWriter, r *http.Request, ids []string, send func(r *http.Request, id string) (*http.Response, error)) (answered bool) {
	var servers []raft.Server
	for _, id := range ids {
		servers = append(servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	return pass(w, r, toOthers{servers, func(r *http.Request, s raft.Server) (*http.Response, error) { return send(r, string(s.ID)) }, hclog.NewNullLogger()})
}

// DialTLS returns the TLS configuration with which a server connects to an address.
func (s *PeerSecret) DialTLS(to net.Addr) (*tls.Config, error) { return s.dial(to) }

// ListenTLS returns the TLS configuration of a server that listens at an address.
func (s *PeerSecret) ListenTLS(at net.Addr) (*tls.Config, error) { return s.listen(at) }

// SearchLonger lets a server wait longer for a session that answers: a busy machine may need that.
func SearchLonger(c *Config) { c.searchTime = time.Minute }

// HasSession reports whether a server holds a session of a node.
func HasSession(a *Agent, id cluster.NodeID) bool { return a.sessions.of(id) != nil }

// AdmitSessionAlone is the decision of a server about a session, while its requests to all other servers fail.
func AdmitSessionAlone(ctx context.Context, a *Agent, id cluster.NodeID, process string) error {
	alone := &Agent{config: a.config, server: a.server, sessions: a.sessions, life: a.life}
	alone.transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no server answers")
	}}
	return newProcesses(alone).admitSession(ctx, id, process)
}

// EndLate plays a late end of the session that a server holds of a node: the goroutine of the session removes it
// after the next one has taken its place.
func EndLate(a *Agent, id cluster.NodeID, next func()) error {
	old := a.sessions.of(id)
	next()
	if err := a.sessions.begin(); err != nil {
		return err
	}
	a.sessions.keep(id, old)
	return nil
}
