package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
)

// forwarded is the context key of a request that a peer has forwarded. The server does not forward
// it again: two servers that each take the other for the leader would forward it for ever.
type forwarded struct{}

// newTransport returns the transport of HTTP requests to peers. The host of a URL is the peer's
// address in raft's configuration.
func newTransport(p *port) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, peer string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			return p.dial(ctx, peer, protocolHTTP)
		},
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     idleTimeout / 2, // before the peer closes the connection, perhaps during a write
		DisableCompression:  true,            // forwarded bodies stay as they are
	}
}

// Forward sends the request to the leader. Without a leader that it can reach, Forward waits for the
// next one, up to [Config].LeaderWait. A server does not forward a request to itself: it may have no peer
// secret.
func (p peers) Forward(w http.ResponseWriter, r *http.Request) (sent bool) {
	if r.Context().Value(forwarded{}) != nil || p.awaitLeader(r.Context()) == "" {
		p.writeLeaderLost(w, r, errNoLeader)
		return true
	}
	if p.Leads() {
		return false
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme = "http"
			pr.SetXForwarded()
			if pr.In.Body != nil {
				pr.Out.Body = io.NopCloser(pr.In.Body) // the next leader may need it
			}
		},
		Transport:    toLeader{p},
		ErrorLog:     p.agent.config.Logger.StandardLogger(nil),
		ErrorHandler: p.writeLeaderLost,
	}
	proxy.ServeHTTP(w, r)
	return true
}

// toLeader sends requests to the leader.
type toLeader struct{ peers peers }

// RoundTrip sends a request to the leader. If the leader is lost, RoundTrip sends the request to the
// next leader: a write only if it did not reach the lost leader, a read always, so that a blocking
// query continues.
func (t toLeader) RoundTrip(r *http.Request) (*http.Response, error) {
	agent := t.peers.agent
	var lostAt time.Time // the last loss of a leader that was reached, or the first failed connection
	for {
		leader := t.peers.awaitLeader(r.Context())
		if leader == "" {
			return nil, errNoLeader
		}
		response, err := t.peers.attempt(r, leader)
		reached := !errors.Is(err, errDial)
		if err == nil || reached && !isRead(r) || errors.Is(err, errNoAnswer) {
			return response, err
		}
		if lostAt.IsZero() || reached {
			lostAt = time.Now()
		}
		if time.Since(lostAt) > agent.config.LeaderWait {
			return nil, err
		}
		select {
		case <-r.Context().Done():
			return nil, err
		case <-time.After(dialInterval):
		}
	}
}

// dialInterval is the wait between two attempts to reach a leader.
const dialInterval = 50 * time.Millisecond

// errNoLeader means that this server has no leader.
var errNoLeader = errors.New("no cluster leader")

// writeLeaderLost answers a request that no leader has answered.
func (p peers) writeLeaderLost(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errNoLeader) {
		httpapi.WriteError(w, http.StatusInternalServerError, httpapi.NoLeaderText(p))
		return
	}
	level := hclog.Warn
	if r.Context().Err() != nil { // the client has left, or this server stops
		level = hclog.Debug
	}
	p.agent.config.Logger.Log(level, "the leader did not answer a request", "method", r.Method, "path", r.URL.Path, "error", err)
	what := "the write may have been made: read the state, or retry with the same idempotency token"
	switch {
	case errors.Is(err, errDial):
		what = "the request was not sent: retry"
	case isRead(r):
		what = "retry"
	}
	httpapi.WriteError(w, http.StatusInternalServerError, fmt.Sprintf("the leader was lost before it answered; %s (%v)", what, err))
}

// httpError answers a peer with an error.
func httpError(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	refused, is := errors.AsType[*failure.Failure](err)
	switch {
	case is:
		code = refused.Code
	case errors.Is(err, httpapi.ErrNotFound):
		code = http.StatusNotFound
	}
	httpapi.WriteError(w, code, err.Error())
}
