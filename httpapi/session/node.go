package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// Refused is the error of [Dial] when a server answers and gives no session.
type Refused struct {
	// Status is the status of the answer, Text its first bytes.
	Status int
	Text   string
}

// Error returns the answer.
func (r *Refused) Error() string {
	return fmt.Sprintf("the server gives no session: %d (%s)", r.Status, r.Text)
}

// Unsupported reports whether the server does not have sessions, or none of this version.
func (r *Refused) Unsupported() bool {
	switch r.Status {
	case http.StatusNotImplemented, http.StatusMethodNotAllowed, http.StatusUpgradeRequired:
		return true
	case http.StatusNotFound: // a server that has sessions may not have the node yet
		return !strings.Contains(r.Text, "node not found")
	}
	return false
}

// maxRefusal bounds the text of [Refused], in bytes.
const maxRefusal = 512

// NodeEnd is the node's end of a session. Its methods are safe for concurrent use. It owns three goroutines
// until the session ends.
type NodeEnd struct {
	mux   *yamux.Session
	stall time.Duration
}

// Dial requests a session from a server with GET, and takes at most ten seconds. The transport speaks
// HTTP/1.1. The error is a [Refused] if the server answers and gives no session. The caller closes the
// session.
func Dial(ctx context.Context, transport http.RoundTripper, r *http.Request) (*NodeEnd, error) {
	return dial(ctx, transport, r, defaultTimes())
}

func dial(ctx context.Context, transport http.RoundTripper, r *http.Request, t times) (*NodeEnd, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	sent := r.Clone(ctx)
	sent.Header.Set("Connection", "Upgrade")
	sent.Header.Set("Upgrade", Protocol)
	response, err := transport.RoundTrip(sent)
	if err != nil {
		return nil, fmt.Errorf("requesting a session: %w", err)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // a text that ends early is good enough
		_ = response.Body.Close()
		return nil, &Refused{Status: response.StatusCode, Text: strings.TrimSpace(string(text))}
	}
	conn, is := response.Body.(io.ReadWriteCloser)
	if !is {
		_ = response.Body.Close()
		return nil, errors.New("requesting a session: the transport gives no connection")
	}
	if got := response.Header.Get("Upgrade"); got != Protocol {
		_ = conn.Close()
		return nil, fmt.Errorf("requesting a session: the server has protocol %q, and this client %q", got, Protocol)
	}
	mux, err := yamux.Server(&guard{ReadWriteCloser: conn}, t.settings(nodeLinger))
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("requesting a session: %w", err)
	}
	return &NodeEnd{mux: mux, stall: t.stall}, nil
}

// Serve answers the servers' requests until the session or the context ends. It closes the session, and
// returns when all requests have ended: their contexts end with the session. It is called once.
func (n *NodeEnd) Serve(ctx context.Context, handler http.Handler) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := &requests{handler: handler}
	server := &http.Server{
		Handler:           requests,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       headerTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(io.Discard, "", 0), // its lines repeat what the servers send
	}
	stop := context.AfterFunc(ctx, func() { _ = n.Close() })
	defer stop()
	_ = server.Serve(&listener{end: n}) // it ends with the session
	cancel()
	_ = n.Close()
	_ = server.Close()
	requests.end()
}

// Done returns a channel that is closed when the session ends.
func (n *NodeEnd) Done() <-chan struct{} { return n.mux.CloseChan() }

// Close ends the session and its streams. It may be called more than once.
func (n *NodeEnd) Close() error { return n.mux.Close() }

// listener accepts the streams of a session.
type listener struct {
	end     *NodeEnd
	streams atomic.Int64
}

// Accept waits for a stream. It closes those above the bound.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.end.mux.AcceptStream()
		if err != nil {
			return nil, err
		}
		if l.streams.Add(1) > MaxStreams {
			l.streams.Add(-1)
			_ = conn.Close()
			continue
		}
		return newStream(conn, l.end.stall, func() { l.streams.Add(-1) }), nil
	}
}

// Close ends the session.
func (l *listener) Close() error { return l.end.Close() }

// Addr returns the address of the session.
func (l *listener) Addr() net.Addr { return l.end.mux.Addr() }

// requests counts the requests that a handler answers.
type requests struct {
	handler http.Handler

	mu      sync.Mutex
	ended   bool // guarded by mu
	running sync.WaitGroup
}

// ServeHTTP answers a request, unless the session has ended.
func (r *requests) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return
	}
	r.running.Add(1)
	r.mu.Unlock()
	defer r.running.Done()
	r.handler.ServeHTTP(w, hr)
}

// end waits for all requests.
func (r *requests) end() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.running.Wait()
}
