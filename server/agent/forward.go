package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

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

// Pass sends the request to the other servers, by id, until one answers it.
func (p peers) Pass(w http.ResponseWriter, r *http.Request) (answered bool) {
	var others []raft.Server
	for _, s := range p.configuration().Servers {
		if string(s.ID) != p.Name() {
			others = append(others, s)
		}
	}
	slices.SortFunc(others, func(a, b raft.Server) int { return cmp.Compare(a.ID, b.ID) })
	return pass(w, r, toOthers{others, p.sendTo, p.agent.config.Logger})
}

// pass answers a request with the answer of another server. It reports false if none answers.
func pass(w http.ResponseWriter, r *http.Request, others toOthers) (answered bool) {
	if len(others.servers) == 0 {
		return false
	}
	answered = true
	proxy := httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme = "http"
			pr.SetXForwarded()
		},
		Transport:    others,
		ErrorLog:     others.logger.StandardLogger(nil),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { answered = false },
	}
	proxy.ServeHTTP(w, r)
	return answered
}

// toOthers sends requests to servers, one after the other.
type toOthers struct {
	servers []raft.Server
	// send sends a request to a server.
	send   func(*http.Request, raft.Server) (*http.Response, error)
	logger hclog.Logger
}

// errNotPassed means that no server has answered a request that was passed.
var errNotPassed = errors.New("no other server has answered")

// RoundTrip returns the first answer 200. Older servers do not have the route, and busy ones refuse.
func (t toOthers) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, s := range t.servers {
		body, err := r.GetBody() // the server before may have read the last one
		if err != nil {
			return nil, err
		}
		sent := r.Clone(r.Context())
		sent.Body, sent.URL.Host = body, string(s.Address)
		response, err := t.send(sent, s)
		if err == nil && response.StatusCode == http.StatusOK {
			return response, nil
		}
		if err == nil {
			err = errors.New(response.Status)
			_ = response.Body.Close()
		}
		t.logger.Debug("a server did not answer a request that was passed to it", "server", s.ID, "path", r.URL.Path, "error", err)
		if r.Context().Err() != nil { // the client has left, this server stops, or it took too long
			return nil, err
		}
	}
	return nil, errNotPassed
}

// aliveTime is how long a server may take to show that it is there, before it gets a request.
const aliveTime = time.Second

// sendTo sends a request to a server and reads the whole answer. It ends when the server stops answering
// heartbeats: a server that lost its power does not close its connections. It owns a goroutine until it returns.
func (p peers) sendTo(r *http.Request, s raft.Server) (*http.Response, error) {
	if p.agent.contacts.isSilent(s.ID) {
		return nil, errSilent
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	alive, end := context.WithTimeout(ctx, aliveTime)
	defer end()
	if _, err := p.agent.infoOf(alive, s); err != nil {
		return nil, err
	}
	watching.Go(func() { cancel(p.agent.contacts.awaitSilence(ctx, s.ID)) })
	response, err := p.agent.transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response, nil
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
