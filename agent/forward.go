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

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// forwarded marks the context of a request that a peer passed on, which is not
// passed on again: two servers that each take the other for the leader would do so
// for ever.
type forwarded struct{}

// newTransport is how HTTP requests reach peers: a URL's host is the address that
// raft knows the peer by.
func newTransport(p *port) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, peer string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()
			return p.dial(ctx, peer, protocolHTTP)
		},
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     idleTimeout / 2, // before the peer closes it, maybe under a write
		DisableCompression:  true,            // forwarded bodies stay as they are
	}
}

// Forward sends the request to the leader. If there is none, or it cannot be reached, Forward
// waits: usually another is elected soon.
func (p peers) Forward(w http.ResponseWriter, r *http.Request) {
	if r.Context().Value(forwarded{}) != nil {
		p.lost(w, r, errNoLeader)
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme = "http"
			pr.SetXForwarded()
			if pr.In.Body != nil {
				pr.Out.Body = io.NopCloser(pr.In.Body) // it may be sent to the next leader
			}
		},
		Transport:    toLeader{p},
		ErrorLog:     p.agent.config.Logger.StandardLogger(nil),
		ErrorHandler: p.lost,
	}
	proxy.ServeHTTP(w, r)
}

// toLeader sends requests to the leader.
type toLeader struct{ peers peers }

// RoundTrip sends a request to the leader. If that leader is lost, it sends the request to the next
// one, as long as the lost one was not reached; reads also after that, so a blocking query
// continues.
func (t toLeader) RoundTrip(r *http.Request) (*http.Response, error) {
	agent := t.peers.agent
	var lost time.Time // when a leader that was reached was lost, or the first time that none was
	for {
		leader := t.peers.awaitLeader(r.Context())
		if leader == "" {
			return nil, errNoLeader
		}
		response, err := t.peers.attempt(r, leader)
		reached := !errors.Is(err, errDial)
		if err == nil || reached && !reads(r) || errors.Is(err, errSilent) {
			return response, err
		}
		if lost.IsZero() || reached {
			lost = time.Now()
		}
		if time.Since(lost) > agent.config.LeaderWait {
			return nil, err
		}
		select {
		case <-r.Context().Done():
			return nil, err
		case <-time.After(dialInterval):
		}
	}
}

// dialInterval is the wait before a leader is connected to again.
const dialInterval = 50 * time.Millisecond

// errNoLeader: this server knows no leader. Clients know it by the text noLeader.
var errNoLeader = errors.New("no cluster leader")

const noLeader = "No cluster leader"

// lost answers a request that no leader did.
func (p peers) lost(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errNoLeader) {
		httpapi.WriteError(w, http.StatusInternalServerError, noLeader)
		return
	}
	p.agent.config.Logger.Warn("the leader did not answer a request", "method", r.Method, "path", r.URL.Path, "error", err)
	what := "the write may have been made: read the state, or retry with the same idempotency token"
	switch {
	case errors.Is(err, errDial):
		what = "the request was not sent: retry"
	case reads(r):
		what = "retry"
	}
	httpapi.WriteError(w, http.StatusInternalServerError, fmt.Sprintf("the leader was lost before it answered; %s (%v)", what, err))
}

// httpError answers with an error of the API.
func httpError(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, httpapi.ErrNotFound) {
		code = http.StatusNotFound
	}
	httpapi.WriteError(w, code, err.Error())
}
