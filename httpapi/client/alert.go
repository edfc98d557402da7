package client

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
)

// With TLS 1.3 the handshake ends for the client before the server has checked the certificate of the
// client. A server that refuses it sends an alert with the reason, and closes the connection. The
// client may write its request before it reads the alert. This write fails with "broken pipe" or
// "connection reset by peer", which does not name the reason. The kernel still has the alert. So a
// transport returns the failure of the read, and not the failure of the write.

// alerting is a transport whose errors contain the TLS alert of the server, if there is one.
type alerting struct{ *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (t alerting) RoundTrip(r *http.Request) (*http.Response, error) {
	var used atomic.Pointer[tls.Conn]
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if conn, is := got.Conn.(*tls.Conn); is {
			used.Store(conn)
		}
	}}
	response, err := t.Transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	conn := used.Load()
	if conn == nil {
		return response, err
	}
	if err == nil {
		if quiet, is := conn.NetConn().(*quietConn); is {
			quiet.answered.Store(true)
		}
		return response, nil
	}
	if ended(err) {
		if _, why := conn.Read(make([]byte, 1)); isAlert(why) {
			return nil, why
		}
	}
	return nil, err
}

// ended reports whether an error means that the transport had already read the end of the connection
// before it wrote the request. Then a read returns the same end again, and takes nothing from another
// request.
func ended(err error) bool {
	return errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "http2: client conn could not be established") // net/http does not export it
}

// isAlert reports whether an error is an alert of the other side.
func isAlert(err error) bool {
	remote, is := errors.AsType[*net.OpError](err)
	return is && remote.Op == "remote error" // the text of crypto/tls
}

// quietly returns a dial function whose connections are quiet.
func quietly(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &quietConn{Conn: conn}, nil
	}
}

// quietConn is a connection whose Write hides that the other side has closed the connection, until the
// server has answered a request. Read returns what had arrived before, and then this error.
type quietConn struct {
	net.Conn
	answered atomic.Bool
	hidden   atomic.Pointer[error]
}

// Write implements [net.Conn].
func (c *quietConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.answered.Load() || !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return n, err
	}
	c.hidden.CompareAndSwap(nil, &err)
	return len(p), nil
}

// Read implements [net.Conn].
func (c *quietConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if hidden := c.hidden.Load(); err == io.EOF && hidden != nil {
		err = *hidden
	}
	return n, err
}
