package session

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// pair is a session whose connection a test controls.
type pair struct {
	*testing.T
	server *ServerEnd
	node   *NodeEnd
	// served is closed when the node's end has returned.
	served chan struct{}
}

// shake makes a session over two ends of a connection. Either end is nil if its handshake failed.
func shake(t *testing.T, ofNode, ofServer net.Conn, bounds times) (*ServerEnd, *NodeEnd, error) {
	accepted := make(chan *ServerEnd, 1)
	var once sync.Once
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end, _ := accept(w, r, nil, bounds)
		once.Do(func() { accepted <- end })
	}), ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed { // without a request
			once.Do(func() { accepted <- nil })
		}
	}}
	at := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	at.conn <- ofServer
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(at) })
	defer serving.Wait()
	defer func() { _ = web.Close() }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ofNode, nil }}
	defer transport.CloseIdleConnections()
	r := result.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/v1/client/n1/session", nil)).OK(t)
	node, err := dial(t.Context(), transport, r, bounds)
	if err != nil {
		_ = ofNode.Close()
	}
	return <-accepted, node, err
}

// oneConn is a listener of one connection.
type oneConn struct {
	conn   chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// newPair returns a session whose node answers as the handler does.
func newPair(t *testing.T, ofNode, ofServer net.Conn, bounds times, handler http.HandlerFunc) *pair {
	t.Helper()
	server, node, err := shake(t, ofNode, ofServer, bounds)
	must.NoError(t, err)
	must.NotNil(t, server)
	p := &pair{T: t, server: server, node: node, served: make(chan struct{})}
	go func() {
		defer close(p.served)
		node.Serve(t.Context(), handler)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-p.served
	})
	return p
}

// request sends a request to the node, and returns the whole answer.
func request(ctx context.Context, s *ServerEnd, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://any"+path, nil)
	if err != nil {
		return "", err
	}
	response, err := s.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// tcp returns two ends of a connection.
func tcp(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l := result.Of(net.Listen("tcp", "127.0.0.1:0")).OK(t)
	defer l.Close()
	a = result.Of(net.Dial("tcp", l.Addr().String())).OK(t)
	b = result.Of(l.Accept()).OK(t)
	return a, b
}

// timed is a connection that records its deadlines.
type timed struct {
	net.Conn
	set         atomic.Int64 // counts the calls
	mu          sync.Mutex
	read, write time.Time // guarded by mu
}

func (c *timed) note(read, write *time.Time) {
	c.set.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if read != nil {
		c.read = *read
	}
	if write != nil {
		c.write = *write
	}
}

func (c *timed) limits() (read, write time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read, c.write
}

func (c *timed) SetDeadline(t time.Time) error {
	c.note(&t, &t)
	return c.Conn.SetDeadline(t)
}

func (c *timed) SetReadDeadline(t time.Time) error {
	c.note(&t, nil)
	return c.Conn.SetReadDeadline(t)
}

func (c *timed) SetWriteDeadline(t time.Time) error {
	c.note(nil, &t)
	return c.Conn.SetWriteDeadline(t)
}

// cutting is a connection that closes after some bytes.
type cutting struct {
	net.Conn
	mu   sync.Mutex
	left int // bytes that may still be written; guarded by mu
}

func (c *cutting) Write(p []byte) (int, error) {
	c.mu.Lock()
	part := min(len(p), c.left)
	c.left -= part
	c.mu.Unlock()
	n, err := c.Conn.Write(p[:part])
	if err == nil && n < len(p) {
		_ = c.Close()
		return n, net.ErrClosed
	}
	return n, err
}

// mute is a connection that can fall silent: it stays open and carries nothing.
type mute struct {
	net.Conn
	silent chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newMute(c net.Conn, silent chan struct{}) *mute {
	return &mute{Conn: c, silent: silent, closed: make(chan struct{})}
}

func (m *mute) Write(p []byte) (int, error) {
	select {
	case <-m.silent:
		return len(p), nil
	default:
		return m.Conn.Write(p)
	}
}

func (m *mute) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	select {
	case <-m.silent:
		<-m.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (m *mute) Close() error {
	m.once.Do(func() { close(m.closed) })
	return m.Conn.Close()
}

// within ends a test that waits for too long.
func within(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("waited for " + what)
	}
}
