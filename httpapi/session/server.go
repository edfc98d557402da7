package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// Errors of a [ServerEnd].
var (
	// ErrEnded means that the session has ended.
	ErrEnded = errors.New("the session of the node has ended")
	// ErrBusy means that the session has as many streams as it may have.
	ErrBusy = errors.New("the session of the node has too many open streams")
)

// ServerEnd is the server's end of a session. It sends requests to the node. All methods are safe for
// concurrent use. It owns three goroutines until the session ends, and two for each request in flight.
type ServerEnd struct {
	mux       *yamux.Session
	transport *http.Transport
	stall     time.Duration
	// streams counts the open ones.
	streams atomic.Int64

	// pinging has capacity 1. It holds a value during a ping of Answers, which guards answered.
	pinging chan struct{}
	// answered is when the node last answered a ping, or zero.
	answered time.Time
}

var _ http.RoundTripper = (*ServerEnd)(nil)

// Accept answers a request for a session, and returns the server's end of it. The caller has checked the
// sender, and closes the session. hold is called with the connection before the answer: it reports whether
// the server has room for the session, or is nil. After an error the request has been answered.
func Accept(w http.ResponseWriter, r *http.Request, hold func(net.Conn) bool) (*ServerEnd, error) {
	return accept(w, r, hold, defaultTimes())
}

func accept(w http.ResponseWriter, r *http.Request, hold func(net.Conn) bool, t times) (*ServerEnd, error) {
	if err := checkRequest(r); err != nil {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", Protocol)
		http.Error(w, err.Error(), http.StatusUpgradeRequired)
		return nil, err
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "this connection cannot become a session", http.StatusInternalServerError)
		return nil, fmt.Errorf("beginning a session: %w", err)
	}
	if hold != nil && !hold(conn) {
		_ = conn.Close()
		return nil, errors.New("beginning a session: the server has too many sessions")
	}
	if err := answerUpgrade(conn); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("beginning a session: %w", err)
	}
	return newServerEnd(readFirst(conn, buffered.Reader), t)
}

// checkRequest returns why a request is not for a session of this version, or nil.
func checkRequest(r *http.Request) error {
	switch {
	case r.ProtoMajor != 1 || r.ProtoMinor < 1:
		return errors.New("a session needs HTTP/1.1")
	case !hasToken(r.Header, "Connection", "upgrade"):
		return errors.New("a session needs the headers Connection: Upgrade and Upgrade: " + Protocol)
	case r.Header.Get("Upgrade") != Protocol:
		return fmt.Errorf("this server has sessions of version %s", Protocol)
	case r.ContentLength != 0:
		return errors.New("the request for a session has a body")
	}
	return nil
}

// hasToken reports whether a header that is a list has an item.
func hasToken(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for item := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(item), token) {
				return true
			}
		}
	}
	return false
}

func answerUpgrade(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+Protocol+"\r\n\r\n"); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// readFirst returns the connection, of which some bytes are in a buffer.
func readFirst(conn net.Conn, buffered *bufio.Reader) net.Conn {
	if buffered == nil || buffered.Buffered() == 0 {
		return conn
	}
	first := io.LimitReader(buffered, int64(buffered.Buffered()))
	return &bufferedConn{Conn: conn, from: io.MultiReader(first, conn)}
}

// bufferedConn is a connection of which some bytes were read already.
type bufferedConn struct {
	net.Conn
	from io.Reader
}

// Read reads what was read already, and then from the connection.
func (c *bufferedConn) Read(p []byte) (int, error) { return c.from.Read(p) }

// newServerEnd begins a session over a connection.
func newServerEnd(conn net.Conn, t times) (*ServerEnd, error) {
	mux, err := yamux.Client(&guard{ReadWriteCloser: conn}, t.settings(serverLinger))
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("beginning a session: %w", err)
	}
	s := &ServerEnd{mux: mux, stall: t.stall, pinging: make(chan struct{}, 1)}
	s.transport = &http.Transport{
		DialContext:            func(context.Context, string, string) (net.Conn, error) { return s.open() },
		DisableKeepAlives:      true, // a stream costs no round trip, and a used one can end at any time
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		Protocols:              new(http.Protocols),
	}
	s.transport.Protocols.SetHTTP1(true)
	if err := mux.GoAway(); err != nil { // a node opens no streams
		return nil, errors.Join(fmt.Errorf("beginning a session: %w", err), s.Close())
	}
	return s, nil
}

// open opens a stream. It may wait for the node to take earlier streams.
func (s *ServerEnd) open() (net.Conn, error) {
	if s.streams.Add(1) > MaxStreams {
		s.streams.Add(-1)
		return nil, ErrBusy
	}
	conn, err := s.mux.OpenStream()
	if err != nil {
		s.streams.Add(-1)
		return nil, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return newStream(conn, s.stall, func() { s.streams.Add(-1) }), nil
}

// RoundTrip sends a request to the node. The scheme and the host of its URL do not matter. The caller
// closes the body of the answer; after the answer 101 it is an [io.ReadWriteCloser]. The error wraps
// [ErrEnded] if the session had ended, and [ErrBusy] if it has too many streams: then nothing was sent.
func (s *ServerEnd) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := r.Clone(r.Context())
	sent.URL.Scheme, sent.URL.Host = "http", "node"
	return s.transport.RoundTrip(sent)
}

// answerAge is how long an answer to a ping counts. It bounds the pings: a node may send only so many
// answers.
const answerAge = time.Second

// Answers reports whether the node answers a ping before the context ends. An answer of the last second counts.
func (s *ServerEnd) Answers(ctx context.Context) bool {
	select {
	case s.pinging <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	answered := make(chan bool, 1)
	go func() { // it ends with the ping, or with the session
		defer func() { <-s.pinging }()
		if time.Since(s.answered) < answerAge {
			answered <- !s.mux.IsClosed()
			return
		}
		_, err := s.mux.Ping()
		if err == nil {
			s.answered = time.Now()
		}
		answered <- err == nil
	}()
	select {
	case is := <-answered:
		return is
	case <-ctx.Done():
		return false
	}
}

// Streams returns the number of open streams.
func (s *ServerEnd) Streams() int { return int(s.streams.Load()) }

// Done returns a channel that is closed when the session ends.
func (s *ServerEnd) Done() <-chan struct{} { return s.mux.CloseChan() }

// Close ends the session and its streams. It may be called more than once.
func (s *ServerEnd) Close() error { return s.mux.Close() }
