package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/agent/connlimit"
)

// The protocols between servers, by the first byte of a connection.
const (
	protocolRaft byte = 'r'
	protocolHTTP byte = 'h'
)

// protocolTimeout bounds the time until a new connection sends its first byte.
const protocolTimeout = 10 * time.Second

// port listens on the one TCP port of a server, and dials the ports of its peers. The first byte
// of each connection, inside TLS if there is any, names the protocol.
//
// It owns one goroutine that accepts connections, and one for each connection until the listener of
// its protocol accepts it.
type port struct {
	listener  net.Listener
	advertise address
	tls       *tls.Config // or nil
	dialer    func(ctx context.Context, network, address string) (net.Conn, error)
	// raft and http are the listeners of the two protocols.
	raft, http *protocolListener
	gates      *gates

	// life ends when the port closes.
	life context.Context
	end  context.CancelFunc

	running sync.WaitGroup
	mu      sync.Mutex
	open    map[net.Conn]struct{} // all open connections; guarded by mu
	closed  bool                  // guarded by mu
}

// newPort listens. The port accepts no connection before serve.
func newPort(c *Config, gates *gates) (*port, error) {
	listener, err := net.Listen("tcp", c.ServerAddr)
	if err != nil {
		return nil, fmt.Errorf("listening for servers: %w", err)
	}
	p := &port{
		listener:  listener,
		advertise: address(c.Advertise),
		tls:       c.ServerTLS,
		dialer:    c.Dial,
		gates:     gates,
		open:      make(map[net.Conn]struct{}),
	}
	p.life, p.end = context.WithCancel(context.Background())
	if p.advertise == "" {
		if at := listener.Addr().(*net.TCPAddr); at.IP.IsUnspecified() {
			return nil, errors.Join(fmt.Errorf("Config.Advertise is required: peers cannot connect to %s", at), listener.Close())
		}
		p.advertise = address(listener.Addr().String())
	}
	p.raft, p.http = newProtocolListener(p.advertise), newProtocolListener(p.advertise)
	return p, nil
}

// serve starts the goroutine that accepts connections.
func (p *port) serve() { p.running.Go(p.accept) }

func (p *port) accept() {
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // a temporary error, such as too many open files
			select {
			case <-p.life.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		if admitted := p.gates.unidentified.Admit(conn); admitted != nil {
			p.running.Go(func() { p.readProtocol(admitted) })
		}
	}
}

// readProtocol reads the first byte of a connection, and delivers the connection to the listener of
// its protocol.
func (p *port) readProtocol(admitted *connlimit.Conn) {
	conn := p.track(admitted)
	deadline := time.Now().Add(protocolTimeout)
	_ = conn.SetDeadline(deadline) // if it fails, the read fails too
	if p.tls != nil {
		conn = tls.Server(conn, p.tls)
	}
	var first [1]byte
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	switch first[0] {
	case protocolRaft:
		if admitted.Move(p.gates.raft) {
			p.raft.deliver(conn)
			return
		}
	case protocolHTTP:
		if admitted.Move(p.gates.forwarded) {
			p.http.deliver(conn)
			return
		}
	}
	_ = conn.Close()
}

// dial connects to the port of a peer.
func (p *port) dial(ctx context.Context, peer string, protocol byte) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	conn, err := p.dialer(ctx, "tcp", peer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDial, err)
	}
	conn = p.track(conn)
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if p.tls != nil {
		config := p.tls
		if config.ServerName == "" {
			config = config.Clone()
			config.ServerName, _, _ = net.SplitHostPort(peer)
		}
		secured := tls.Client(conn, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: TLS with %s: %w", errDial, peer, err), conn.Close())
		}
		conn = secured
	}
	if _, err := conn.Write([]byte{protocol}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errDial, err), conn.Close())
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// errDial says that connecting to a peer failed, so that nothing was sent.
var errDial = errors.New("connecting to a server")

// track returns the connection with a Close that removes it from the port. The port closes it when
// the port closes.
func (p *port) track(conn net.Conn) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &trackedConn{Conn: conn, port: p}
	if p.closed {
		_ = conn.Close()
		return c
	}
	p.open[c] = struct{}{}
	return c
}

// trackedConn is a connection of a port.
type trackedConn struct {
	net.Conn
	port *port
}

// NetConn is the underlying connection.
func (c *trackedConn) NetConn() net.Conn { return c.Conn }

// Read reads. After a Close by this server it returns EOF, which raft does not log as an error.
func (c *trackedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, net.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// Close closes the connection, and removes it from the port.
func (c *trackedConn) Close() error {
	c.port.mu.Lock()
	delete(c.port.open, c)
	c.port.mu.Unlock()
	return c.Conn.Close()
}

// close closes the port with all its connections, and waits for its goroutines. Later calls do
// nothing.
func (p *port) close() error {
	p.end()
	err := p.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	_, _ = p.raft.Close(), p.http.Close() // they never fail
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		_ = c.(*trackedConn).Conn.Close()
	}
	clear(p.open)
	p.mu.Unlock()
	p.running.Wait()
	return err
}

// protocolListener is the listener of one protocol. It gets its connections from a port.
type protocolListener struct {
	addr  address
	conns chan net.Conn
	once  sync.Once
	// closed is closed by Close.
	closed chan struct{}
}

var _ net.Listener = (*protocolListener)(nil)

func newProtocolListener(addr address) *protocolListener {
	return &protocolListener{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// deliver waits until the protocol accepts the connection. If the listener closes first, deliver
// closes the connection.
func (l *protocolListener) deliver(conn net.Conn) {
	select {
	case l.conns <- conn:
	case <-l.closed:
		_ = conn.Close()
	}
}

// Accept waits for a connection.
func (l *protocolListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. Accepted connections stay open.
func (l *protocolListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the address at which peers connect.
func (l *protocolListener) Addr() net.Addr { return l.addr }

// address is a "host:port". The host may be a name that only peers can resolve.
type address string

// Network returns "tcp".
func (a address) Network() string { return "tcp" }

// String returns the address.
func (a address) String() string { return string(a) }

// stream connects raft with a port.
type stream struct {
	*protocolListener
	port *port
}

var _ raft.StreamLayer = stream{}

// Close closes the whole port. Raft is the last user of the port, and would otherwise wait for peers
// that do not answer.
func (s stream) Close() error { return s.port.close() }

// Dial connects to raft on a peer.
func (s stream) Dial(peer raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.port.dial(ctx, string(peer), protocolRaft)
}
