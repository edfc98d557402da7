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

	"github.com/seed-f9cf0b39/nodedrain/server/agent/connlimit"
)

// The protocols between servers, by the first byte of a connection.
const (
	protocolRaft byte = 'r'
	protocolHTTP byte = 'h'
)

// protocolTimeout bounds the time until a new connection sends its first byte.
const protocolTimeout = 10 * time.Second

// port listens on the one TCP port of a server, and dials the ports of its peers. Each connection
// uses TLS, with certificates or with keys of the peer secret. The first byte inside TLS names the
// protocol.
//
// A server without certificates and without a peer secret has a closed port: it does not listen, and
// every dial fails. Every local program that reached an open port could control the server.
//
// It owns one goroutine that accepts connections, and one for each connection until the listener of
// its protocol accepts it.
type port struct {
	listener  net.Listener // or nil: the port is closed
	advertise address
	// listenTLS is for accepted connections, or nil if the port is closed. dialTLS returns the
	// configuration for a connection to a peer, which was dialed by that name.
	listenTLS *tls.Config
	dialTLS   func(peer string, conn net.Conn) (*tls.Config, error)
	// hint is a part of the error of a failed handshake, or empty.
	hint   string
	dialer func(ctx context.Context, network, address string) (net.Conn, error)
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

// newPort listens, unless the port is closed. The port accepts no connection before serve.
func newPort(c *Config, gates *gates) (*port, error) {
	p := &port{advertise: address(c.Advertise), dialer: c.Dial, gates: gates, open: make(map[net.Conn]struct{})}
	p.life, p.end = context.WithCancel(context.Background())
	if err := p.listen(c); err != nil {
		return nil, err
	}
	p.raft, p.http = newProtocolListener(p.advertise), newProtocolListener(p.advertise)
	return p, nil
}

// listen listens, and chooses the address and the TLS configurations of the port.
func (p *port) listen(c *Config) (err error) {
	if c.ServerTLS == nil && c.PeerSecret == nil {
		setDefault(&p.advertise, address(c.ServerAddr))
		return nil
	}
	if p.listener, err = net.Listen("tcp", c.ServerAddr); err != nil {
		return fmt.Errorf("listening for servers: %w", err)
	}
	at := p.listener.Addr().(*net.TCPAddr)
	if p.advertise == "" && at.IP.IsUnspecified() {
		return errors.Join(fmt.Errorf("Config.Advertise is required: peers cannot connect to %s", at), p.listener.Close())
	}
	setDefault(&p.advertise, address(at.String()))
	if c.ServerTLS != nil {
		p.listenTLS, p.dialTLS = c.ServerTLS, func(peer string, _ net.Conn) (*tls.Config, error) {
			return tlsTo(c.ServerTLS, peer), nil
		}
		return nil
	}
	if p.listenTLS, err = c.PeerSecret.listen(at); err != nil {
		return errors.Join(err, p.listener.Close())
	}
	p.hint = " (all servers need the same peer secret, and a build that supports it)"
	p.dialTLS = func(_ string, conn net.Conn) (*tls.Config, error) { return c.PeerSecret.dial(conn.RemoteAddr()) }
	return nil
}

// tlsTo returns the configuration for a connection to a peer.
func tlsTo(config *tls.Config, peer string) *tls.Config {
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(peer)
	}
	return config
}

// serve starts the goroutine that accepts connections.
func (p *port) serve() {
	if p.listener != nil {
		p.running.Go(p.accept)
	}
}

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
	conn := net.Conn(tls.Server(p.track(admitted), p.listenTLS))
	_ = conn.SetDeadline(time.Now().Add(protocolTimeout)) // if it fails, the read fails too
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
	if p.listener == nil {
		return nil, fmt.Errorf("%w: %w", errDial, errClosedPort)
	}
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
	config, err := p.dialTLS(peer, conn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errDial, err), conn.Close())
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: TLS with %s%s: %w", errDial, peer, p.hint, err), conn.Close())
	}
	conn = secured
	if _, err := conn.Write([]byte{protocol}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errDial, err), conn.Close())
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// errDial means that connecting to a peer failed, so that nothing was sent.
var errDial = errors.New("connecting to a server")

// errClosedPort describes why this server has no peers.
var errClosedPort = errors.New("this server has neither certificates for servers nor a peer secret, so it has no port for other servers")

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
	var err error
	if p.listener != nil {
		if err = p.listener.Close(); errors.Is(err, net.ErrClosed) {
			err = nil
		}
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
	addr   address
	conns  chan net.Conn
	once   sync.Once
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
